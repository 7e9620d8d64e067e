"""The page of a run of 1,750 cases in a real browser: its size, and how long opening, a search and a panel take.

The cases are made up, and each has as much text as a claw's session often has: pages of this repository. Opening is
timed by the browser, from its request until all that the page shows at first is there; a search and a panel from the
event until the layout is done.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from statistics import median

import docker
from playwright.sync_api import Page
from rich.table import Table

from clawbench import ROOT
from evaluation.lists import listed_instances
from evaluation.outcomes import Outcome
from records.case_id import CaseId
from records.run_folder import RunDirectory
from reports.page.page import PAGE, write_page
from tests.support.browser import chromium, opened
from tests.support.made_up import made_up_case, made_up_run

CLAWS = ("generic", "hermes", "nanobot", "openclaw", "zeroclaw")
INSTANCES = 350
ROUNDS = 5
SESSION_CHARACTERS = 100_000

_SEARCH = """() => {
  const began = performance.now(), field = document.getElementById("search");
  field.value = "django";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  document.body.getBoundingClientRect();
  return performance.now() - began;
}"""
_PANEL = """async () => {
  const began = performance.now(), panel = document.getElementById("panel");
  document.querySelector(".case").click();
  while (!panel.open) await new Promise(requestAnimationFrame);
  panel.getBoundingClientRect();
  return performance.now() - began;
}"""


def run(_: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure writing the page, and opening and using it."""
    table = Table(f"a page of {len(CLAWS) * INSTANCES:,} cases", "value", box=None)
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as name:
        say("making the cases up")
        made = _made_up(Path(name))
        began = time.monotonic()
        page = Path(name) / PAGE
        write_page([made], page)
        table.add_row("writing it, seconds", f"{time.monotonic() - began:.1f}")
        table.add_row("size, MiB", f"{page.stat().st_size / 2**20:.1f}")
        say("opening it")
        found = _times(page.as_uri())
    for what, values in found.items():
        table.add_row(f"{what}, ms", f"{median(values):.0f}")
    return table


def _made_up(folder: Path) -> RunDirectory:
    run = made_up_run(RunDirectory.named(folder, "made-up"), CLAWS)
    names = [one.instance_id for one in listed_instances()][:INSTANCES]
    text = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))) * 2
    outcomes = cycle([Outcome.RESOLVED, Outcome.UNRESOLVED, Outcome.UNRESOLVED, Outcome.EMPTY_PATCH])
    cases = [CaseId(claw, name) for claw in CLAWS for name in names]
    run.plan.add(cases)
    for number, case in enumerate(cases):
        start = number * 97 % (len(text) // 2)
        says = [text[at : at + 2_000] for at in range(start, start + SESSION_CHARACTERS, 2_000)]
        session = "".join(json.dumps({"role": "assistant", "content": one}) + "\n" for one in says)
        made_up_case(run, case, next(outcomes), plan=False, files={"session/talk.jsonl": session})
    return run


def _times(url: str) -> dict[str, list[float]]:
    """Milliseconds of each round, in a new context."""
    found: dict[str, list[float]] = {"opening": [], "a search": [], "a panel": []}
    with chromium() as browser:
        for _ in range(ROUNDS):
            with opened(browser, url) as page:
                for values, script in zip(found.values(), ("performance.now()", _SEARCH, _PANEL), strict=True):
                    values.append(_milliseconds(page, script))
    return found


def _milliseconds(page: Page, script: str) -> float:
    return float(page.evaluate(script))

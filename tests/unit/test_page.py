"""`report.html`: what it shows, that texts of claws stay texts, and how it works in a real browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from support.bench_run import ROOT
from support.browser import chromium, needs_chromium, opened
from support.made_up import made_up_case, made_up_record, made_up_run
from typer.testing import CliRunner

from clawbench.cli import app
from evaluation.collection import Arm, Kind
from evaluation.lists import listed_instances
from evaluation.outcomes import Outcome, Verdict
from records.case_id import CaseId
from records.run_folder import RunDirectory

NAMES = [one.instance_id for one in listed_instances() if one.lite][:30]
CONTRAST = (ROOT / "tests" / "support" / "contrast.js").read_text()
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&\u2028"
COST = {"priced": Decimal("0.25"), "told": None, "unpriced": 0, "held": Decimal("0.25")}


def made(
    folder: Path, name: str, *, every: int, claws: tuple[str, ...] = ("nanobot",), **settings: object
) -> RunDirectory:
    """A run in which one of so many cases is resolved, whose claw writes hostile texts."""
    run = made_up_run(RunDirectory.named(folder, name), claws, **settings)
    for claw in claws:
        for number, instance in enumerate(NAMES):
            outcome = Outcome.RESOLVED if number % every == 0 else Outcome.UNRESOLVED
            outcome = Outcome.INFRASTRUCTURE if number == 7 else outcome
            talk = json.dumps({"role": "assistant", "content": f"{HOSTILE} I am done."})
            files = {"session/talk.jsonl": talk + "\n", "agent_stdout.log": HOSTILE, "prompt.txt": HOSTILE}
            facts = {"detail": HOSTILE, "cost": COST, "turns": number}
            made_up_case(run, CaseId(claw, instance), outcome, files=files, **facts)
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    made(folder, "first", every=2)
    made(folder, "second", every=3, model="acme/other", max_turns=5)
    return folder


def report(folder: Path, *runs: str) -> Path:
    target = folder / f"{'-'.join(runs)}.html"
    done = CliRunner().invoke(app, ["report", *runs, f"--artifacts={folder}", f"--to={target}"])
    assert done.exit_code == 0, done.output
    return target


def packed(page: str, name: str) -> list[Any]:
    (found,) = re.findall(rf'<script type="text/plain" id="{name}">(.*?)</script>', page, re.DOTALL)
    return [json.loads(gzip.decompress(base64.b64decode(line))) for line in found.split()]


def test_the_page_says_what_the_records_say(folder: Path) -> None:
    page = report(folder, "first").read_text()
    (overview,) = packed(page, "overview")
    (row,) = overview["rows"]
    assert (row["cases"], row["outcomes"]["resolved"], row["rate"]["instances"]) == (30, 15, 29)
    assert row["dollars"] == pytest.approx(7.5)
    assert row["dollars_per_resolved"] == pytest.approx(0.5)
    assert len(packed(page, "details")) == len(overview["cases"]) == 30
    assert packed(page, "details")[0]["turns"][0]["tokens"]["input"] == 10
    assert sum(part["rates"][0]["instances"] for part in overview["languages"]) == 29
    assert not overview["comparison"]["confounded"]


def test_nothing_that_a_claw_wrote_is_in_the_markup(folder: Path) -> None:
    page = report(folder, "first", "second").read_text()
    assert "alert(" not in page
    assert "default-src 'none'" in page
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", page)


def test_rows_that_cannot_be_compared_are_named(folder: Path) -> None:
    (overview,) = packed(report(folder, "first", "second").read_text(), "overview")
    (line,) = overview["comparison"]["confounded"]
    assert "Not comparable" in line
    assert "max_turns" in line or "budget" in line


def test_rows_too_many_to_compare_in_pairs_are_still_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.page.page_data._MOST_COMPARED", 1)
    (overview,) = packed(report(folder, "first", "second").read_text(), "overview")
    (line,) = overview["comparison"]["confounded"]
    assert "Not comparable" in line
    assert "max_turns" in line or "budget" in line
    assert "clawbench compare" in overview["comparison"]["conclusions"][0]


@pytest.fixture(scope="module")
def paired(folder: Path) -> str:
    """A run with one case, whose message lacks a part of the claw's change: `git apply` does not notice."""
    run, asked = made_up_run(RunDirectory.named(folder, "paired"), collect="paired"), CaseId("nanobot", NAMES[0])
    case = made_up_case(run, asked, finish=False, files={"message.applied.patch": f"+only this {HOSTILE}\n"})
    export = case.export()
    assert export is not None
    less = {"kind": Kind.UNDER_EDIT, "verdict": Verdict.UNRESOLVED, "detail": HOSTILE}
    arms = [{"arm": arm, **less} for arm in (Arm.STRICT, Arm.FUZZY)]
    run.finish(case, made_up_record(asked, **export.model_dump(), verdict=Verdict.RESOLVED, arms=arms))
    return report(folder, "paired").as_uri()


def test_the_ways_of_the_patch_are_side_by_side(folder: Path, paired: str) -> None:
    page = Path(paired.removeprefix("file://")).read_text()
    ((overview,), (case,)) = packed(page, "overview"), packed(page, "details")
    shares = {row[1]: row[3:7] for row in overview["collected"]["rows"]}
    assert overview["collected"]["headings"][3:7] == ["resolved", "rejected", "applied but wrong", "under-edit"]
    assert shares == {
        "workspace": ["100.0%", "0.0%", "0.0%", "0.0%"],
        "message-strict": ["0.0%", "0.0%", "100.0%", "100.0%"],
        "message-fuzzy": ["0.0%", "0.0%", "100.0%", "100.0%"],
    }
    assert "+only this" in case["corruption"]
    assert [way[0] for way in case["ways"]] == ["message-strict", "message-fuzzy"]
    (usual,) = packed(report(folder, "first").read_text(), "overview")
    assert usual["collected"]["rows"] == []


@needs_chromium
def test_a_silent_corruption_is_shown_as_a_diff(browser: Browser, paired: str, url: str) -> None:
    with opened(browser, paired) as page:
        assert page.locator("#ways tbody tr").count() == 3
        page.locator(".case").first.click()
        page.wait_for_selector("#panel[open]")
        page.locator("#panel summary", has_text="What was judged").press("Enter")
        assert "only a part of the agent's changes is there" in page.locator("#panel").inner_text()
        assert "only this" in page.locator("#panel .add", has_text="only this").inner_text()
        assert page.evaluate(CONTRAST) == []
    with opened(browser, url) as page:
        assert not page.locator("#ways").is_visible()


def test_what_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    run = made_up_run(RunDirectory.named(tmp_path, "cut"))
    folder = made_up_case(run, CaseId("nanobot", NAMES[0]), files={"session/more.txt": "x" * 300_000})
    whole = folder.requests.read_text()
    folder.requests.write_text(whole + whole[:20])
    (folder.path / "dropped.json").write_text('[{"path":')
    (detail,) = packed(report(tmp_path, "cut").read_text(), "details")
    assert (len(detail["turns"]), detail["dropped"]) == (1, None)
    assert [name for name, _ in detail["session"]] == ["more.txt", "more files"]


def test_a_missing_run_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", "nothing", f"--artifacts={tmp_path}"])
    assert (done.exit_code, "there is no run nothing" in " ".join(done.output.split())) == (2, True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def url(folder: Path) -> str:
    return report(folder, "first", "second").as_uri()


@needs_chromium
def test_the_keyboard_is_enough(browser: Browser, url: str) -> None:
    with opened(browser, url) as page:
        assert page.locator("#banner").is_visible()
        page.locator("#search").focus()
        page.keyboard.type(NAMES[3])
        assert page.locator("#found").inner_text() == "2 of 60 cases"
        page.locator(".case").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel[open] .add")
        assert NAMES[3] in page.locator("#panel-title").inner_text()
        page.locator("#panel summary", has_text="talk.jsonl").press("Enter")
        assert HOSTILE.replace("\u2028", "") in page.locator("#panel").inner_text().replace("\u2028", "")
        page.keyboard.press("Escape")
        assert not page.locator("#panel").is_visible()
        head = page.locator("#claws th", has_text="Pass@1").first
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        rates = page.locator("#claws td:nth-child(3)").all_inner_texts()
        assert re.fullmatch(
            r"[\d.]+% \([\d.]+-[\d.]+%\)", page.locator("#languages tbody td:nth-child(3)").first.inner_text()
        )
        assert "does not show that a language group differs" in page.locator("#languages").inner_text()
        assert rates == sorted(rates, key=lambda text: -float(text.rstrip("%")))


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast_and_narrow_screens_do_not_scroll_sideways(
    browser: Browser, url: str, scheme: str
) -> None:
    with opened(browser, url, width=360, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.locator(".case").first.click()
        page.wait_for_selector("#panel[open] .add")
        assert page.evaluate(CONTRAST) == []

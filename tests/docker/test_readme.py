"""The pages tell the truth: every command is run, every link leads somewhere, every named test exists."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.bench_run import ROOT
from support.user_commands import run

from adapters.registry import CLAWS, adapter
from evaluation.outcomes import POLICY, Outcome

README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "demo" / "README.md"]
ONE_CASE = "nanobot and cronspan"
IN_A_CASE = ("evaluation/test_output.txt", "evaluation/run_instance.log")
AS_THEY_ARE = {
    "pytest --help": "clawbench: measure coding-agent harnesses",
    "clawbench claws": "nanobot",
    "clawbench install nanobot": "installed",
    "clawbench tasks check demo__cronspan-118": "ok",
    "clawbench doctor -k nanobot": "0 faults",
    "clawbench sweep": "",
    "clawbench doctor -k 'nanobot and cronspan'": "0 faults",
}
"""Commands that are small already, with what they say."""
OF_RUNS = {"runs": "no run", "status": "2 of 2 planned cases", "verify": "sound"}
"""What the commands on runs say of those that a block has made."""


@dataclass(frozen=True)
class Rule:
    """How a command of the README is run here, and what shows that it did what the README says."""

    command: list[str]
    code: int = 0
    says: str = ""


def blocks() -> list[list[tuple[str, str]]]:
    """The commands of each `sh` block, each with its comment."""
    found = re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    rows = [[row.partition(" #")[::2] for row in block.splitlines() if row.strip()] for block in found]
    return [[(command.strip(), comment.strip()) for command, comment in block] for block in rows]


def rule_for(command: str, comment: str, artifacts: Path, run_id: str) -> Rule:
    """What to run for a command (LookupError where nobody has thought of it)."""
    words = shlex.split(command)
    if shlex.join(words) in AS_THEY_ARE:
        return Rule(words, says=AS_THEY_ARE[shlex.join(words)])
    match words:
        case ["make", "demo"]:
            # one case of the embedded set stands for all
            one = f"-k '{ONE_CASE}' --run-id={run_id} --artifacts={artifacts}"
            return Rule(["make", "demo", "N=1", f"PYTEST_ARGS={one}"], says="1 passed")
        case ["make", "test" | "test-long" as goal]:
            # this test is part of it
            return Rule(["make", "-n", goal], says=".venv/bin/pytest -n 2 --dist loadfile")
        case ["clawbench", "runs" | "status" | "verify" as what, *_]:
            return Rule([*words, f"--artifacts={artifacts}"], says=OF_RUNS[what])
        case ["pytest", *arguments]:
            return _rule_for_pytest(arguments, comment, artifacts, run_id)
    raise LookupError(f"README.md has a command that no rule is for: {command}")


def _rule_for_pytest(arguments: Sequence[str], comment: str, artifacts: Path, run_id: str) -> Rule:
    if ONE_CASE not in arguments:
        # too many to be run here: what they select is looked at
        only_look = [] if "--collect-only" in arguments else ["--collect-only", "-q"]
        claw = "openclaw" if "openclaw" in arguments else "nanobot"
        return Rule(["pytest", *arguments, *only_look], says=f"test_resolved[{claw}-")
    more = [f"--artifacts={artifacts}"]
    if not any(argument.startswith("--run-id") for argument in arguments):
        more.append(f"--run-id={run_id}")
    if "--model" not in arguments:
        return Rule(["pytest", *arguments, *more], says=f"{2 if '--samples' in arguments else 1} passed")
    outcome = Outcome(comment)
    return Rule(["pytest", *arguments, *more], int(not POLICY[outcome].passes), f"{outcome}: ")


@pytest.mark.docker
@pytest.mark.parametrize("number", range(len(blocks())))
def test_every_command_does_what_it_says(number: int, tmp_path: Path) -> None:
    for index, (command, comment) in enumerate(blocks()[number]):
        if command.startswith("export PATH="):
            assert command == 'export PATH="$PWD/.venv/bin:$PATH"'
            continue
        rule = rule_for(command, comment, tmp_path, f"readme-{os.getpid()}-{number}-{index}")
        done = run(rule.command)
        assert done.returncode == rule.code, f"{command}\n{done.stdout}"
        assert rule.says in done.stdout, f"{command}\n{done.stdout}"


def test_a_command_without_a_rule_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="no rule"):
        rule_for("make coffee", "", tmp_path, "x")


def test_the_two_commands_come_first() -> None:
    assert [command for command, _ in blocks()[0]] == ["make demo", "make test"]


def test_the_selections_are_as_large_as_told() -> None:
    said = run(["pytest", "-k", "nanobot", "--collect-only", "-q"]).stdout
    assert len(re.findall(r"test_resolved\[nanobot-demo__", said)) == 10
    assert len(re.findall(r"test_resolved\[", said)) == 10
    said = run(["pytest", "-k", "nanobot", "-m", "full", "--collect-only", "-q"]).stdout
    assert len(re.findall(r"test_resolved\[nanobot-", said)) == 350


def test_claws_that_are_told_to_have_an_adapter_have_one() -> None:
    told = re.search(r"\*\*Claws:\*\* ([\w, ]+?), each with its own adapter", README.read_text())
    assert told
    names = re.split(r", | and ", told[1])
    assert names == list(CLAWS)
    for name in names:
        assert adapter(name).name == name


def test_the_table_of_outcomes_is_the_codes() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines()]
    shown = {row[0]: row[1:] for row in rows if row[0] in set(POLICY)}
    assert list(shown) == list(POLICY)
    for outcome, policy in POLICY.items():
        report = "error" if policy.is_error else "passed" if policy.passes else "failed"
        more = ["yes" if policy.counts else "no", "yes" if policy.run_again else "no"]
        assert shown[outcome] == [policy.meaning, report, *more]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    assert links or page.name in {"threat-model.md", "conformance.md"}
    for link in links:
        target, _, anchor = link.partition("#")
        if target.startswith("https://"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {
            re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in headings
        }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_and_tests_exist(page: Path) -> None:
    for name in re.findall(r"`([\w.-]+/[\w./-]+\.\w+)(?:`|::)", page.read_text()):
        ours = (ROOT / name.split("/")[0]).is_dir() and ".local." not in name and not name.startswith((".", "art"))
        assert not ours or name in IN_A_CASE or (ROOT / name).exists(), name
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`", page.read_text()):
        assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"


def test_the_readme_is_short_and_its_picture_is_small() -> None:
    assert len(README.read_text().splitlines()) <= 150
    pictures = re.findall(r"!\[.+\]\((.+)\)", README.read_text())
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 100_000
        assert "url(" not in re.sub(r"url\(#[^)]*\)", "", (ROOT / picture).read_text())

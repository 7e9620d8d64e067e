"""docs/ci.md and its workflow: the file is what it says, and each of its commands is one that works."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.bench_run import ROOT
from support.user_commands import run

from clawbench.pytest_plugin import NOT_READY
from clawbench.pytest_plugin.conclusion import BELOW, OPEN
from clawbench.run.model_choice import providers_file
from gateway.providers import load_providers, provider_of
from reports.threshold import parse_rate

PAGE = ROOT / "docs" / "ci.md"
WORKFLOW = ROOT / "docs" / "ci" / "clawbench-lite.yml"


def test_every_test_of_the_suite_is_collected_by_the_commands_that_run_them() -> None:
    folders = [
        word
        for goal in ("test", "test-long")
        for line in run(["make", "-n", goal]).stdout.splitlines()
        if line.startswith(".venv/bin/pytest")
        for word in line.split()
        if word.startswith("tests/")
    ]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    there = {
        "::".join([str(path.relative_to(ROOT)), *inside, test])
        for path in (ROOT / "tests").rglob("test_*.py")
        for inside, test in functions_of(ast.parse(path.read_text()).body)
    }
    assert found == there


def test_no_test_module_imports_another() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        assert not re.search(r"^\s*(?:from|import) (?:[\w.]+\.)?test_\w+", path.read_text(), re.MULTILINE), path


def functions_of(body: list[ast.stmt], *inside: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The test functions that are written in a module or class, each with the classes it is in."""
    for part in body:
        if isinstance(part, ast.ClassDef) and part.name.startswith("Test"):
            yield from functions_of(part.body, *inside, part.name)
        elif isinstance(part, ast.FunctionDef) and part.name.startswith("test"):
            yield inside, part.name


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    loaded = yaml.safe_load(WORKFLOW.read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    (job,) = workflow["jobs"].values()
    return list(job["steps"])


def commands(steps: list[dict[str, Any]], settings: dict[str, str]) -> list[list[str]]:
    """The words of every command that a step runs, with the workflow's own variables in place."""
    found = []
    for step in steps:
        for line in step.get("run", "").replace("\\\n", " ").splitlines():
            text = re.sub(r"\$(\w+)", lambda name: settings.get(name[1], name[0]), line)
            found.append(shlex.split(text, comments=True))
    return found


def test_it_is_a_workflow_that_runs_on_a_schedule_with_few_rights(workflow: dict[Any, Any]) -> None:
    triggers = workflow[True]  # what YAML 1.1 makes of `on`
    assert all(len(entry["cron"].split()) == 5 for entry in triggers["schedule"])
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is False
    (job,) = workflow["jobs"].values()
    assert {"runs-on", "timeout-minutes", "steps"} <= set(job)


def test_each_step_is_valid_and_its_shell_parses(steps: list[dict[str, Any]]) -> None:
    for step in steps:
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w/-]+@v\d+", step["uses"])
        else:
            subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


def test_a_secret_is_in_the_one_step_that_needs_it(workflow: dict[Any, Any], steps: list[dict[str, Any]]) -> None:
    (holder,) = [step for step in steps if "secrets." in str(step)]
    provider, _ = provider_of(workflow["env"]["MODEL"], load_providers(providers_file()))
    assert set(holder["env"]) == {provider.key_env}
    assert "secrets." not in holder["run"]
    assert "secrets." not in str(workflow["env"])


def test_what_was_made_is_kept_whatever_the_threshold_says(steps: list[dict[str, Any]]) -> None:
    after = steps[1 + next(index for index, step in enumerate(steps) if "pytest" in step.get("run", "")) :]
    assert {step["uses"].split("@")[0] for step in after} == {"actions/cache/save", "actions/upload-artifact"}
    assert all(step["if"] == "always()" for step in after)
    restored = next(step for step in steps if step.get("uses", "").startswith("actions/cache/restore"))["with"]
    saved = next(step for step in after if "cache" in step["uses"])["with"]
    assert (restored["path"], restored["key"]) == (saved["path"], saved["key"])
    assert saved["key"].startswith(restored["restore-keys"].strip())
    assert "artifacts/${{ env.RUN_ID }}/junit.xml" in str(after)


def test_its_commands_are_those_of_this_suite(workflow: dict[Any, Any], steps: list[dict[str, Any]]) -> None:
    settings = {**workflow["env"], "RUN_ID": "lite-2026-W01"}
    parse_rate(settings["MIN_PASS_RATE"])
    ran = []
    for words in commands(steps, settings):
        match words:
            case ["timeout", *rest]:
                limit = next(word for word in rest if re.fullmatch(r"\d+m", word))
                (job,) = workflow["jobs"].values()
                assert int(limit.removesuffix("m")) < job["timeout-minutes"]
                pytest_words = rest[rest.index("pytest") :]
                # 80 cases and money: what they select is looked at, and every option is parsed
                done = run([*pytest_words, "--collect-only", "-q"])
                assert done.returncode == 0, done.stdout
                assert len(re.findall(rf"test_resolved\[{settings['CLAW']}-", done.stdout)) == 80
                ran.append("pytest")
            case ["make", *goals]:
                assert run(["make", "-n", *goals]).returncode == 0
                ran.append("make")
            case ["clawbench", *rest]:
                assert rest == ["install", settings["CLAW"]]
                ran.append("clawbench")
            case ["echo", text, ">>", target]:
                assert target in {"$GITHUB_ENV", "$GITHUB_PATH"}
                assert text
            case _:
                raise AssertionError(f"no rule is for {words}")
    assert ran == ["make", "clawbench", "pytest"]


def test_the_three_nights_of_a_week_have_one_run_id(steps: list[dict[str, Any]]) -> None:
    (line,) = [step["run"] for step in steps if "RUN_ID=" in step.get("run", "")]
    expression = re.search(r"date -u -d '(.+?)' (\+\S+?)\)", line)
    assert expression
    nights = {
        subprocess.run(
            ["date", "-u", "-d", f"{day} {expression[1]}", expression[2]],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for day in ("2026-11-28", "2026-11-29", "2026-11-30")
    }
    assert nights == {"2026-W48\n"}


@pytest.mark.docker
def test_the_pages_commands_do_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (first,), (second,) = [block.strip().splitlines() for block in blocks]
    command, _, comment = first.partition(" #")
    done = run([*shlex.split(command), f"--artifacts={tmp_path}"])
    assert done.returncode == int(comment.split(":")[0]), done.stdout
    assert "--min-pass-rate 100% is reached" in done.stdout
    printed = run([word.replace("artifacts/", f"{tmp_path}/") for word in shlex.split(second)])
    assert printed.stdout.strip() == "1.0"


def test_its_exit_statuses_are_the_codes() -> None:
    rows = dict(re.findall(r"^\| ([\d, ]+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE))
    assert list(rows) == ["0", str(BELOW), str(OPEN), "1", str(NOT_READY), "2, 3, 4, 5"]
    assert "below" in rows[str(BELOW)]
    assert "undecided" in rows[str(OPEN)]
    assert "the engine" in rows[str(NOT_READY)]

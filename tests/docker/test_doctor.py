"""`clawbench doctor`, and the same checks before a real run: what is lacking is told before anything is spent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from support.bench_run import ROOT, environment, run_bench
from support.dialects import profiles
from support.dialects.delivery import Trouble
from support.dialects.server import KEY, MODEL, DialectServer
from support.provider_world import KEY_NAME, declare, price_of

from adapters.registry import installed
from adapters.runtimes import MARKER, default_home
from clawbench.preflight import machine_checks, model_checks
from clawbench.preflight.findings import Finding, State
from clawbench.preflight.planned_run import PlannedRun
from clawbench.run.model_choice import choose
from clawbench.run.runtime_digest import DIGEST, part_digests
from clawbench.run.settings import Settings
from clawbench.run.usage import spent
from records.run_folder import RunDirectory

LOCAL = f"local/{MODEL}"
ONE = ("-k", "nanobot and cronspan")

needs_nanobot = pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed")


@pytest.fixture
def server() -> Iterator[DialectServer]:
    with DialectServer(profiles.OPENROUTER) as running:
        yield running


def doctor(*arguments: str, before: tuple[str, ...] = (), **variables: str) -> tuple[int, str]:
    """The command's exit code, and its table with each line's cells one after the other."""
    done = subprocess.run(
        [*before, sys.executable, "-c", "from clawbench.cli import app; app()", "doctor", *arguments],
        cwd=ROOT,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def states(output: str) -> dict[str, set[str]]:
    """The states that the table has for each check."""
    found: dict[str, set[str]] = {}
    for line in output.splitlines():
        for state in State:
            check, middle, _ = line.partition(f"  {state}  ")
            if middle:
                found.setdefault(check.strip(), set()).add(state)
    return found


# -- the table --------------------------------------------------------------------------------------------------


@pytest.mark.docker
@needs_nanobot
def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    code, output = doctor("-n2", *ONE, f"--artifacts={tmp_path / 'runs'}")
    assert code == 0, output
    found = states(output)
    assert {"docker", "limits", "storage", "rows", "harness", "nanobot", "nanobot's config", "memory"} <= set(
        found
    )
    assert {
        "nanobot's start",
        "images",
        "engine's disk",
        "artifacts",
        "open files",
        "git",
        "model",
        "packages",
    } <= set(found)
    assert not any("fault" in one for one in found.values()), output
    assert "1 cases of 1 instances, by nanobot, 2 agents and" in output
    assert not (tmp_path / "runs").exists(), "it leaves nothing"


@pytest.fixture
def damaged_home(tmp_path: Path) -> Path:
    """nanobot as it is installed here, without one of its libraries."""
    home = tmp_path / "home"
    shutil.copytree(default_home() / "nanobot", home / "nanobot", copy_function=os.link)
    for marker in home.glob(f"nanobot/*/{MARKER}"):
        facts = json.loads(marker.read_bytes()) | {DIGEST: part_digests(marker.parent, None).files}
        marker.unlink()
        marker.write_text(json.dumps(facts))
        next(marker.parent.glob("site-packages/pydantic_core/*.so")).unlink()
    return home


@pytest.mark.docker
@needs_nanobot
def test_a_damaged_claw_is_found_by_its_digest_and_by_a_start(tmp_path: Path, damaged_home: Path) -> None:
    code, output = doctor(*ONE, f"--artifacts={tmp_path / 'runs'}", CLAWBENCH_HOME=str(damaged_home))
    assert code == 1, output
    found = states(output)
    assert {check for check, one in found.items() if "fault" in one} == {"nanobot", "nanobot's start"}, output
    assert "clawbench install nanobot" in output
    run = run_bench(tmp_path / "runs", "damaged", *ONE, CLAWBENCH_HOME=str(damaged_home))
    assert "is not what was installed" in run.output
    assert "clawbench install nanobot" in run.output
    assert run.exit_code != 0
    assert not list(tmp_path.glob("runs/*/nanobot")), "no case began"


def test_all_that_is_lacking_is_told_at_once(tmp_path: Path, server: DialectServer) -> None:
    variables = declare(tmp_path, server)
    del variables[KEY_NAME]
    nothing = tmp_path / "home"
    code, output = doctor(
        *("-m", "lite", "-k", "hermes and django", "--model", LOCAL, f"--dataset={tmp_path / 'none.jsonl'}"),
        **variables,
        DOCKER_HOST="tcp://127.0.0.1:1",
        CLAWBENCH_HOME=str(nothing),
        HERMES_ENV_PATH=str(tmp_path),
    )
    assert code == 1, output
    found = states(output)
    assert {check for check, one in found.items() if "fault" in one} == {"docker", "hermes", "model", "rows"}, (
        output
    )
    assert "Connection refused" in output
    assert KEY_NAME in output
    assert "none.jsonl" in output


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a megabyte."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "clawbench-test", str(folder)], check=False)
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.docker
@needs_nanobot
@pytest.mark.skipif(os.getuid() != 0, reason="mounting is root's")
def test_a_machine_that_is_too_small(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as folder:
        code, output = doctor(
            *("-n8", *ONE, f"--artifacts={folder / 'runs'}"),
            before=("prlimit", "--nofile=96:96"),
            CLAW_CONTAINER_MEMORY="64m",
            CLAW_PIDS_LIMIT="3",
        )
    assert code == 1, output
    bad = {check for check, one in states(output).items() if "fault" in one}
    assert bad == {"memory", "processes", "open files", "artifacts"}, output
    for advice in ("CLAW_CONTAINER_MEMORY", "CLAW_PIDS_LIMIT", "ulimit -n", "--artifacts=DIR"):
        assert advice in output


@pytest.mark.parametrize("arguments", [("-k", "nosuchthing"), ("--max-turns=none", "--nosuch")])
def test_a_command_that_makes_no_sense(arguments: tuple[str, ...]) -> None:
    assert doctor(*arguments)[0] == 2


# -- the request to the model -----------------------------------------------------------------------------------


@needs_nanobot
def test_one_request_proves_the_model(tmp_path: Path, server: DialectServer) -> None:
    variables = declare(tmp_path, server)
    code, output = doctor(*ONE, "--model", LOCAL, **variables)
    assert "fault" not in states(output)["model (chat)"], output
    assert code == 0, output
    posts = [one for one in server.received if one.method == "POST"]
    assert len(posts) == 1
    body = json.loads(posts[0].body)
    assert (body["model"], body["stream"], len(body["tools"])) == (MODEL, True, 1)
    assert price_of(server.charges[0]) < Decimal("0.01")
    assert KEY not in output
    assert {"key", "price", "clock"} <= set(states(output))


def asked(
    choice_of: str, server: DialectServer, folder: Path, monkeypatch: pytest.MonkeyPatch, **more: object
) -> PlannedRun:
    for name, value in declare(folder, server, **more).items():
        monkeypatch.setenv(name, value)
    choice = choose(choice_of, gateway=True)
    settings = Settings(
        run_id="x",
        artifacts=folder,
        model=choice.model,
        served=choice.served,
        agent_timeout=1,
        max_turns=1,
        llm_no=0,
        eval_timeout=1,
        resume=True,
        keep_container="never",
        network="gateway",
        pids_limit=1,
        memory="1g",
    )
    return PlannedRun(settings, choice, [], [], folder / "rows")


def refusal(findings: list[Finding]) -> Finding:
    [bad] = [finding for finding in findings if finding.check.startswith("model")]
    return bad


@pytest.mark.parametrize(
    ("trouble", "wanted"),
    [
        (Trouble(401), ("fault", "HTTP 401", KEY_NAME)),
        (Trouble(500), ("fault", "HTTP 500", "address")),
        (Trouble(429), ("warning", "HTTP 429", "rate_limit")),
        (Trouble(cut=0), ("fault", "broke", "HTTPS_PROXY")),
    ],
)
def test_a_model_that_does_not_answer(
    tmp_path: Path,
    server: DialectServer,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Trouble,
    wanted: tuple[str, str, str],
) -> None:
    server.troubles.append(trouble)
    found = refusal(list(model_checks.check(asked(LOCAL, server, tmp_path, monkeypatch))))
    state, said, advice = wanted
    assert found.state == state
    assert said in found.found
    assert advice in found.to_do
    assert len(server.received) == 1, "it is asked once"


def test_a_model_that_there_is_not(tmp_path: Path, server: DialectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    meant = asked("local/vendor/other", server, tmp_path, monkeypatch)
    assert refusal(list(model_checks.check(replace(meant, request=False)))).state == "warning"
    assert not server.received, "it is asked nothing"
    found = list(model_checks.check(meant))
    assert refusal(found).state == "fault"
    assert "model's name" in refusal(found).to_do
    assert [one.state for one in found if one.check == "price"] == ["warning"]


def test_temporary_files_need_room(tmp_path: Path, server: DialectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def scratch() -> list[Finding]:
        planned = asked(LOCAL, server, tmp_path, monkeypatch)
        return [one for one in machine_checks.artifacts(planned) if one.check == "scratch"]

    assert scratch() == []
    monkeypatch.setenv("TMPDIR", "/proc")
    assert "can't be written" in scratch()[0].found, "Python would silently take another folder"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(machine_checks, "SCRATCH_BYTES", 1e18)
    [lack] = scratch()
    assert f"free in {tmp_path}" in lack.found
    assert "TMPDIR" in lack.to_do


# -- before a run -----------------------------------------------------------------------------------------------


@pytest.mark.docker
@needs_nanobot
def test_a_real_run_does_not_begin_where_something_is_at_fault(tmp_path: Path, server: DialectServer) -> None:
    variables = declare(tmp_path, server) | {KEY_NAME: "sk-local-of-nobody-4711"}
    refused = run_bench(tmp_path, "refused", "-n1", *ONE, "--model", LOCAL, **variables)
    assert refused.exit_code == 12, refused.output
    assert "HTTP 401" in refused.output
    assert "--skip-checks" in refused.output
    assert "Traceback" not in refused.output
    assert not refused.folder.exists(), "nothing was begun"

    loud = run_bench(tmp_path, "loud", *ONE, "--model", LOCAL, "--skip-checks", **variables)
    assert loud.output.count("WARNING: --skip-checks") == 2, loud.output
    assert set(loud.outcomes().values()) == {"infrastructure"}


@pytest.mark.docker
@needs_nanobot
def test_what_the_checks_cost_is_the_runs(tmp_path: Path, server: DialectServer) -> None:
    variables = declare(tmp_path, server)
    run = run_bench(tmp_path, "paid", *ONE, "--model", LOCAL, **variables)
    assert set(run.outcomes().values()) == {"empty_patch"}, run.output
    assert spent(RunDirectory(run.folder)) == sum(price_of(charge) for charge in server.charges)
    case = run.cases()["demo__cronspan-118"]
    assert Decimal(case["cost"]["priced"]) < spent(RunDirectory(run.folder)), "and no case's"
    notes = [json.loads(line) for line in (run.folder / "state.jsonl").read_text().splitlines()]
    assert [note["warnings"] for note in notes if note["event"] == "checked"] == [[]]
    answers = len(server.charges)

    again = run_bench(tmp_path, "paid", *ONE, "--model", LOCAL, **variables)
    assert again.counts == {"failed": 1}, again.output
    assert len(server.charges) == answers, "nothing is left to do, so nobody is asked"

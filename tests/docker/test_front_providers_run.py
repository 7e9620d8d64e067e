"""Whole runs against a provider: a local server that speaks its dialect, the real nanobot, real containers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.bench_run import ROOT, BenchRun, children, fresh_id, home_that_knows_no_durations, run_bench, started
from support.dialects import profiles
from support.dialects.delivery import Trouble
from support.dialects.server import KEY, DialectServer
from support.provider_world import KEY_NAME, brain, declare, price_of
from support.waiting import wait_for

from adapters.registry import installed
from clawbench.run.usage import spent
from records.run_folder import RunDirectory

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot"),
]

FIRST, SECOND = "demo__cronspan-118", "demo__ledgerlite-204"
"""In the order in which they are run, where nothing is known of how long they take."""
ONE = ("-k", "nanobot and cronspan", "--model=local/vendor/model-1", "--no-request")
BOTH = ("-k", "nanobot and (cronspan or ledgerlite)", "--model=local/vendor/model-1", "--no-request")


@pytest.fixture
def server() -> Iterator[DialectServer]:
    with DialectServer(profiles.OPENROUTER, brain(FIRST), brain(SECOND)) as running:
        yield running


def charged(server: DialectServer) -> Decimal:
    """What all replies of the server cost by the declared prices."""
    return sum((price_of(charge) for charge in server.charges), Decimal(0))


def rows(path: Path) -> list[dict[str, Any]]:
    """Every line of a file, each of which must be whole."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def files_with(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_paid_session_is_counted_exactly_and_replayed_for_free(tmp_path: Path, server: DialectServer) -> None:
    variables = declare(tmp_path, server, headers={"X-Title": "of-a-test"})
    paid = run_bench(tmp_path, fresh_id("paid"), *ONE, "--record", "--spend-limit=5", **variables)
    assert paid.counts == {"passed": 1}, paid.output
    case = paid.cases()[FIRST]
    assert Decimal(case["cost"]["priced"]) == charged(server) == spent(RunDirectory(paid.folder))
    assert case["cost"]["unpriced"] == case["unknown_usage"] == 0
    assert case["tokens"]["cache_read"] == sum(charge.cache_read for charge in server.charges)
    assert case["usage_mismatches"] == []
    behind = json.loads((paid.folder / "manifest.json").read_text())["settings"]["served"]["behind"]
    assert (behind["provider"], behind["key"], behind["headers"]) == ("local", KEY_NAME, ["X-Title"])
    assert behind["prices"]["periods"][0]["tiers"][0]["output"] == "15"
    assert not files_with(paid.folder, KEY)
    assert not files_with(paid.folder, "of-a-test"), "a header's value may be secret"
    names_nothing_of_the_host(paid)

    asked = len(server.received)
    replay = f"--model=replay:{paid.folder}"
    free = run_bench(tmp_path, fresh_id("free"), *ONE[:2], replay)
    assert free.counts == {"passed": 1}, free.output
    assert free.cases()[FIRST]["cost"] is None
    assert free.predictions()[0]["model_patch"] == paid.predictions()[0]["model_patch"]
    assert len(server.received) == asked

    lacking = run_bench(tmp_path, fresh_id("lacking"), *BOTH[:2], replay)
    assert lacking.exit_code == 4, lacking.output
    assert f"no recording of nanobot-{SECOND};" in lacking.output
    assert not lacking.folder.exists(), "nothing was run"


def names_nothing_of_the_host(run: BenchRun) -> None:
    for name in ("junit.xml", "report.json"):
        text = (run.folder / name).read_text()
        assert "hostname=" not in text
        assert str(run.folder.parent) not in text
    assert "root" not in json.loads((run.folder / "report.json").read_text())


def test_a_run_ends_in_order_at_its_spend_limit_and_goes_on_under_a_higher_one(
    tmp_path: Path, server: DialectServer
) -> None:
    variables, run_id = declare(tmp_path, server) | home_that_knows_no_durations(tmp_path), fresh_id("limit")
    cut = run_bench(tmp_path, run_id, *BOTH, "--spend-limit=0.01", **variables)
    assert cut.exit_code == 1, cut.output
    assert cut.counts == {"error": 2}
    assert cut.outcomes() == {FIRST: "run_cost_limit"}
    assert (cut.case_folder(FIRST) / "git.patch.raw").exists(), "what was done is exported"
    assert cut.predictions() == [], "and not judged"
    assert "not begun: the run's spend limit" in cut.output
    assert f"--run-id={run_id} and a higher --spend-limit" in cut.output
    answers = len(server.charges)
    assert answers == 1, "no request was let through at the limit"

    more = run_bench(tmp_path, run_id, *BOTH, "--spend-limit=5", **variables)
    assert more.counts == {"passed": 2}, more.output
    assert f"spent before under this run id: ${price_of(server.charges[0]):.4f} of --spend-limit $5" in more.output
    assert spent(RunDirectory(more.folder)) == charged(server), "with the attempt that was thrown away"
    changes = [row for row in rows(more.folder / "state.jsonl") if row["event"] == "limits"]
    assert [row["now"] for row in changes] == [{"spend_limit": "5", "samples": 1}]

    other = run_bench(tmp_path, run_id, *BOTH, **declare(tmp_path, server, transforms=["include_usage"]))
    assert other.exit_code == 4
    assert "served.behind.transforms: the run has []" in other.output


def test_a_case_at_its_own_spend_limit_is_judged_and_not_run_again(tmp_path: Path, server: DialectServer) -> None:
    variables, run_id = declare(tmp_path, server), fresh_id("case-limit")
    run = run_bench(tmp_path, run_id, *ONE, "--case-spend-limit=0.01", **variables)
    case = run.cases()[FIRST]
    assert case["ending"] == "cost_limit"
    assert case["outcome"] in {"cost_limit", "resolved"}
    assert len(run.predictions()) == 1
    asked = len(server.received)
    again = run_bench(tmp_path, run_id, *ONE, "--case-spend-limit=0.01", **variables)
    assert again.outcomes() == run.outcomes()
    assert len(server.received) == asked


def test_an_account_without_money_ends_one_case_and_no_other_begins(tmp_path: Path, server: DialectServer) -> None:
    """As DashScope reports it: with status 400, as if the request were wrong."""
    variables, run_id = declare(tmp_path, server) | home_that_knows_no_durations(tmp_path), fresh_id("account")
    error = {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}
    body = json.dumps({"error": error}).encode()
    server.always = lambda _: (400, {"Content-Type": "application/json"}, [body])
    run = run_bench(tmp_path, run_id, *BOTH, **variables)
    assert run.outcomes() == {FIRST: "infrastructure"}, run.output
    assert "Arrearage" in run.cases()[FIRST]["detail"]
    assert "not begun: the provider refuses the key or the account (HTTP 400:" in run.output
    server.reset(brain(FIRST), brain(SECOND))
    again = run_bench(tmp_path, run_id, *BOTH, **variables)
    assert again.outcomes() == {FIRST: "resolved", SECOND: "resolved"}, again.output


EXTRA = """
import os
from pathlib import Path
import clawbench.pytest_plugin
from clawbench.run.agent_run import WorkspaceShell
from support.waiting import wait_for

run = WorkspaceShell.run

def noting(self, *arguments, **named):
    result = run(self, *arguments, **named)
    if self.logs:  # it is the claw's own command; what was waited is looked at now and then
        expected = float(os.environ["EXPECTED"])
        wait_for(lambda: self.extra() >= expected)
        Path(os.environ["EXTRA"]).write_text(str(self.extra()))
    return result

WorkspaceShell.run = noting
"""


def test_waits_for_rate_limits_extend_the_budget_where_they_are_asked_to(
    tmp_path: Path, server: DialectServer
) -> None:
    """The claw's command is given the seconds that the gateway waited; test_container.py shows what follows."""
    (tmp_path / "noting.py").write_text(EXTRA)
    path = os.pathsep.join(map(str, (tmp_path, ROOT, ROOT / "tests")))
    for options, least in ((["--exclude-waits"], 3.0), ([], 0.0)):
        server.reset(brain(FIRST), brain(SECOND))
        server.troubles.append(Trouble(429, headers={"Retry-After": "3"}))
        variables = {"PYTHONPATH": path, "EXTRA": str(tmp_path / "extra"), "EXPECTED": str(least)}
        variables |= declare(tmp_path, server)
        run = run_bench(tmp_path, fresh_id("waits"), *ONE, "-p", "noting", *options, **variables)
        assert run.counts == {"passed": 1}, run.output
        case = run.cases()[FIRST]
        assert case["ending"] == "finished"
        assert case["waited"] >= 3
        assert case["retries"] == 1
        extra = float((tmp_path / "extra").read_text())
        assert extra >= 3 if options else extra == 0


def test_a_killed_gateway_ends_the_cases_at_work_and_the_rerun_does_only_them(
    tmp_path: Path, server: DialectServer
) -> None:
    server.reset(brain(FIRST, "noop"), brain(SECOND, "slow"))
    variables, run_id = declare(tmp_path, server) | home_that_knows_no_durations(tmp_path), fresh_id("gateway")
    folder = tmp_path / run_id
    case = folder / "nanobot" / SECOND
    with started(tmp_path, run_id, *BOTH, **variables) as process:
        wait_for(lambda: (case / "requests.jsonl").exists() and (case / "requests.jsonl").stat().st_size > 0)
        [gateway] = [pid for pid in children(process.pid) if is_gateway(pid)]
        os.kill(gateway, signal.SIGKILL)
        wait_for((case / "metadata.json").exists)
        output = process.communicate()[0]
    killed = BenchRun(folder, process.returncode, output)
    assert killed.outcomes() == {FIRST: "empty_patch", SECOND: "infrastructure"}, output
    assert "gateway" in killed.cases()[SECOND]["detail"]
    logged = rows(case / "requests.jsonl")
    assert all(row["ending"] for row in logged)
    broken = killed.cases()[SECOND]
    assert broken["requests"] == len(logged) > 0
    assert broken["tokens"]["output"] == sum(row["tokens"]["output"] for row in logged)
    costs = [Decimal(one["cost"]["priced"]) for one in killed.cases().values()]
    assert sum(costs) == spent(RunDirectory(folder)), "the cases add up to the log"

    server.reset(brain(FIRST), brain(SECOND))
    again = run_bench(tmp_path, run_id, *BOTH, **variables)
    assert again.outcomes() == {FIRST: "empty_patch", SECOND: "resolved"}, again.output
    assert spent(RunDirectory(folder)) > 0


def is_gateway(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):  # another child, which has ended since
        return b"gateway.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False

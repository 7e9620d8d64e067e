"""The front door to providers, without containers: what is refused, what is listed, what is reported."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from support.bench_run import ROOT, environment, run_bench
from support.dialects import profiles
from support.dialects.server import KEY, MODEL, DialectServer
from support.made_up import made_up_manifest, made_up_record
from support.provider_world import KEY_NAME, declare
from typer.testing import CliRunner

from adapters.base import CommandResult, TokenUsage
from adapters.registry import CLAWS, adapter
from clawbench.cli import app
from clawbench.run.endings import ending_of, ending_without_gateway
from clawbench.run.model_choice import check_claws, check_limits, choose
from clawbench.run.recordings import RecordingError, recorded, require_recordings
from clawbench.run.usage import mismatches, model_use, spent
from evaluation.lists import listed_instances
from evaluation.outcomes import Ending
from gateway.case_models import ENDINGS, CaseCounts, TokenCounts
from gateway.tally import Tally
from records.case_id import CaseId
from records.models import Cost as RecordedCost
from records.models import Tokens
from records.run_folder import RunDirectory
from reports.summary import summary_lines

LOCAL = f"local/{MODEL}"


@pytest.fixture
def server() -> Iterator[DialectServer]:
    with DialectServer(profiles.OPENROUTER) as running:
        yield running


@pytest.fixture
def declared(tmp_path: Path, server: DialectServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables = declare(tmp_path, server)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


# -- what is refused before anything starts -----------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("nobody/model", "known are: local"),
        ("local", "names no provider"),
        ("local/", "names no model"),
        ("gpt-9", "names no provider"),
        ("scripted:nobody", "scripted:oracle"),
        ("replay:", "folder does not exist"),
        ("replay:/no/such/folder", "folder does not exist"),
    ],
)
@pytest.mark.usefixtures("declared")
def test_a_model_that_nobody_answers_to_is_refused(model: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        choose(model, gateway=True)


@pytest.mark.parametrize(
    ("key", "said"), [(None, "not there"), ("", "empty"), ("  ", "empty"), ("sk-your-key", "placeholder")]
)
@pytest.mark.usefixtures("declared")
def test_an_invalid_key_is_refused(monkeypatch: pytest.MonkeyPatch, key: str | None, said: str) -> None:
    if key is None:
        monkeypatch.delenv(KEY_NAME)
    else:
        monkeypatch.setenv(KEY_NAME, key)
    with pytest.raises(ValueError, match=f"{KEY_NAME}.*{said}"):
        choose(LOCAL, gateway=True)


@pytest.mark.usefixtures("declared")
def test_a_limit_needs_a_price() -> None:
    check_limits(choose(LOCAL, gateway=True), ["--spend-limit"])
    check_limits(choose("local/other", gateway=True), [])
    with pytest.raises(ValueError, match="--case-spend-limit: no price is known for local/other"):
        check_limits(choose("local/other", gateway=True), ["--case-spend-limit"])
    with pytest.raises(ValueError, match="counts no costs"):
        check_limits(choose("scripted:oracle", gateway=True), ["--spend-limit"])


@pytest.mark.parametrize("known", ["input", "output"])
def test_a_limit_needs_the_price_of_input_and_of_output(
    tmp_path: Path, server: DialectServer, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    for name, value in declare(tmp_path, server, prices={MODEL: {known: 3}}).items():
        monkeypatch.setenv(name, value)
    choice = choose(LOCAL, gateway=True)
    with pytest.raises(ValueError, match=r"no price is known .* of input and output at least"):
        check_limits(choice, ["--spend-limit"])
    with pytest.raises(ValidationError, match="unknown"):
        choice.gateway_config(Decimal(1), None, Decimal(0))


def test_a_claw_and_a_provider_need_a_format_in_common(
    tmp_path: Path, server: DialectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in declare(tmp_path, server, apis=["responses"]).items():
        monkeypatch.setenv(name, value)
    choice = choose(LOCAL, gateway=True)
    monkeypatch.setattr(type(adapter("nanobot")), "apis", ("chat", "messages"))
    monkeypatch.setattr(type(adapter("hermes")), "apis", ("chat", "responses"))
    check_claws(choice, ["hermes"])
    with pytest.raises(ValueError, match=r"served as responses, but nanobot speaks chat, messages\. Leave"):
        check_claws(choice, ["hermes", "nanobot"])


@pytest.mark.usefixtures("declared")
def test_what_workers_and_manifests_are_told_holds_no_secret(tmp_path: Path) -> None:
    choice = choose(LOCAL, gateway=True)
    assert choice.upstream is not None
    assert choice.served is not None
    assert KEY not in choice.served.model_dump_json()
    assert KEY not in repr(choice)
    assert choice.served.behind is not None
    assert choice.served.behind["key"] == KEY_NAME


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--spend-limit=-1"], "--spend-limit: Input should be greater than 0"),
        (["--case-spend-limit=much"], "--case-spend-limit: Input should be a valid decimal"),
        (
            ["--network=own", "--record", "--spend-limit=1"],
            "--spend-limit and --record: only with the gateway",
        ),
        (["--network=own", "--model=scripted:oracle"], "is answered by the gateway"),
        (["--model=replay:docs", "--record"], "--record: replay:docs already answers from a recording"),
    ],
)
def test_options_that_make_no_sense_are_a_line_and_leave_nothing(
    tmp_path: Path, declared: dict[str, str], options: list[str], said: str
) -> None:
    model = [] if any(option.startswith(("--model", "--network")) for option in options) else [f"--model={LOCAL}"]
    run = run_bench(tmp_path, "x", "-k", "nanobot and cronspan", *model, *options, **declared)
    assert run.exit_code == 4, run.output
    assert said in run.output
    assert "Traceback" not in run.output
    assert not run.folder.exists()


# -- the command --------------------------------------------------------------------------------------


def test_providers_are_listed_with_the_state_of_their_keys(
    declared: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, state in ((KEY, "set"), ("sk-your-key", "placeholder"), ("", "empty")):
        monkeypatch.setenv(KEY_NAME, key)
        said = CliRunner().invoke(app, ["providers"], terminal_width=200)
        assert said.exit_code == 0, said.output
        assert "local" in said.output
        assert state in said.output
        assert KEY not in said.output


# -- what is told of use and cost ---------------------------------------------------------------------


def counts(**more: Any) -> CaseCounts:
    return CaseCounts(**{"endings": dict.fromkeys(ENDINGS, 0), **more})


def test_an_ending_at_a_limit_is_told_by_whose_limit_it_was() -> None:
    at_limit = counts(requests=3, last_ending="cost_limit", endings=dict.fromkeys(ENDINGS, 0) | {"cost_limit": 1})
    ended = CommandResult(None, b"", b"", 1.0)
    assert ending_of(ended, at_limit, lambda _: Ending.COST_LIMIT)[0] is Ending.COST_LIMIT
    ending, why = ending_of(ended, at_limit, lambda _: Ending.RUN_COST_LIMIT)
    assert (ending, "the run's spend limit" in why) == (Ending.RUN_COST_LIMIT, True)


def test_a_providers_own_words_are_in_the_detail() -> None:
    failed = counts(requests=1, last_ending="server_error", last_error="HTTP 404:\n no such model")
    ended = CommandResult(1, b"", b"", 1.0)
    assert ending_of(ended, failed)[1] == "the provider failed (HTTP 404: no such model)"
    refused = counts(requests=1, last_ending="refused", last_error="HTTP 400: odd")
    assert ending_of(ended, refused)[1].endswith("were refused (HTTP 400: odd)")
    assert ending_of(ended, counts(requests=1, last_ending="server_error"))[1] == "the provider failed (5xx)"


def test_who_left_a_request_that_was_held_back_has_ended_by_itself() -> None:
    """Otherwise a claw could turn its failure into an infrastructure error by leaving at the right moment."""
    held = counts(requests=1, last_ending="held_back", endings=dict.fromkeys(ENDINGS, 0) | {"held_back": 1})
    assert ending_of(CommandResult(1, b"", b"", 1.0), held)[0] is Ending.AGENT_ERROR
    assert ending_of(CommandResult(0, b"", b"", 1.0), held)[0] is Ending.FINISHED
    assert ending_of(CommandResult(None, b"", b"", 1.0), held)[0] is Ending.TIMEOUT


@pytest.mark.parametrize(
    ("exit_code", "ending"), [(0, Ending.FINISHED), (1, Ending.AGENT_ERROR), (None, Ending.TIMEOUT)]
)
def test_without_a_gateway_the_exit_code_is_all_there_is(exit_code: int | None, ending: Ending) -> None:
    assert ending_without_gateway(CommandResult(exit_code, b"", b"", 1.0))[0] is ending


def test_without_a_gateway_use_is_what_the_claw_tells_and_the_rest_is_unknown() -> None:
    use = model_use(None, TokenUsage(input=7, output=3), has_price=True)
    assert use.requests is None
    assert use.tokens == Tokens(input=7, output=3)
    assert use.cost == RecordedCost(priced=None, told=None, unpriced=None, held=None)


def test_a_claw_that_counts_otherwise_is_told_of() -> None:
    counted = counts(tokens=TokenCounts(input=1000, cache_read=100, output=50))
    assert mismatches(TokenUsage(input=1019, cache_read=101, output=50), counted) == []
    assert mismatches(TokenUsage(input=1021, output=None), counted) == [
        "input: the claw says 1021, the gateway counted 1000"
    ]
    assert mismatches(TokenUsage(input=1), counts(unknown_usage=1)) == [], "nobody knows all"


def test_what_is_spent_is_spent_in_attempts_that_were_thrown_away_too(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    case = run.case(CaseId("claw", "one"))
    line = {"method": "POST", "path": "/", "ending": "ok", "replied": True}
    for priced, told, held in (
        ("0.25", None, "0.25"),
        ("0.10", "0.40", "0.40"),
        (None, None, "0.10"),
        (None,) * 3,
    ):
        case.begin()
        cost = {"priced": priced, "told": told, "unpriced": int(priced is None), "held": held}
        case.requests.write_text(json.dumps(line | {"cost": cost}) + '\n{"torn')
    assert spent(run) == Decimal("0.75"), "what is held against limits"
    case.forget()
    assert spent(run) == Decimal("0.75")
    assert not case.path.exists()


def finished(run: RunDirectory, claw: str, number: int, **facts: Any) -> None:
    case = CaseId(claw, f"instance-{number}")
    run.case(case).begin()
    run.finish(run.case(case), made_up_record(case, **{"seconds": {"agent": 60.0}, **facts}))


def table(lines: Sequence[str], title: str) -> dict[str, list[str]]:
    begin = lines.index(title)
    rows = [line.split() for line in lines[begin + 1 :] if line and not line.startswith(" ")]
    return {row[0]: row[1:] for row in reversed(rows)}


def test_a_case_that_asked_nothing_makes_no_sum_a_part(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    told = TokenCounts(input=5, output=2, reasoning=1)
    for number, tally in enumerate((counts(tokens=told), Tally().counts((), 0.0)), 1):
        finished(run, "hermes", number, **model_use(tally, None, has_price=False).model_dump())
    use = table(summary_lines(run), "Model use")["hermes"]
    assert use[2:7] == ["5", "0", "0", "2", "1"]


def test_the_summary_shows_costs_and_never_takes_unknown_for_nothing(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    tokens = {"input": 1000, "cache_read": 3000, "cache_write": None, "output": 50, "reasoning": None}
    free = {"priced": None, "told": None, "unpriced": 0}
    finished(run, "openclaw", 1, tokens=tokens, requests=3, turns=3, cost=free | {"priced": "1.5"})
    finished(run, "openclaw", 2, tokens=tokens, requests=3, turns=3, cost=free | {"unpriced": 2}, unknown_usage=1)
    finished(run, "hermes", 1, tokens=tokens, requests=3, turns=3, cost=free | {"unpriced": 3})
    finished(run, "hermes", 2, agent_label="hermes-bare", tokens=tokens, cost=free | {"priced": "1"})
    lines = summary_lines(run)
    assert all(len(line) <= 100 for line in lines if not line.startswith("artifacts"))
    costs = " ".join(lines[lines.index("Cost (USD)") :])
    assert re.search(r"openclaw +>= 1\.5000 +unknown +unknown +2", costs)
    assert re.search(r"hermes +unknown +unknown +unknown +3", costs)
    assert re.search(r"hermes-bare +1\.0000", costs)
    assert re.search(r"all +>= 2\.5000", costs)
    use = " ".join(lines[lines.index("Model use") :])
    assert re.search(r"hermes-bare +\S+ +\S+ +1,000 +3,000 +unknown +50 +unknown +75\.0%", use)


def test_the_widest_summary_fits_in_100_columns(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    huge = dict.fromkeys(("input", "cache_read", "cache_write", "output", "reasoning"), 123_456_789)
    for claw in CLAWS:
        for number in range(10):
            more = {
                "cost": {"priced": "2345.6789", "told": "2345.6789", "unpriced": 123},
                "agent_label": f"{claw}-bare",
            }
            finished(
                run, claw, number, tokens=huge, requests=99_999, turns=99_999, waited=999.5, retries=99, **more
            )
    lines = summary_lines(run)
    assert max(len(line) for line in lines if not line.startswith("artifacts")) <= 100
    assert not any("…" in line for line in lines)


def test_a_free_run_has_no_table_of_costs(tmp_path: Path) -> None:
    run = RunDirectory.named(tmp_path, "run")
    finished(run, "hermes", 1, tokens={}, cost=None)
    assert "Cost (USD)" not in summary_lines(run)


# -- recordings ---------------------------------------------------------------------------------------


def test_a_recording_is_found_in_a_run_and_in_a_folder_of_cassettes(tmp_path: Path) -> None:
    one, other = listed_instances()[0], listed_instances()[1]
    line = json.dumps({"api": "messages", "request": {"model": "m/1"}}) + "\n"
    (tmp_path / f"nanobot-{one.instance_id}.jsonl").write_text(line)
    inside = tmp_path / "hermes" / one.instance_id
    inside.mkdir(parents=True)
    (inside / "cassette.jsonl").write_text(line)
    RunDirectory(tmp_path).open(made_up_manifest(served={"context_window": 4096}))
    for claw in ("nanobot", "hermes"):
        found = recorded(tmp_path, CaseId(claw, one.instance_id))
        assert (found.name, found.apis, found.context_window) == ("m/1", ("messages",), 4096)
    require_recordings(tmp_path, [CaseId("nanobot", one.instance_id), CaseId("hermes", one.instance_id)])
    (inside / "cassette.jsonl").write_text("")
    with pytest.raises(RecordingError) as error:
        require_recordings(
            tmp_path,
            [
                CaseId("nanobot", one.instance_id),
                CaseId("hermes", one.instance_id),
                CaseId("nanobot", other.instance_id),
            ],
        )
    assert f"no recording of hermes-{one.instance_id}, nanobot-{other.instance_id};" in str(error.value)


# -- the page -----------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "providers.md").read_text()
_TAKEN = """
import json, sys
import pytest
from _pytest.config import _prepareconfig
from clawbench.pytest_plugin.run_settings import settings_from
from clawbench.pytest_plugin.selection import select
for words in json.loads(sys.argv[1]):
    try:
        config = _prepareconfig(["-p", "clawbench.pytest_plugin", *words])
        select(config)
        print(settings_from(config)[0].model)
    except pytest.UsageError as error:
        print(error)
"""


def page_commands() -> list[list[str]]:
    """The commands of the page's `sh` blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.fixture
def page_variables(tmp_path: Path, server: DialectServer) -> dict[str, str]:
    """The page's own provider, and one more that it names, at the local server."""
    declared = re.search(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert declared
    providers = yaml.safe_load(declared[1])
    providers["openrouter"] = providers["mine"] | {
        "key_env": "OPENROUTER_API_KEY",
        "prices": {"deepseek/deepseek-chat": {"input": 1, "output": 1}},
    }
    for fields in providers.values():
        fields["base_url"] = server.base_url
    file = tmp_path / "providers.yaml"
    file.write_text(yaml.safe_dump(providers))
    return {"CLAWBENCH_PROVIDERS": str(file), "MINE_API_KEY": KEY, "OPENROUTER_API_KEY": KEY}


def test_every_run_that_the_page_names_would_begin(tmp_path: Path, page_variables: dict[str, str]) -> None:
    (tmp_path / "artifacts" / "paid").mkdir(parents=True)
    runs = [words[1:] for words in page_commands() if words[0] == "pytest"]
    done = subprocess.run(
        [sys.executable, "-c", _TAKEN, json.dumps(runs)],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT), **page_variables),
        capture_output=True,
        text=True,
        check=True,
    )
    *others, off = done.stdout.splitlines()
    mine = f"mine/{MODEL}"
    assert others == ["openrouter/deepseek/deepseek-chat", mine, mine, mine, "replay:paid"]
    assert off == "own" or "a configuration of your own" in off


def test_the_other_commands_of_the_page_work(tmp_path: Path, page_variables: dict[str, str]) -> None:
    others = [words for words in page_commands() if words[0] not in {"pytest", "export"}]
    assert [words[:2] for words in others] == [["clawbench", "providers"]]
    said = CliRunner().invoke(app, others[0][1:], env=page_variables, terminal_width=200)
    assert "mine" in said.output

"""Every token and dollar is counted once: what the provider says that it charged, the log's sum, the counts."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from support.dialects.delivery import Delivery, Trouble
from support.dialects.profiles import ANTHROPIC, DASHSCOPE, DEEPSEEK, DIALECTS, OPENAI, OPENROUTER, Dialect
from support.dialects.server import MODEL, DialectServer
from support.relay_world import (
    COMMANDS,
    PRICES,
    World,
    ask,
    charged,
    classes,
    converse,
    relaying,
    runs,
    user,
)

from gateway.case_models import Api, CaseCounts, TokenCounts
from gateway.exchange import Exchange
from gateway.tally import Tally

CACHED = {"type": "ephemeral"}
APIS: tuple[Api, ...] = ("chat", "responses", "messages")
SUMS = ("input", "cache_read", "cache_write", "output")


def reconcile(world: World, counts: CaseCounts, case_id: str = "case") -> None:
    """The case's counts are the sums of its log."""
    log = [line for line in world.log(case_id) if line["method"] == "POST"]
    assert counts.requests == len(log)
    assert counts.turns == sum(line["ending"] in ("ok", "empty") for line in log)
    endings = Counter(line["ending"] for line in log)
    assert {ending: number for ending, number in counts.endings.items() if number} == dict(endings)
    replied = [line for line in log if line["replied"]]
    tokens = [line["tokens"] for line in replied if line["tokens"]]
    for name in SUMS:
        known = [line[name] for line in tokens if line[name] is not None]
        assert getattr(counts.tokens, name) == (sum(known) if known or not replied else None)
    assert counts.unknown_usage == sum(line["tokens"] is None for line in replied)
    for name in ("priced", "told"):
        known_costs = [Decimal(line["cost"][name]) for line in replied if line["cost"][name] is not None]
        assert getattr(counts.cost, name) == (sum(known_costs) if known_costs else None)
    assert counts.cost.unpriced == sum(line["cost"]["unpriced"] for line in replied)


@pytest.mark.parametrize("dialect", [OPENAI, OPENROUTER, DEEPSEEK], ids=lambda dialect: dialect.name)
def test_an_automatic_cache_is_counted(dialect: Dialect, tmp_path: Path) -> None:
    with DialectServer(dialect) as server, relaying(server, tmp_path) as world:
        for stream in (False, True):
            server.reset(runs(*COMMANDS))
            converse(world.open(), "chat", stream=stream)
            counts = world.client.close_case("case")
            fresh, read, _, written_out = charged(server)
            assert read > 0
            tokens = counts.tokens
            assert (tokens.input, tokens.cache_read, tokens.output) == (fresh, read, written_out)
            assert tokens.reasoning == sum(charge.reasoning for charge in server.charges)
            reconcile(world, counts)


def test_a_marked_cache_is_counted_in_all_four_classes(tmp_path: Path) -> None:
    with DialectServer(ANTHROPIC) as server, relaying(server, tmp_path) as world:
        for stream, manner in ((False, "careful"), (True, "quick")):
            server.reset(runs(*COMMANDS))
            system = [{"type": "text", "text": f"You are {manner}. " * 600, "cache_control": CACHED}]
            converse(world.open(), "messages", stream=stream, system=system)
            counts = world.client.close_case("case")
            assert classes(counts.tokens) == charged(server)
            assert all(charged(server))
            reconcile(world, counts)


def test_dashscope_reports_its_cache_only_with_the_transform(tmp_path: Path) -> None:
    question = "Please look at this. " * 400
    with DialectServer(DASHSCOPE, runs(*COMMANDS)) as server:
        with relaying(server, tmp_path / "plain") as world:
            wire = world.open()
            for _ in range(2):
                ask(wire, "chat", user(question), stream=True)
            assert world.client.close_case("case").tokens.cache_read is None
        server.reset(runs(*COMMANDS))
        with relaying(server, tmp_path / "marked", transforms=("dashscope_cache_control",)) as world:
            wire = world.open()
            for _ in range(2):
                ask(wire, "chat", user(question), stream=True)
            counts = world.client.close_case("case")
            assert classes(counts.tokens) == charged(server)
            assert counts.tokens.cache_read == counts.tokens.cache_write
            assert b"cache_control" not in wire.seen[0].request


def test_the_providers_own_cost_is_kept_to_the_last_digit(tmp_path: Path) -> None:
    with DialectServer(OPENROUTER) as server, relaying(server, tmp_path) as world:
        for api in APIS:
            server.reset(runs(*COMMANDS))
            converse(world.open(), api, stream=True)
            counts = world.client.close_case("case")
            assert counts.cost.told == sum(Decimal(repr(float(charge.cost or 0))) for charge in server.charges)
            assert (counts.cost.priced, counts.cost.unpriced) == (None, 3)
            reconcile(world, counts)


def test_the_table_prices_each_class(tmp_path: Path) -> None:
    with (
        DialectServer(OPENAI, runs(*COMMANDS)) as server,
        relaying(server, tmp_path, prices={MODEL: PRICES}) as world,
    ):
        converse(world.open(), "chat", stream=True)
        counts = world.client.close_case("case")
        fresh, read, _, output = charged(server)
        assert counts.cost.priced == (fresh * Decimal(2) + read * Decimal("0.2") + output * Decimal(8)) / 1_000_000
        assert counts.cost.unpriced == 0
        reconcile(world, counts)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_missing_usage_is_unknown_and_never_zero(dialect: Dialect, tmp_path: Path) -> None:
    delivery = Delivery(usage=False)
    with DialectServer(dialect, runs(*COMMANDS), delivery=delivery) as server, relaying(server, tmp_path) as world:
        wire, api = world.open(), dialect.apis[0]
        if api == "messages":
            with pytest.raises(Exception):  # noqa: B017, PT011 - its library wants a usage
                ask(wire, api, user(), stream=True)
        else:
            ask(wire, api, user(), stream=True)
        counts = world.client.close_case("case")
        assert (counts.turns, counts.unknown_usage, counts.cost.unpriced) == (1, 1, 1)
        assert set(counts.tokens.model_dump().values()) == {None}
        (line,) = world.log()
        assert line["tokens"] is None or set(line["tokens"].values()) == {None}


def test_many_cases_at_once_add_up(tmp_path: Path) -> None:
    with DialectServer(OPENROUTER, runs(*COMMANDS)) as server, relaying(server, tmp_path) as world:
        names = [f"case-{number}" for number in range(12)]
        wires = {name: world.open(name) for name in names}
        for number in range(3):
            server.troubles.extend([Trouble(), Trouble(500), Trouble(event=502), Trouble(cut=200)][: 4 - number])

        def work(name: str) -> None:
            for stream in (True, False):
                try:
                    converse(wires[name], "chat", stream=stream)
                except Exception:  # noqa: BLE001, S112 - troubles are what this test orders
                    continue

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(work, names))
        for name in names:
            world.settle(name)
        counts = {name: world.client.close_case(name) for name in names}
        for name in names:
            reconcile(world, counts[name], name)
        assert sum(one.requests for one in counts.values()) == len(server.received)
        complete = [sent for sent in server.sent if sent.complete and b"Something went wrong" not in sent.body]
        for name in ("input", "cache_read", "output"):
            total = sum(
                getattr(sent.charge, name) for sent in complete if b"Something went wrong" not in sent.body
            )
            assert sum(getattr(one.tokens, name) or 0 for one in counts.values()) == total


def test_finished_requests_are_kept_as_sums_only() -> None:
    def sizes(requests: int) -> dict[str, int]:
        tally = Tally()
        for number in range(requests):
            exchange = Exchange("POST", "/v1/chat/completions", model="m", number=number)
            exchange.ending, exchange.replied, exchange.tokens = "ok", True, TokenCounts(input=1)
            tally.add(exchange)
        assert tally.counts((), 0.0).tokens.input == requests
        return {name: len(value) for name, value in vars(tally).items() if hasattr(value, "__len__")}

    assert sizes(100) == sizes(1)

"""The tool filter: what reaches the model is what is declared, in every shape of a request and for a real claw."""

from __future__ import annotations

import copy
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_run import run_bench

from adapters.registry import adapter, installed
from gateway.case_models import CaseCounts, CaseSpec
from gateway.client import Gateway, GatewayClient
from gateway.removed_calls import UNKNOWN_TOOL
from gateway.tool_filter import filter_tools, tool_name

NAMES = ("exec", "read_file", "cron", "spawn", "web_search")
MESSAGES = [{"role": "user", "content": "Fix it."}]


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def custom(name: str) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name}}


def of_the_provider(name: str) -> dict[str, Any]:
    return {"type": name}


def old(name: str) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object"}}


names = st.sampled_from(NAMES)
tools = st.builds(lambda make, name: make(name), st.sampled_from([function, custom, of_the_provider]), names)
words = st.sampled_from(["auto", "none", "required"])
some = st.builds(
    lambda of: {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": of}},
    st.lists(tools, min_size=1),
)
requests = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.just(MESSAGES)},
    optional={
        "tools": st.lists(tools, max_size=6),
        "tool_choice": st.one_of(words, tools, some),
        "parallel_tool_calls": st.booleans(),
        "functions": st.lists(names.map(old), max_size=4),
        "function_call": st.one_of(words, names.map(lambda name: {"name": name})),
        "temperature": st.just(0.1),
    },
)
alloweds = st.one_of(st.none(), st.sets(names).map(frozenset))


def named(request: dict[str, Any], *keys: str) -> list[str]:
    return [tool_name(tool) for key in keys for tool in request.get(key, [])]


def chosen(choice: object) -> set[str]:
    """The tools that a choice names."""
    if not isinstance(choice, dict):
        return set()
    if choice.get("type") == "allowed_tools":
        return {tool_name(tool) for tool in choice["allowed_tools"]["tools"]}
    return {tool_name(choice)}


@given(requests, alloweds)
def test_what_is_passed_on(request: dict[str, Any], allowed: frozenset[str] | None) -> None:
    before = copy.deepcopy(request)
    done = filter_tools(request, allowed)
    after = dict(done.request)
    assert request == before, "the claw's own request is not changed"
    assert list(done.offered) == named(request, "tools", "functions")
    assert list(done.passed) == named(after, "tools", "functions")
    assert set(done.passed).isdisjoint(done.removed)
    assert set(done.passed) | set(done.removed) == set(done.offered)
    if allowed is None or not done.removed:
        assert after == before
        return
    assert set(done.passed) <= allowed
    assert set(done.removed).isdisjoint(allowed)
    for key, choice, more in (("tools", "tool_choice", "parallel_tool_calls"), ("functions", "function_call", "")):
        kept = [tool for tool in request.get(key, []) if tool_name(tool) in allowed]
        gone = set(named(request, key)) - set(named(after, key))
        assert after.get(key, []) == kept
        assert chosen(after.get(choice)).isdisjoint(gone)
        if gone and not kept:
            assert not {key, choice, more} & set(after), "neither an empty list nor what may not stand without it"
        elif not gone:
            assert [after.get(name) for name in (key, choice, more)] == [
                request.get(name) for name in (key, choice, more)
            ]
        else:
            assert (choice in after) == (choice in request)
    untouched = {"model", "messages", "temperature"}
    assert {k: v for k, v in after.items() if k in untouched} == {
        k: v for k, v in before.items() if k in untouched
    }


@pytest.mark.parametrize(
    ("choice", "passed_on"),
    [
        (function("cron"), "auto"),
        (function("exec"), function("exec")),
        (function("never_offered"), function("never_offered")),
        ("required", "required"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function("cron")]}}, "auto"),
    ],
)
def test_a_choice_that_names_a_removed_tool_becomes_auto(choice: object, passed_on: object) -> None:
    request = {"tools": [function("exec"), function("cron")], "tool_choice": choice}
    assert filter_tools(request, {"exec"}).request == {"tools": [function("exec")], "tool_choice": passed_on}


@pytest.mark.parametrize("odd", [None, [], 7, {}, {"type": 7}, {"function": {"name": 7}}, {"type": ["x"]}])
def test_what_has_no_name_is_not_allowed(odd: object) -> None:
    assert filter_tools({"tools": [odd, function("exec")]}, {"exec"}).request == {"tools": [function("exec")]}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Gateway.start(tmp_path_factory.mktemp("run")) as started:
        yield started


class Served:
    """A case of the gateway's whose model would run a command."""

    def __init__(
        self,
        gateway: Gateway,
        log: Path,
        allowed: tuple[str, ...] | None,
        model: str = "scripted:loop",
        bodies: Path | None = None,
    ) -> None:
        self._client = GatewayClient(gateway.control)
        self._log = log
        spec = CaseSpec(case_id="case", model=model, request_log=log, request_bodies=bodies, allowed_tools=allowed)
        self._path = self._client.open_case(spec)

    def ask(self, **request: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self._path))
        body = json.dumps({"model": "m", "messages": MESSAGES, **request})
        connection.request("POST", "/v1/chat/completions", body)
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    def called(self, **request: Any) -> str | None:
        """The tool that the model calls."""
        status, answer = self.ask(**request)
        assert status == 200, answer
        calls = answer["choices"][0]["message"].get("tool_calls")
        return calls[0]["function"]["name"] if calls else None

    def logged(self) -> list[tuple[list[str], list[str]]]:
        rows = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [(row["offered"], row["tools"]) for row in rows]

    def close(self) -> CaseCounts:
        return self._client.close_case("case")


def shell(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"command": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def test_the_model_calls_only_what_reached_it(gateway: Gateway, tmp_path: Path) -> None:
    served = Served(gateway, tmp_path / "log", ("bash", "read_file"))
    assert served.called(tools=[shell("exec"), shell("bash"), function("cron")]) == "bash"
    assert served.called(tools=[shell("exec"), function("cron")], tool_choice=function("exec")) is None
    assert served.called(tools=[shell("bash")]) == "bash"
    counts = served.close()  # a request is logged when it is over, a moment after its answer
    assert served.logged() == [(["exec", "bash", "cron"], ["bash"]), (["exec", "cron"], []), (["bash"], ["bash"])]
    assert (counts.tool_surface, counts.removed_tools) == (["bash"], ["cron", "exec"])


def test_a_call_of_a_removed_tool_gets_a_name_that_the_claw_does_not_know(
    gateway: Gateway, tmp_path: Path
) -> None:
    served = Served(gateway, tmp_path / "log", ("bash",), model="scripted:stray", bodies=tmp_path / "bodies")
    tools = [shell("bash"), shell("exec"), function("cron")]
    messages: list[dict[str, Any]] = list(MESSAGES)
    called: list[str] = []
    while True:
        _, answer = served.ask(tools=tools, messages=messages)
        said = answer["choices"][0]["message"]
        messages.append(said)
        if "tool_calls" not in said:
            break
        called.append(said["tool_calls"][0]["function"]["name"])
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": f"no tool {called[-1]}"}
        messages.append(result)
    assert called == ["quuxify", UNKNOWN_TOOL, UNKNOWN_TOOL]
    served.close()
    rows = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [row["removed_calls"] for row in rows] == [[], ["exec"], ["cron"], []]
    bodies = [path.read_text() for path in sorted((tmp_path / "bodies").iterdir())]
    assert UNKNOWN_TOOL in bodies[-1], "what is kept is what the claw sent"


def test_without_a_list_all_tools_pass(gateway: Gateway, tmp_path: Path) -> None:
    served = Served(gateway, tmp_path / "log", None)
    assert served.called(tools=[shell("exec"), function("cron")]) == "exec"
    assert served.called(functions=[old("f")]) is None
    counts = served.close()
    assert (counts.tool_surface, counts.removed_tools) == (["cron", "exec", "f"], [])


def test_what_is_no_request_is_refused_before_it_is_filtered(gateway: Gateway, tmp_path: Path) -> None:
    served = Served(gateway, tmp_path / "log", ("exec",))
    assert served.ask(tools=[{"function": {}}])[0] == 400
    assert served.ask(tools=7)[0] == 400
    assert served.ask(tools=None, functions="x")[0] == 200
    assert served.close().removed_tools == []


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_the_surface_of_a_real_run_is_the_declared_one(tmp_path: Path) -> None:
    run = run_bench(tmp_path, "surface", "-k", "nanobot and cronspan")
    assert run.outcomes() == {"demo__cronspan-118": "resolved"}, run.output
    folder = run.case_folder("demo__cronspan-118")
    declared = sorted(adapter("nanobot").allowed_tools or ())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert sorted(manifest["allowed_tools"]) == declared
    counts = json.loads((folder / "usage.json").read_text())["gateway"]
    assert counts["tool_surface"] == declared
    assert {"cron", "spawn", "message", "list_sessions", "search_sessions"} <= set(counts["removed_tools"])
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["removed_tools"] == counts["removed_tools"]
    rows = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    for row in rows:
        assert sorted(row["tools"]) == declared
        assert sorted(set(row["offered"]) - set(row["tools"])) == counts["removed_tools"]

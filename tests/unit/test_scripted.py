"""The scripted model: what it tells a claw to run, run for real in real repositories."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.task_repository import make_task

from gateway.behaviours.base import CHUNK, Fault, Job
from gateway.behaviours.behaviour_table import BEHAVIOURS, parse_model
from gateway.chat_wire import ChatRequest, FunctionSpec, Reply, parse_request
from gateway.scripted import NO_SHELL, SIDE_REPLY, ScriptedModel, steps_done
from gateway.tools import find_shell_tool


def tree(repo: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(repo)): path.read_bytes()
        for path in repo.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(repo).parts
    }


def shell_tool(name: str, key: str, **more: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {key: {"type": "string"}, **more}, "required": [key]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


EXEC = shell_tool("exec", "command")


def request(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (EXEC,)) -> ChatRequest:
    body = {"model": "m", "messages": list(messages), "tools": list(tools)}
    return parse_request(body)


def model(behaviour: str, patch: str = "", workdir: str = "/testbed") -> ScriptedModel:
    # The case's id names a folder in /tmp, which tests in other processes must not share.
    return ScriptedModel(Job(workdir, workdir, patch), parse_model(f"scripted:{behaviour}"))


def play(played: ScriptedModel, as_user: bool = False) -> tuple[str, list[str]]:
    """Be a claw: run what the model says until it gives its final text. Returns that and all outputs."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix it."}]
    outputs: list[str] = []
    for _ in range(50):
        reply = played.answer(request(messages))
        assert isinstance(reply, Reply)
        if reply.call is None:
            return reply.text, outputs
        command = json.loads(reply.call.arguments)["command"]
        assert len(command) < 100_000
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        outputs.append(output)
        function = {"name": "exec", "arguments": reply.call.arguments}
        call = {"id": reply.call.id, "type": "function", "function": function}
        if as_user:
            messages.append({"role": "assistant", "content": reply.text})
            messages.append({"role": "user", "content": output})
        else:
            messages.append({"role": "assistant", "content": reply.text, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
    raise AssertionError("the model did not come to an end")


LINES = [f"def f{number}():\n    return {number}\n".encode() for number in range(60)]
BEFORE = {"src/a.py": b"".join(LINES), "b.txt": b"one\r\ntwo\r\n", "gone.txt": b"bye\n"}
AFTER = {
    "src/a.py": b"".join(LINES).replace(b"return 3\n", b"return 33\n").replace(b"return 50\n", b"return 5000\n"),
    "b.txt": b"one\r\n2\r\n",
    "new/c d.py": "print('é')".encode(),
}


@pytest.mark.parametrize("behaviour", ["oracle", "slow"])
@pytest.mark.parametrize("as_user", [False, True])
def test_oracle_makes_the_gold_tree(tmp_path: Path, behaviour: str, as_user: bool) -> None:
    repo = tmp_path / "it's a repo"
    patch = make_task(repo, BEFORE, AFTER)
    text, _ = play(model(behaviour, patch, str(repo)), as_user)
    assert tree(repo) == AFTER
    assert text.startswith("I fixed the issue")
    assert not Path(Job(str(repo), "", "").scratch).exists()


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["C"]), min_size=1)
# A gold patch is text: what is neither UTF-8 nor binary for git can't be in one.
contents = st.one_of(st.binary(max_size=300).map(b"\0".__add__), st.text(max_size=300).map(str.encode))
files = st.dictionaries(
    names.filter(lambda name: name not in (".", "..") and name.lower() != ".git" and len(name.encode()) < 200),
    contents,
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=files, after=files)
@example(before={"a": b""}, after={"a": b"x", "b": b""})
@example(before={"a": b"x\r\n"}, after={"a": b"x\n"})
@example(before={"big": b""}, after={"big": bytes(range(256)) * 2000})
def test_oracle_carries_any_patch(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    repo = tmp_path_factory.mktemp("any") / "repo"
    patch = make_task(repo, before, after)
    play(model("oracle", patch, str(repo)))
    assert tree(repo) == after


def test_big_patches_go_in_many_small_commands(tmp_path: Path) -> None:

    noise = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(5000)]
    big = "\n".join(noise).encode()
    repo = tmp_path / "repo"
    patch = make_task(repo, {"a": b"x\n"}, {"a": b"y\n", "big": big})
    played = model("oracle", patch, str(repo))
    _, outputs = play(played)
    assert len(outputs) > len(patch) // CHUNK
    assert tree(repo)["big"] == big


def test_repeated_requests_get_the_same_harmless_command(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    patch = make_task(repo, BEFORE, AFTER)
    played = model("oracle", patch, str(repo))
    first, second = (played.answer(request([{"role": "user", "content": "x"}])) for _ in range(2))
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert first.call
    assert second.call
    assert first.call.arguments == second.call.arguments
    assert first.call.id != second.call.id
    command = json.loads(first.call.arguments)["command"]
    for _ in range(2):
        subprocess.run(["sh", "-c", command], check=True)
    play(played)
    assert tree(repo) == AFTER


def test_step_survives_a_shortened_history() -> None:
    reply = model("loop").answer(request([{"role": "user", "content": "x"}]))
    assert isinstance(reply, Reply)
    assert reply.call
    kept = {"role": "assistant", "content": [{"type": "tool_use", "id": reply.call.id.replace("0000", "0007")}]}
    summary = {"role": "user", "content": "summary of what came before: call_cb0099x000000000000"}
    assert steps_done([summary, kept, {"role": "user", "content": "result"}]) == 8
    assert steps_done([summary]) == 0
    assert steps_done([summary, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]) == 2


SOURCES = {
    "py": b"import os\n\n\ndef f(x):\n    y = 1\n    return x\n\n\ndef g():\n    return f(1)\n",
    "js": b"'use strict';\nfunction f(x) {\n  return x;\n}\nmodule.exports = { f };\n",
    "php": b"<?php\nfunction f($x) {\n    return $x;\n}\n",
    "c": b"#define F(x) \\\n    do { \\\n        return x; \\\n    } while (0)\nint f(int x) { F(x); }\n",
}


@pytest.mark.parametrize("suffix", SOURCES)
def test_wrong_changes_the_source_and_fixes_nothing(tmp_path: Path, suffix: str) -> None:
    repo, name = tmp_path / "repo", f"src/a.{suffix}"
    before = {name: SOURCES[suffix], "other": b"x\n"}
    after = {name: SOURCES[suffix].replace(b"return", b"return 1 +"), "other": b"x\n"}
    patch = make_task(repo, before, after)
    play(model("wrong", patch, str(repo)))
    done = tree(repo)
    assert [path for path in done if done[path] != before[path]] == [name]
    assert done[name].replace(b"\n", b"") == before[name].replace(b"\n", b"")
    if suffix == "c":
        assert b"\\\n\n" not in done[name]
    if suffix == "php":
        assert done[name].startswith(b"<?php")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a.py": b"x = 1\n"}, {"a.py": b"x = 1\n", "b.py": b"y = 1\n"}),
        ({"a.py": b"x = 1\n", "b.py": b"y = 1\n"}, {"a.py": b"x = 1\n"}),
        ({"a.py": b"x = 1"}, {"a.py": b"x = 2"}),
        ({"a.py": b"x = 1\n"}, {"a.py": b"x = 2\n"}),
        ({"a.py": b"x = 1\r\ny = 2\r\n"}, {"a.py": b"x = 1\r\ny = 3\r\n"}),
        ({"a.py": b"x\n", "i.bin": b"\0\1"}, {"a.py": b"x\n", "i.bin": b"\0\2"}),
        ({"a.py": b"x\n"}, {"a.py": b"x\n"}),
    ],
)
def test_wrong_always_changes_something(tmp_path: Path, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    repo = tmp_path / "repo"
    patch = make_task(repo, before, after)
    play(model("wrong", patch, str(repo)))
    assert tree(repo) not in (before, after)
    assert set(tree(repo)) == set(before)


def test_partial_applies_some_hunks(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    patch = make_task(repo, BEFORE, AFTER)
    play(model("partial", patch, str(repo)))
    done = tree(repo)
    changed = {name for name in BEFORE.keys() | AFTER.keys() if done.get(name) != BEFORE.get(name)}
    right = {name for name in changed if done.get(name) == AFTER.get(name)}
    assert right
    assert done != AFTER


def test_partial_of_one_hunk_is_wrong(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    patch = make_task(repo, {"a.py": b"x = 1\n"}, {"a.py": b"x = 2\n"})
    play(model("partial", patch, str(repo)))
    assert tree(repo) == {"a.py": b"x = 1\n\n"}


@pytest.mark.parametrize("behaviour", ["noop", "chatty"])
def test_behaviours_that_only_talk_change_nothing(tmp_path: Path, behaviour: str) -> None:
    repo = tmp_path / "repo"
    patch = make_task(repo, BEFORE, AFTER)
    text, outputs = play(model(behaviour, patch, str(repo)))
    assert (outputs, tree(repo)) == ([], BEFORE)
    assert (patch in text) == (behaviour == "chatty")


def test_loop_never_ends_and_never_repeats_itself() -> None:
    played = model("loop")
    commands = set()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "x"}]
    for _ in range(30):
        reply = played.answer(request(messages))
        assert isinstance(reply, Reply)
        assert reply.call
        commands.add(json.loads(reply.call.arguments)["command"])
        messages.append({"role": "assistant", "tool_calls": [{"id": reply.call.id}]})
    assert len(commands) == 30


def test_side_requests_do_not_advance_and_a_missing_shell_is_reported() -> None:
    messages = [{"role": "user", "content": "Give this chat a title."}]
    read = shell_tool("read_file", "path")
    patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    assert model("oracle", patch).answer(request(messages, [])) == Reply(SIDE_REPLY)
    assert model("oracle", patch).answer(request(messages, [read])) == Reply(NO_SHELL)
    assert model("oracle", "").answer(request(messages)) == Reply(
        "No fix is known for this issue. I changed nothing."
    )


@pytest.mark.parametrize("fault", ["hang", "broken", "unauthorized", "garbage"])
def test_faults_hit_every_request(fault: str) -> None:
    assert isinstance(model(fault).answer(request([{"role": "user", "content": "x"}], [])), Fault)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_every_behaviour_has_a_line_and_final_texts_begin_with_a_sentence(name: str) -> None:
    behaviour = BEHAVIOURS[name]
    assert behaviour.about
    assert "\n" not in behaviour.about
    text = behaviour.conclude(Job("c", "/testbed", "--- a/x\n"), "")
    assert text[0].isupper()
    assert ". " in text or text.endswith(".")


@pytest.mark.parametrize("bad", ["", "oracle", "scripted:", "scripted:nope", "gpt-x"])
def test_an_unknown_model_is_refused_with_the_list_of_models(bad: str) -> None:
    with pytest.raises(ValueError, match=r"scripted:oracle, .*scripted:tamper"):
        parse_model(bad)


def arguments(tools: list[dict[str, Any]]) -> tuple[str, dict[str, Any]] | None:
    functions = request([{"role": "user"}], tools).functions
    tool = find_shell_tool(functions)
    return (tool.function.name, json.loads(tool.arguments("echo hi", "/testbed"))) if tool else None


def test_known_tool_names_come_first() -> None:
    odd = shell_tool("run_anything", "script")
    assert arguments([odd, EXEC]) == ("exec", {"command": "echo hi"})
    assert arguments([odd]) == ("run_anything", {"script": "echo hi"})
    assert arguments([shell_tool("write_file", "path")]) is None


def test_openclaw_is_told_to_wait() -> None:
    tool = shell_tool("exec", "command", yieldMs={"type": "number"}, timeout={"type": "number"})
    assert arguments([tool]) == ("exec", {"command": "echo hi", "yieldMs": 120_000, "timeout": 120})


def test_code_run_has_no_script_in_its_schema() -> None:
    code = {"type": "string", "enum": ["python", "bash"], "default": "python"}
    parameters = {"type": "object", "properties": {"type": code, "cwd": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "code_run", "parameters": parameters}}
    expected = {"type": "bash", "script": "echo hi", "cwd": "/testbed", "timeout": 120}
    assert arguments([tool]) == ("code_run", expected)


def test_required_properties_are_filled() -> None:
    properties = {
        "cmd": {"type": "string"},
        "shell": {"enum": ["zsh", "bash"]},
        "workdir": {"type": ["string", "null"]},
        "why": {"type": "string"},
        "background": {"type": "boolean"},
        "timeout": {"type": "integer"},
        "env": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    }
    schema = {"type": "object", "properties": properties, "required": [*properties, "unheard-of"]}
    name, values = arguments([{"type": "function", "function": {"name": "do", "parameters": schema}}]) or ("", {})
    assert (name, values["cmd"], values["shell"], values["workdir"]) == ("do", "echo hi", "bash", "/testbed")
    assert (values["background"], values["timeout"], values["env"]) == (False, 120, {})
    assert {"why", "unheard-of"} <= set(values)


def test_lists_of_arguments_are_served() -> None:
    parameters = {"type": "object", "properties": {"command": {"type": "array"}}}
    tool = {"type": "function", "function": {"name": "shell", "parameters": parameters}}
    assert arguments([tool]) == ("shell", {"command": ["bash", "-c", "echo hi"]})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keywords = st.sampled_from(["properties", "required", "type", "enum", "default", "anyOf", "command"])


@given(schema=st.dictionaries(keywords, json_values), inner=st.dictionaries(keywords, json_values))
def test_any_schema_is_accepted(schema: dict[str, Any], inner: dict[str, Any]) -> None:
    for parameters in (schema, {"properties": {"command": inner, "x": schema}, "required": ["x"]}):
        tool = find_shell_tool([FunctionSpec(name="exec", parameters=parameters)])
        if tool:
            assert "command" in tool.arguments("echo", "/testbed")

"""The bare adapter: which patch a message says, and what a real claw's message is judged by."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_run import ROOT, BenchRun, environment, run_bench
from support.user_commands import documented, run

from adapters.generic import generic_adapter
from adapters.registry import adapter, installed
from evaluation.message_patch import patch_in

DIFF = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n-old\n+new\n \n"
OTHER = "--- a/y\n+++ b/y\n@@ -3 +3,2 @@\n same\n+more\n"
PROSE = (
    "I found the cause and mended it.",
    "Index of what I did:\n\n- one\n- two\n+ three",
    "--- \n\nA rule, and a header that is none:\n--- a/x\n+++ b/x",
    "diff --git is what I ran.",
    "```python\nprint('@@ -1 +1 @@')\n```",
    "~~~\n--- a/x\n~~~",
    "````text\n```\n````",
)

contents = st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=8), max_size=12)
odd_contents = st.lists(
    st.sampled_from(
        ["", "```", "~~~~", "-- ", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "diff --git a/x b/x", "\\", "\r"]
    ),
    max_size=12,
)


def diff_of(old: Sequence[str], new: Sequence[str]) -> str:
    """A unified diff as tools write it; "" where nothing changes."""
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, "a/f", "b/f", lineterm=""))


files = st.one_of(contents, odd_contents)
diffs = st.builds(diff_of, files, files).filter(bool)
fences = st.sampled_from(["", "```", "```diff", "```diff title=fix", "~~~patch", "````"])


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, str]:
    """A message, and the patch that it says."""
    said, patch = [], ""
    for _ in range(draw(st.integers(0, 4))):
        said.append(draw(st.sampled_from(PROSE)) + "\n\n")
        diff, fence = draw(diffs), draw(fences)
        mark = fence.rstrip("abcdefghijklmnopqrstuvwxyz= ")
        said.append(f"{fence}\n{diff}{mark}\n" if fence else f"{diff}\n")
        patch += diff
    said.append(draw(st.sampled_from(["", *PROSE])))
    return "".join(said), patch


@given(messages(), st.booleans())
def test_the_diffs_are_found_whole_and_nothing_else_is(said: tuple[str, str], crlf: bool) -> None:
    message, patch = said
    if crlf:
        message, patch = message.replace("\n", "\r\n"), patch.replace("\n", "\r\n")
    assert patch_in(message) == patch


@given(st.one_of(st.text(), st.lists(st.sampled_from([*DIFF.splitlines(), "", "```", "prose"])).map("\n".join)))
def test_any_text_can_be_read_and_only_its_own_lines_come_out(text: str) -> None:
    lines = patch_in(text).split("\n")
    said = iter([*text.split("\n"), ""])
    assert all(any(line == other for other in said) for line in lines), "lines in the message's own order"


@pytest.mark.parametrize("message", ["", "I changed nothing.", *PROSE, "@@ -1 +1 @@\n-a\n+b\n"])
def test_a_message_without_a_diff_says_no_patch(message: str) -> None:
    assert patch_in(message) == ""


def test_files_that_follow_each_other_are_one_patch() -> None:
    for between in ("", "\n", "```\n\nThen:\n\n```diff\n", "```\n```\n"):
        opened = "```diff\n" if "`" in between else ""
        assert patch_in(opened + DIFF + between + OTHER).replace("\n\n-", "\n-") == DIFF + OTHER


def test_what_is_broken_stays_broken() -> None:
    too_many = OTHER.replace("+3,2", "+3,9")
    assert patch_in(f"Here:\n{too_many}\nThat is all.") == f"{too_many}\n"
    too_few = DIFF.replace("-1,2 +1,2", "-1 +1")
    assert patch_in(f"{too_few}\nThat is all.") == too_few
    no_space = DIFF.replace("\n \n", "\nx = 1\n+y\n")
    assert patch_in(f"```\n{no_space}```") == no_space
    no_numbers = OTHER.replace("@@ -3 +3,2 @@", "@@ ... @@")
    assert patch_in(f"{no_numbers}\nThat is all.") == no_numbers


def test_a_context_line_whose_space_was_lost_is_still_a_line() -> None:
    bare = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-old\n+new\n\n last\n"
    assert patch_in(f"{bare}\nThat is all.") == bare


def test_a_message_that_breaks_off() -> None:
    assert patch_in(f"```diff\n{DIFF}") == DIFF
    assert patch_in(DIFF.removesuffix(" \n").removesuffix("\n")) == DIFF.removesuffix(" \n")


def test_binary_files_renames_and_the_missing_end_of_a_file() -> None:
    binary = "diff --git a/b b/b\nindex 0..1 100644\nGIT binary patch\n"
    binary += "literal 2\nJcmZQz&B\n\nliteral 0\nHcmV?d00001\n\n"
    rename = "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n"
    no_end = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    for patch in (binary, rename, no_end):
        assert patch_in(f"So:\n\n{patch}\nThat is all.") == patch


def test_long_messages_are_read_in_no_time() -> None:
    """Lines that could be looked at again and again, in a message of some megabytes."""
    for line in ("\n", "```\n", "~~~a\n", "--- a\n", "diff --git a b\n", "@@\n"):
        assert patch_in(OTHER + line * 300_000).startswith(OTHER)


def test_what_is_found_applies(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old\n\n")
    (tmp_path / "y").write_text("1\n2\nsame\n")
    message = f"First:\n\n```diff\n{DIFF}\n```\n\n- and then:\n\n{OTHER}\n- done"
    subprocess.run(["git", "apply"], input=patch_in(message), text=True, cwd=tmp_path, check=True)
    assert (tmp_path / "x").read_text() == "new\n\n"
    assert (tmp_path / "y").read_text() == "1\n2\nsame\nmore\n"


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("", ""),
        ("=== Prompt === 2026-01-01 10:00:00\n{}\n\n", ""),
        ("=== Response === 2026-01-01 10:00:00\n[{'type': 'text', 'text': 'a\\r\\n'}]\n\n", "a\r\n"),
        ("=== Response === 2026-01-01 10:00:00\n[{'type': 'text', 'text': 'a'}, {'type': 'tool_use'}]\n\n", ""),
        ("=== Response === 2026-01-01 10:00:00\n[1]\n\n=== Response === 2026-01-01 10:00:01\nb\n\n", "b"),
        ("=== Response === 2026-01-01 10:00:00\n" + "[" * 100_000 + "\n\n", "[" * 100_000),
    ],
)
def test_generics_last_reply(tmp_path: Path, log: str, message: str) -> None:
    (tmp_path / "temp").mkdir()
    (tmp_path / "temp" / "model_responses_7.txt").write_text(log)
    assert generic_adapter.GenericAdapter().final_message(tmp_path, b"") == message


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], ""),
        (['{"_type": "metadata"}'], ""),
        (['{"_type": "metadata"}', '{"role": "assistant", "content": "a\\r\\n\\u2028b"}'], "a\r\n\u2028b"),
        (['{"_type": "metadata"}', '{"role": "assistant", "content": "a", "tool_calls": [{}]}'], ""),
        (['{"_type": "metadata"}', '{"role": "user", "content": "a"}'], ""),
        (['{"_type": "metadata"}', '{"role": "assistant", "content": ["a"]}'], ""),
        (['{"_type": "metadata"}', "{"], ""),
        (["[" * 100_000], ""),
        (["[]", "7"], ""),
    ],
)
def test_nanobots_last_message(tmp_path: Path, rows: list[str], message: str) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f"{row}\n" for row in rows))
    (tmp_path / "history.jsonl").write_text('{"no": "session"}\n')
    assert adapter("nanobot").final_message(tmp_path, b"") == message


def bare(folder: Path, claw: str, model: str) -> BenchRun:
    return run_bench(
        folder, "bare", "-k", f"{claw} and confmerge", "--collect=message-fuzzy", f"--model=scripted:{model}"
    )


@pytest.mark.docker
@pytest.mark.parametrize("claw", ["nanobot", "hermes", "generic"])
def test_a_diff_that_is_said_is_judged(tmp_path: Path, claw: str) -> None:
    """The task's files have CRLF line ends: they come through, or it would not resolve."""
    if not installed(claw):
        pytest.skip(f"{claw} is not installed: clawbench install {claw}")
    run = bare(tmp_path, claw, "chatty")
    assert run.outcomes() == {"demo__confmerge-87": "resolved"}, run.output
    folder = run.folder / claw / "demo__confmerge-87"
    message = (folder / "final_message.txt").read_bytes().decode()
    (prediction,) = run.predictions()
    assert message.startswith("I found the cause")
    assert prediction["model_name_or_path"] == f"{claw}-message-fuzzy/scripted:chatty"
    assert prediction["model_patch"] == (folder / "git.patch").read_bytes().decode() == patch_in(message)
    prompt = (folder / "prompt.txt").read_text()
    assert "unified diff in your final message" in prompt
    assert "RULES" not in prompt
    assert "git.patch" not in prompt
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["settings"]["collect"], manifest["prompt"]) == ("message-fuzzy", "bare.txt")
    counts = json.loads((folder / "usage.json").read_text())["gateway"]
    assert counts["tool_surface"] == sorted(adapter(claw).allowed_tools or ())


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_what_is_done_and_not_said_is_kept_and_not_judged(tmp_path: Path) -> None:
    run = bare(tmp_path, "nanobot", "oracle")
    assert run.outcomes() == {"demo__confmerge-87": "empty_patch"}, run.output
    assert "no diff in its final message" in run.output
    folder = run.case_folder("demo__confmerge-87")
    assert (folder / "git.patch").read_bytes() == b""
    assert b"\n+" in (folder / "git.patch.raw").read_bytes()
    assert (folder / "final_message.txt").read_text().startswith("I fixed the issue")


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_one_run_of_a_claw_is_collected_in_three_ways(tmp_path: Path) -> None:
    """The documented command with more tasks; what the scripted model does to each diff follows from the seed."""
    _, command, *_ = documented(ROOT / "docs" / "collection-study.md")
    words = [word.replace("ledgerlite", "(ledgerlite or confmerge or csvline or taskdag)") for word in command]
    words = [word.replace("error=1&seed=1", "error=0.9&seed=1") for word in words]
    done = run([*words, "-n", "2", f"--artifacts={tmp_path}"])
    found = BenchRun(tmp_path / "paired", done.returncode, done.stdout)
    refused, exact, less = ("rejected", "apply_failed"), ("exact", "resolved"), ("under_edit", "unresolved")
    ways = {
        name: [(arm["kind"], arm["verdict"]) for arm in record["arms"]] for name, record in found.cases().items()
    }
    assert set(found.outcomes().values()) == {"resolved"}, found.output
    assert ways == {
        "demo__confmerge-87": [exact, exact],  # intact
        "demo__csvline-19": [refused, exact],  # stale context
        "demo__ledgerlite-204": [less, less],  # a dropped hunk
        "demo__taskdag-27": [refused, refused],  # tabs for spaces
    }
    assert re.search(r"message-fuzzy +4 +50\.0% +25\.0% +25\.0% +25\.0%", found.output), found.output
    table = json.loads((found.folder / "collection.json").read_text())
    assert [arm["resolved"] for arm in table["arms"]] == [1.0, 0.25, 0.5]
    assert "the change that was judged" in (found.folder / "collection.md").read_text()
    folder = found.case_folder("demo__ledgerlite-204")
    assert (folder / "prompt.txt").read_text().count("as a unified diff") == 2
    assert json.loads((folder / "manifest.json").read_text())["prompt"] == "paired.txt"
    assert "(ended): sound" in run(["clawbench", "verify", "paired", f"--artifacts={tmp_path}"]).stdout


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_strict_collection_refuses_what_git_refuses(tmp_path: Path) -> None:
    options = ["--collect=message-strict", "--model=scripted:typist?error=1&seed=2"]
    found = run_bench(tmp_path, "strict", "-k", "nanobot and cronspan", *options)
    assert found.outcomes() == {"demo__cronspan-118": "apply_failed"}, found.output
    assert "`git apply` refuses the diff in its final message" in found.output
    assert not (found.case_folder("demo__cronspan-118") / "evaluation").exists()
    assert "(ended): sound" in run(["clawbench", "verify", "strict", f"--artifacts={tmp_path}"]).stdout


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_each_part_that_is_left_out_is_missing(tmp_path: Path) -> None:
    """The model knows nothing but what it finds in git. Unprepared, the workspace holds the fix."""
    options = ["--adapter-parts=export", "--model=scripted:git"]
    found = run_bench(tmp_path, "parts", "-k", "nanobot and confmerge", *options)
    assert found.outcomes() == {"demo__confmerge-87": "resolved"}, found.output
    assert "WARNING: --adapter-parts without preparation" in found.output
    folder = found.case_folder("demo__confmerge-87")
    assert (folder / "git.patch").read_bytes() == (folder / "git.patch.raw").read_bytes()
    assert "b/AGENTS.md" in (folder / "git.patch").read_text()
    assert "RULES" not in (folder / "prompt.txt").read_text()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["settings"]["adapter_parts"], manifest["history"]) == (["export"], {})
    assert found.predictions()[0]["model_name_or_path"] == "nanobot-parts-export/scripted:git"
    assert "(ended): sound" in run(["clawbench", "verify", "parts", f"--artifacts={tmp_path}"]).stdout


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ([], "nanobot-scripted"),
        (["--collect=paired"], "nanobot-paired-scripted"),
        (["--adapter-parts=none"], "nanobot-parts-none-scripted"),
    ],
)
def test_a_run_is_named_by_its_adapter(options: list[str], name: str) -> None:
    code = (
        "import sys; from _pytest.config import _prepareconfig\n"
        "from clawbench.pytest_plugin.run_settings import settings_from\n"
        "from clawbench.pytest_plugin.selection import select\n"
        "config = _prepareconfig(sys.argv[1:]); select(config)\n"
        "print(settings_from(config)[0].run_id)"
    )
    command = [sys.executable, "-c", code, "-k", "nanobot", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{name}-oracle-"), done.stdout

"""The prompts: the same words for every claw, byte for byte, with the issue's text in them."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import prompts, registry
from adapters.base import BadOptionError, NotInstalledError

GENERIC_TOOLS = {
    "code_run",
    "file_read",
    "file_patch",
    "file_write",
    "web_scan",
    "web_execute_js",
    "ask_user",
    "start_long_term_update",
}


def lines_of(name: str) -> list[str]:
    return (prompts.PROMPTS / name).read_bytes().decode().splitlines(keepends=True)


@given(st.text())
def test_a_prompt_is_the_template_but_for_the_issue(issue: str) -> None:
    before, after = (prompts.PROMPTS / "default.txt").read_bytes().decode().split(prompts.PLACEHOLDER)
    assert prompts.render("default.txt", issue) == before + issue + after


def test_an_issue_may_hold_the_placeholder_and_odd_line_ends() -> None:
    issue = "a {{issue}} b\r\n{{issue}}\r"
    assert issue in prompts.render("default.txt", issue)


def test_a_template_that_does_not_hold_the_placeholder_once_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "PROMPTS", tmp_path)
    for content in ("none", "{{issue}} {{issue}}"):
        (tmp_path / "t.txt").write_text(content)
        with pytest.raises(ValueError, match="exactly once"):
            prompts.render("t.txt", "x")


def test_the_digest_is_the_templates() -> None:
    assert len(prompts.prompt_digest("default.txt")) == 64


@pytest.mark.parametrize("prompt", ["a\0b", "half \ud800 pair"])
def test_a_prompt_that_no_request_can_hold_is_refused(prompt: str) -> None:
    with pytest.raises(BadOptionError):
        prompts.prompt_bytes("nanobot", prompt)


def test_every_claw_has_the_default_prompt_or_one_that_only_adds_to_it() -> None:
    """Whoever takes all added lines out of an override has the default, byte for byte."""
    for name in registry.CLAWS:
        try:
            template = registry.adapter(name).prompt_file
        except NotInstalledError:
            continue
        differences = list(difflib.ndiff(lines_of("default.txt"), lines_of(template)))
        assert [line for line in differences if line.startswith(("-", "?"))] == [], template
        kept = [line[2:] for line in differences if line.startswith("  ")]
        assert kept == lines_of("default.txt")


def test_what_generics_prompt_adds_is_about_its_tools() -> None:
    default = lines_of("default.txt")
    added = [line for line in lines_of("generic.txt") if line not in default]
    assert len(added) == 3
    assert all(any(tool in line for tool in GENERIC_TOOLS) for line in added)
    assert all(tool in "".join(added) for tool in GENERIC_TOOLS)


def test_the_paired_prompt_differs_only_in_asking_for_the_diff() -> None:
    differences = list(difflib.ndiff(lines_of("default.txt"), lines_of("paired.txt")))
    added = [line[2:] for line in differences if line.startswith("+ ")]
    assert len([line for line in differences if line.startswith("- ")]) == len(added) == 3
    assert "".join(added).count("unified diff") == 2

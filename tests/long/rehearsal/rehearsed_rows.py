"""Rows of the real instances, made up: of the shape that swebench 5 has, in a file as users give one."""

from __future__ import annotations

import json
from pathlib import Path

from evaluation.lists import ListedInstance, listed_instances

_GOLD = "--- a/file.txt\n+++ b/file.txt\n@@ -1,2 +1,2 @@\n-before\n+after {name}\n kept\n"


def instances() -> list[ListedInstance]:
    """The 350."""
    return [listed for listed in listed_instances() if not listed.embedded]


def write_rows(path: Path) -> None:
    """Write a row for every real instance."""
    with path.open("w", encoding="utf-8") as file:
        for listed in instances():
            file.write(json.dumps(_row(listed), ensure_ascii=False) + "\n")


def _row(listed: ListedInstance) -> dict[str, str]:
    return {
        "instance_id": listed.instance_id,
        "repo": listed.repo,
        "base_commit": listed.base_commit or "b" * 40,
        "problem_statement": f"{listed.instance_id} fails.\u2028" + "It should not. " * 100,
        "patch": _GOLD.format(name=listed.instance_id),
        "test_patch": "",
        "version": "1.0",
        "FAIL_TO_PASS": '["one"]',
        "PASS_TO_PASS": '["two", "three"]',
        "image": f"rehearsed/{listed.instance_id}",
        "eval_script": "true\n",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "hints_text": "none",
    }

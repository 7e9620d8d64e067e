"""The commands of docs/operating.md, in their order, as a user would give them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.bench_run import ROOT
from support.user_commands import documented, run

from adapters.registry import installed

PAGE = ROOT / "docs" / "operating.md"
SAYS = {
    "clawbench doctor -k nanobot and cronspan": "0 faults",
    "clawbench gold -k cronspan": "1 of 1 environments are sound",
    "pytest": "1 passed",
    "clawbench runs": "nightly",
    "clawbench estimate -n 8 --set lite --claw openclaw --model openrouter/z-ai/glm-5.1": "8 at a time: about",
    "clawbench status": "1 of 1 planned cases, 1 of them resolved",
    "clawbench verify": "(ended): sound",
    "clawbench report": "report.html",
    "clawbench report --format=markdown": "| nightly",
    "clawbench report --format=csv --rows=cases": "demo__cronspan-118,1,python,resolved,True,True,finished",
    "clawbench report --format=latex --to": "wrote ",
    "clawbench runs --json": '"resolved": 1',
    "clawbench status --json": '"state": "ended"',
    "clawbench verify --json": '"is_sound": true',
    "clawbench export --subset --to": "marked TODO in its metadata.yaml",
}
"""What each must say, by its words without options' values."""


@pytest.mark.docker
@pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed: clawbench install nanobot")
def test_every_command_does_what_it_says(tmp_path: Path) -> None:
    ours = {"nightly": f"nightly-{os.getpid()}", "submissions": str(tmp_path / "submissions")}
    ours["table.tex"] = str(tmp_path / "table.tex")
    for command in documented(PAGE):
        words = [ours.get(word, word) for word in command]
        done = run([*words, f"--artifacts={tmp_path}"])
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        key = words[0] if words[0] == "pytest" else " ".join(word for word in words if word not in ours.values())
        assert SAYS[key] in done.stdout, f"{command}\n{done.stdout}"

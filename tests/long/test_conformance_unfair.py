"""The conformance suite finds an adapter out that is unfair. It waits for budgets, which takes its time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.bench_run import ROOT, run_bench

from tests_bench.conformance.watched_adapter import PROCESSES

UNFAIR = """
import os

def create_agent(self, shell, task):
    shell.put(base.STATE_DIR, {"agent.py": AGENT, "prompt": task.prompt.strip().encode()})
    shell.put("/opt/left", {"key": os.environ["OPENAI_API_KEY"].encode()})

def send_task(self, shell, task):
    command = ["python3", "-I", f"{base.STATE_DIR}/agent.py", task.base_url, task.model, str(task.max_turns)]
    key = {"KEY": os.environ["OPENAI_API_KEY"]}
    return shell.run(command, timeout=2 * task.timeout, workdir=task.workdir, environment=key)

ToyClaw.create_agent, ToyClaw.send_task = create_agent, send_task
"""
"""What makes the claw of docs/adding-a-claw.md unfair in ways that its patches do not show."""


@pytest.mark.docker
def test_an_adapter_that_is_unfair_is_found_out(tmp_path: Path) -> None:
    """Keys in a process and beside the usual folders, a prompt without its last line's end, a doubled budget."""
    [example] = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/adding-a-claw.md").read_text(), re.M | re.S)
    (tmp_path / "toyclaw.py").write_text(example + UNFAIR)
    asked = "toyclaw and (no_key or 64_kib or hung_model or declared_ones or nul)"
    run = run_bench(tmp_path, "toy", "-p", "toyclaw", "-m", "conformance", "-k", asked, PYTHONPATH=str(tmp_path))
    cells = {cell["requirement"]: cell for cell in json.loads((run.folder / "conformance.json").read_text())}
    whole, tools, late, nul, keys = (
        next(cell for requirement, cell in cells.items() if word in requirement)
        for word in ("64 KiB", "declared ones", "model that hangs", "NUL", "No key")
    )
    results = [cell["result"] for cell in (whole, tools, late, nul, keys)]
    assert results == ["limit", "passes", "FAILS", "FAILS", "FAILS"], cells
    assert "blanks" in whole["evidence"]
    assert "its limit was" in late["evidence"]
    assert {"/opt/left/key", PROCESSES} <= set(re.findall(r"/[^ ,]+", keys["evidence"]))

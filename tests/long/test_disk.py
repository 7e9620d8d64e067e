"""A full disk: told before anything is begun, a clean stop where it fills up, and gone on from."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from support.bench_run import run_bench

from adapters.registry import installed
from clawbench.controller.emulation import warnings
from clawbench.pytest_plugin.options import image_policy as policy
from clawbench.pytest_plugin.options import size
from clawbench.run.disk import shortage

FULL_AFTER = '''
import shutil
from clawbench.run import disk

def pytest_runtest_logfinish(nodeid):
    """From now on the disk has no room, as far as anyone who asks can tell."""
    measured = shutil.disk_usage
    disk.shutil = type("full", (), {"disk_usage": staticmethod(lambda path: measured(path)._replace(free=10))})
'''

needs_nanobot = pytest.mark.skipif(not installed("nanobot"), reason="nanobot is not installed")


@pytest.mark.parametrize(
    ("text", "is_bytes"), [("0", 0), ("512m", 512 << 20), ("1.5GB", 3 << 29), ("2TiB", 2 << 40), ("10kb", 10240)]
)
def test_sizes_are_as_docker_writes_them(text: str, is_bytes: int) -> None:
    assert size(text) == is_bytes


def test_what_is_no_policy_is_refused() -> None:
    assert [policy(text) for text in ("keep", "prune", "1g")] == ["keep", "prune", 1 << 30]
    for text in ("0", "purge", "", "-5g", "5 gallons"):
        with pytest.raises(ArgumentTypeError, match="200GB"):
            policy(text)


def test_room_is_looked_for_on_both_disks(tmp_path: Path) -> None:
    missing = tmp_path / "not" / "there"
    assert shortage(0, tmp_path, missing) is None
    assert "the engine's disk" in str(shortage(1 << 60, tmp_path, missing))
    told = str(shortage(1 << 60, None, missing))
    assert f"the artifacts' disk ({tmp_path})" in told
    assert "--disk-reserve wants 107374182.4 GB" in told


def test_what_is_emulated_is_warned_of() -> None:
    assert warnings(None, "x86_64", real=True) == warnings("linux/amd64", "x86_64", real=True) == []
    assert "emulated" in warnings("linux/amd64", "aarch64", real=False)[0]
    assert "older than the fix" in warnings(None, "aarch64", real=True)[0]
    assert warnings(None, "aarch64", real=False) == []
    assert len(warnings("linux/arm64", "x86_64", real=True)) == 2


@needs_nanobot
@pytest.mark.docker
def test_a_disk_that_fills_up_stops_the_run_and_the_same_command_goes_on(tmp_path: Path) -> None:
    (tmp_path / "filling.py").write_text(FULL_AFTER)
    arguments = ("-k", "nanobot and (cronspan or ledgerlite)", "--model=scripted:empty")
    run = run_bench(tmp_path, "full", *arguments, "-p", "filling", PYTHONPATH=str(tmp_path))
    assert run.counts == {"failed": 1, "error": 1}, run.output
    assert "not begun: the engine's disk (" in run.output
    assert len(run.outcomes()) == 1
    assert len(list(run.folder.glob("nanobot/*/"))) == 1, "a case that was not begun leaves nothing"
    begun = [json.loads(line) for line in (run.folder / "state.jsonl").read_text().splitlines()]
    assert sum(row["event"] == "begun" for row in begun) == 1
    again = run_bench(tmp_path, "full", *arguments)
    assert again.counts == {"failed": 2}, again.output
    assert set(again.outcomes().values()) == {"empty_patch"}
    reserved = run_bench(tmp_path, "other", *arguments, "--disk-reserve=100000TB")
    assert reserved.exit_code == 4
    assert "Nothing was started" in reserved.output
    assert not reserved.folder.exists()

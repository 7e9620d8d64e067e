"""Collects each task's edits in all arms and conditions, and judges what each arm gives."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from collection.checkout import Applied, Checkout
from collection.results import Collected
from evaluation.collection import FUZZY, STRICT, Arm, kind_of
from evaluation.message_patch import patch_in
from gateway.behaviours.message_damage import CONDITIONS
from tests_bench.collection_study.corpus import StudyTask

_TEST = "import sys; sys.path.insert(0, '.')\n"


def collect(task: StudyTask, folder: Path) -> Iterator[Collected]:
    """Collect one task's edits in every arm and condition.

    Args:
        task: the task.
        folder: must not exist yet.
    """
    checkout = Checkout(folder, task.start)
    wanted = checkout.edited(task.edited)
    verdicts: dict[str, bool] = {}

    def result(arm: Arm, condition: str, applied: Applied, seconds: float) -> Collected:
        tree = applied.change.tree
        if applied.is_applied and tree not in verdicts:
            verdicts[tree] = _is_resolved(task, checkout.files_of(tree))
        kind = kind_of(wanted, applied.change, is_applied=applied.is_applied)
        return Collected(
            case=task.name,
            condition=condition,
            arm=arm,
            kind=kind,
            resolved=applied.is_applied and verdicts[tree],
            seconds=seconds,
            corruption=checkout.difference(wanted.tree, tree) if kind.is_silent else "",
        )

    for condition, damage in CONDITIONS.items():
        began = time.perf_counter()
        patch = checkout.edited(task.edited).diff
        yield result(Arm.WORKSPACE, condition, checkout.apply(patch, STRICT), time.perf_counter() - began)
        message = damage(wanted.diff.decode())
        for arm, commands in ((Arm.STRICT, STRICT), (Arm.FUZZY, FUZZY)):
            began = time.perf_counter()
            applied = checkout.apply(patch_in(message).encode(), commands)
            yield result(arm, condition, applied, time.perf_counter() - began)


def _is_resolved(task: StudyTask, files: dict[str, bytes]) -> bool:
    with tempfile.TemporaryDirectory() as name:
        for path, content in files.items():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        command = [sys.executable, "-I", "-S", "-B", "-c", _TEST + task.test]
        return subprocess.run(command, cwd=name, capture_output=True, check=False).returncode == 0

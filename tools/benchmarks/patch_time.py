"""Export and apply for one changed file, in milliseconds, beside `git diff` and `git apply` themselves."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import docker
from rich.table import Table

from collection.checkout import Checkout
from evaluation.collection import STRICT
from tools.benchmarks import export_time

ROUNDS = 15
FILES = 500
_START = {f"src/p{number % 200}/m{number}.py": b"value = %d\n" % number * 40 for number in range(FILES)}
_PATH = "src/p0/m0.py"
_EDIT = {_PATH: _START[_PATH] + b"changed\n"}


def run(client: docker.DockerClient, say: Callable[[str], None]) -> Table:
    """Measure all of them in the same repository."""
    say(f"one changed file in a repository of {FILES} files")
    with tempfile.TemporaryDirectory(prefix="clawbench-benchmark-") as name:
        diff, apply = _git_itself(Path(name, "plain"))
        checkout = Checkout(Path(name, "study"), _START)
        patch = checkout.edited(_EDIT).diff
        exported = _ms(lambda: checkout.edited(_EDIT))
        applied = _ms(lambda: checkout.apply(patch, STRICT))
    (from_container,) = export_time.seconds(client, FILES, (1,), say)
    table = Table("one patch", "ms", "times git itself", box=None)
    for what, found, floor in (
        ("`git diff` itself", diff, diff),
        ("export in the collection study", exported, diff),
        ("export from a case's container", 1000 * from_container, diff),
        ("`git apply` itself", apply, apply),
        ("apply in the collection study", applied, apply),
    ):
        table.add_row(what, f"{found:.1f}", f"{found / floor:.1f}")
    return table


def _git_itself(folder: Path) -> tuple[float, float]:
    """The milliseconds of `git diff` and of `git apply`, in a working tree as users have it."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True).stdout

    def write(files: dict[str, bytes]) -> None:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    def undo() -> None:
        git("checkout", "--quiet", "--", ".")

    write(_START)
    git("init", "--quiet")
    git("add", ".")
    git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "start")
    patch = folder.parent / "change.patch"
    write(_EDIT)
    patch.write_bytes(git("diff"))
    undo()
    diff = _ms(lambda: git("diff"), before=lambda: write(_EDIT), after=undo)
    return diff, _ms(lambda: git("apply", str(patch)), after=undo)


def _ms(
    action: Callable[[], object],
    *,
    before: Callable[[], object] = lambda: None,
    after: Callable[[], object] = lambda: None,
) -> float:
    """The median milliseconds of an action; what comes before and after it is not counted."""
    found = []
    for _ in range(ROUNDS):
        before()
        began = time.perf_counter()
        action()
        found.append(1000 * (time.perf_counter() - began))
        after()
    return median(found)

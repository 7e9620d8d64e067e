"""`python -m tests.long.rehearsal`: rehearse a whole run, with faults; what `make rehearse` runs."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from secrets import randbelow

from rich.console import Console

from tests.long.rehearsal.rehearsal_runs import Rehearsal, Report
from tests.long.rehearsal.stage import Stage, rehearsed, with_containers
from tests.long.rehearsal.thrown_faults import CONTROLLER, DISK, FOLDER, GATEWAY, SECOND, WORKER, Fault, LostError

_INSIDE = "--inside"
BREAKS = 0.02
"""Of all attempts."""


def main(arguments: Sequence[str]) -> int:
    """Run one rehearsal; the exit code is 1 where something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.rehearsal", description=__doc__)
    parser.add_argument("--cases", type=int, default=1750, help="without an engine; a multiple of five")
    parser.add_argument(
        "--containers", metavar="CLAW", help="real containers: an installed claw, the embedded tasks"
    )
    parser.add_argument("--samples", type=int, default=4, help="with --containers: of each of the ten tasks")
    parser.add_argument("-n", type=int, default=8, help="workers")
    parser.add_argument("--acts", type=int, default=9, help="commands with faults")
    parser.add_argument("--seed", type=int, default=randbelow(2**32), help="of what breaks when")
    parser.add_argument("--keep", type=Path, help="a folder for all that was left, to look into")
    parser.add_argument(_INSIDE, action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if not asked.inside and (wrapped := _namespace()):
        again = [sys.executable, "-m", "tests.long.rehearsal", *arguments, "--seed", str(asked.seed), _INSIDE]
        return subprocess.run([*wrapped, *again], check=False).returncode
    say = partial(Console(width=150, highlight=False).print, markup=False, soft_wrap=True)
    folder = Path(tempfile.mkdtemp(prefix="cbr-", dir="/tmp"))
    try:
        stage = _stage(asked, folder)
        say(f"{len(stage.cases)} cases, -n {asked.n}, --seed {asked.seed}")
        draw = Random(asked.seed)  # noqa: S311 - what is drawn is to be drawn again
        report = Rehearsal(stage, draw, say).run(_acts(draw, asked.acts, can_mount=asked.inside), tears=True)
    except LostError as error:
        say(f"LOST: {error}")
        return 1
    else:
        say("\n".join(_told(stage, report)))
        return 0
    finally:
        if asked.keep:
            shutil.copytree(folder, asked.keep / folder.name, symlinks=True)
        if asked.inside:
            mounted = folder / "artifacts" if asked.containers else folder
            subprocess.run(["umount", "--recursive", "--lazy", mounted], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _stage(asked: argparse.Namespace, folder: Path) -> Stage:
    if asked.containers:
        # the engine, which does not see what is mounted in a namespace of our own, takes sockets from this folder
        stage = with_containers(folder, asked.containers, asked.samples, asked.n)
    else:
        if asked.inside:
            # what a case leaves is small, and all of it in memory is fast
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", folder], check=True)
        stage = rehearsed(folder, asked.cases, asked.n, seed=asked.seed, breaks=BREAKS)
    if asked.inside:
        # a disk of their own can be full without anyone else's harm
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", stage.artifacts], check=True)
    return stage


def _namespace() -> list[str]:
    """The command that gives a mount namespace of our own; [] where there is none to be had."""
    wrapped = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--"]
    try:
        has_one = subprocess.run([*wrapped, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False).returncode == 0
    except FileNotFoundError:
        has_one = False
    return wrapped if has_one else []


def _acts(draw: Random, count: int, *, can_mount: bool) -> list[list[Fault]]:
    """What to throw at each command: something that ends it, and more that it has to live with."""
    ending = [CONTROLLER, DISK, GATEWAY] if can_mount else [CONTROLLER, GATEWAY]
    passing = [WORKER, SECOND, FOLDER] if can_mount else [WORKER, SECOND]
    acts = [
        [ending[number % len(ending)], passing[number % len(passing)], *draw.choices([WORKER, passing[-1]], k=2)]
        for number in range(count)
    ]
    draw.shuffle(acts)
    return acts


def _told(stage: Stage, report: Report) -> list[str]:
    """The figures."""
    done = Counter(row["event"] for row in stage.ledger.rows())
    lines = [
        f"complete after {len(report.commands)} commands and {report.seconds:.0f} s",
        "thrown: " + ", ".join(f"{count} x {name}" for name, count in sorted(report.thrown.items())),
        *(
            f"{kind}: {count} times for {len(stage.cases)} cases"
            for kind, count in sorted(done.items())
            if kind.endswith("begins")
        ),
    ]
    for kind in ("controller", "worker", "gateway"):
        peaks = [memory.peak / 1024 for memory in report.memory if memory.kind == kind]
        lines.append(f"peak memory of {len(peaks)} {kind} processes: {max(peaks, default=0):.0f} MiB")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Commands as a user would type them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.bench_run import ROOT


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command as a user in the checkout would, not as a child of this pytest or its make."""
    ours = ("PYTEST_", "MAKE", "MFLAGS", "COV_", "CLAWBENCH_RUN")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{Path(sys.executable).parent}:{environment.get('PATH', os.defpath)}"
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def documented(page: Path) -> list[list[str]]:
    """The commands in the `sh` blocks of a page, without their comments, as words."""
    found = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    rows = [row.partition(" #")[0].strip() for block in found for row in block.splitlines()]
    return [shlex.split(row) for row in rows if row]

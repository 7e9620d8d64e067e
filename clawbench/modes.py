"""Commands of `clawbench` that go through pytest's options and selection, and do something else than run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / "tests_bench"
"""The suite's tests, by whole paths: another project may have files of these names, and means its own."""
RESOLVED = SUITE / "test_resolved.py"
CONFORMANCE = SUITE / "test_conformance.py"
GOLD = SUITE / "test_gold.py"

_PYTEST = "import sys, pytest; code = int(pytest.main(sys.argv[1:])); sys.exit({4: 2, 5: 2}.get(code, code))"
"""Exit codes are those of commands: what pytest has for a wrong use, or a selection of nothing, is 2."""


def become_pytest(mode: str, arguments: Sequence[str]) -> NoReturn:
    """Go on as a pytest of the suite's own project, wherever the command was typed.

    Args:
        mode: the option that says what it is to do.
        arguments: more options of pytest's.
    """
    command = [sys.executable, "-P", "-c", _PYTEST, "-c", str(ROOT / "pytest.ini"), mode, *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - a list of our own making


def aim_at(config: pytest.Config, file: Path) -> None:
    """Have a command that names no test mean those of one file of the suite."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(file)]


def named(config: pytest.Config) -> list[Path]:
    """The files and folders that a command means."""
    return [Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args]


def require_project(config: pytest.Config) -> None:
    """See that pytest took the suite's folder for the project's, and so its settings.

    Raises:
        pytest.UsageError: it took another; the message says how that comes.
    """
    if config.rootpath != ROOT:
        # pytest looks for its configuration before it knows our options, and takes the folder that follows
        # one of them for the tests' own
        loose = [
            word for word in config.invocation_params.args if word in {"--artifacts", "--dataset", "--instances"}
        ]
        if loose:
            raise pytest.UsageError(f"write options that name a folder with '=', as in {loose[0]}=FOLDER")
        raise pytest.UsageError(
            f"pytest took {config.rootpath} for the project's folder, so the suite's settings were not read. "
            f"Run it in {ROOT}, or from elsewhere as `pytest {SUITE}`"
        )

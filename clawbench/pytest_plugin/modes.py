"""The suite's test files, and which of them a command names."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawbench import ROOT

SUITE = ROOT / "tests_bench"
"""The folder of the suite's tests. Paths are absolute, because another project may have files with the same names."""
RESOLVED = SUITE / "test_resolved.py"
CONFORMANCE = SUITE / "test_conformance.py"
GOLD = SUITE / "test_gold.py"
COLLECTION_STUDY = SUITE / "test_collection_study.py"
_OF_A_RUN = ("manifest.json", "state.jsonl")


def aim_at(config: pytest.Config, file: Path) -> None:
    """If the command names no tests, make it run those of one file of the suite."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(file)]


def named(config: pytest.Config) -> list[Path]:
    """The files and folders that a command names."""
    return [Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args]


def is_of_a_run(path: Path) -> bool:
    """Whether a path is a run's folder or below one: an agent wrote files there, which must never be loaded."""
    return any(all((folder / name).exists() for name in _OF_A_RUN) for folder in (path, *path.parents))


def refuse_artifacts(config: pytest.Config) -> None:
    """Check that a command does not name a run's folder as the place of tests (raises UsageError)."""
    for path in named(config):
        if is_of_a_run(path):
            raise pytest.UsageError(f"{path} belongs to a run: what agents wrote is never loaded as tests")


def require_project(config: pytest.Config) -> None:
    """Check that pytest chose the suite's folder as its root folder, and so read the suite's settings.

    Raises:
        pytest.UsageError: it chose another; the message says why.
    """
    if config.rootpath != ROOT:
        # pytest looks for its configuration before it knows the suite's options, and mistakes a folder that follows
        # one of them for a folder of tests
        of_paths = {"--artifacts", "--dataset", "--instances", "--predictions"}
        loose = [word for word in config.invocation_params.args if word in of_paths]
        if loose:
            raise pytest.UsageError(f"write options that name a folder with '=', as in {loose[0]}=FOLDER")
        raise pytest.UsageError(
            f"pytest chose {config.rootpath} as its root folder, so the suite's settings were not read. "
            f"Run it in {ROOT}, or from elsewhere as `pytest {SUITE}`"
        )

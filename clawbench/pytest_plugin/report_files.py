"""pytest's own reports of a run, JUnit and JSON: sets their paths, and removes local paths and the host's name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from records.files import write_atomically
from records.places import known_places, without_places

_PLACED = pytest.StashKey[list[Path]]()


def place(config: pytest.Config, folder: Path) -> None:
    """Set the reports' paths to the run's folder, unless the command names other files or turns reports off.

    Args:
        config: of the controller.
        folder: the run's.
    """
    option = config.option
    placed = config.stash[_PLACED] = []
    if config.pluginmanager.hasplugin("junitxml") and not option.xmlpath:
        option.xmlpath = str(folder / "junit.xml")
        placed.append(folder / "junit.xml")
    wanted = getattr(option, "json_report_file", None)  # there is no such option with `-p no:pytest_jsonreport`
    if wanted == ".report.json":
        option.json_report = True
        option.json_report_file = str(folder / "report.json")
        placed.append(folder / "report.json")
    elif wanted:
        option.json_report = True  # without it, pytest-json-report writes nothing


@contextmanager
def unchanged(config: pytest.Config) -> Iterator[None]:
    """Keep the reports in the run's folder as they are: this command ran nothing, and would replace them."""
    before = {path: path.read_bytes() if path.exists() else None for path in config.stash.get(_PLACED, [])}
    try:
        yield
    finally:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                write_atomically(path, content)


def clean(config: pytest.Config) -> None:
    """Remove the host's name and paths from the reports in the run's folder: artifacts may be published.

    Raises:
        OSError: one could not be written.
    """
    for path in config.stash.get(_PLACED, []):
        if not path.exists():
            continue
        text = path.read_text("utf-8")
        if path.suffix == ".json":
            report = _read(path, text)
            report.pop("root", None)
            text = json.dumps(report)
        else:
            text = re.sub(r'(<testsuite\b[^>]*?) hostname="[^"]*"', r"\1", text, count=1)
        write_atomically(path, _without_places(text, path.parent).encode("utf-8", "surrogatepass"))


def _read(path: Path, text: str) -> dict[str, Any]:
    """A JSON report (raises OSError if it is incomplete: on a full disk its writer fails silently)."""
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise OSError(f"{path.name} is incomplete: {error}") from error
    return report


def _without_places(text: str, run: Path) -> str:
    """A text without paths of this machine: a path below a known folder is written relative to it."""
    return without_places(text, known_places() | {run: ""})

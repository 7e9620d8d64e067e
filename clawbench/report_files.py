"""pytest's own reports of a run, JUnit and JSON: where they are, and that they say nothing of the host."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from records.files import write_atomically
from records.places import without_places

_PLACED = pytest.StashKey[list[Path]]()
_ROOT = Path(__file__).resolve().parents[1]


def place(config: pytest.Config, folder: Path) -> None:
    """Have the reports written into a run's folder, unless the command names other files or does without.

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
        option.json_report = True  # pytest-json-report would write none without its `--json-report`


def clean(config: pytest.Config) -> None:
    """Take out of the reports in the run's folder what names the host: artifacts are handed around.

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
    """A JSON report; on a full disk its writer leaves a part of it and says nothing to us (raises OSError)."""
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise OSError(f"{path.name} is not whole: {error}") from error
    return report


def known_places() -> dict[Path, str]:
    """Folders of this machine that no artifact names, with what to call them."""
    return {_ROOT: "", Path(sys.prefix): "python", Path.home(): "~"}


def _without_places(text: str, run: Path) -> str:
    """A text without the paths of this machine: what is below a known folder is named from there."""
    return without_places(text, known_places() | {run: ""})

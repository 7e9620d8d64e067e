"""Writes `report.html`: one file with data, style and script, which loads nothing from anywhere.

Text from claws and providers is only ever data: it is compressed JSON in the file, and the script puts it on the page
as text, never as HTML. The page's content security policy allows the file's own script and style, and nothing else.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from records.files import write_atomically
from records.journal import now
from records.run_folder import PAGE, RunDirectory
from reports.page.page_data import details, overview, page_rows

__all__ = ["PAGE", "write_page"]

_PARTS = Path(__file__).parent


def write_page(runs: Sequence[RunDirectory], to: Path) -> None:
    """Write the page of some runs.

    Args:
        runs: at least one.
        to: the file.

    Raises:
        RunError: a record can't be understood.
        OSError: a file can't be read or written.
    """
    rows = page_rows(runs)
    head = {**overview(rows), "runs": [run.run_id for run in runs], "written": now()}
    script, style = ((_PARTS / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    parts = {
        "TITLE": ", ".join(run.run_id for run in runs),  # a run id has no character with a meaning in HTML
        "POLICY": f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; base-uri 'none'",
        "STYLE": style,
        "SCRIPT": script,
        "OVERVIEW": _packed(head),
        "DETAILS": "\n".join(_packed(one) for one in details(rows)),
    }
    page = (_PARTS / "page.html").read_text(encoding="utf-8")
    pieces = page.split("@@")
    write_atomically(to, "".join(parts.get(piece, piece) for piece in pieces).encode())


def _source(text: str) -> str:
    """How a content security policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _packed(value: Any) -> str:
    """JSON, compressed, in characters that mean nothing in HTML."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()

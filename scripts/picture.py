"""Runs a command in a terminal of its own and saves its output as a picture, for the README.

    .venv/bin/python scripts/picture.py docs/images/run.svg pytest -n 2 -k nanobot --no-header

The output is the command's own, except that the checkout's path becomes `~/clawbench` and lines that a terminal
would have overwritten are left out. The picture needs no font or file from elsewhere.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

WIDTH = 118
ROOT = Path(__file__).resolve().parents[1]


def record(command: list[str]) -> str:
    """The command's output on a terminal, colours included."""
    output = bytearray()

    def keep(terminal: int) -> bytes:
        data = os.read(terminal, 65536)
        output.extend(data)
        return data

    os.environ |= {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    pty.spawn(command, keep)
    return output.decode(errors="replace")


def shown(output: str) -> str:
    """The text that is visible at the end."""
    lines = output.replace(str(ROOT), "~/clawbench").split("\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return "\n".join(line for line in lines if line.strip())


def picture(command: list[str], output: str) -> str:
    """An SVG of a terminal."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ " + shlex.join(command), style="bold"))
    console.print(Text.from_ansi(output), no_wrap=True, overflow="crop")
    frame = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="clawbench", code_format=frame.replace("Fira Code", "ui-monospace"))


def main() -> None:
    """Run the command and write the picture."""
    target, command = Path(sys.argv[1]), sys.argv[2:]
    os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}:{os.environ.get('PATH', os.defpath)}"
    svg = picture(command, shown(record(command)))
    target.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

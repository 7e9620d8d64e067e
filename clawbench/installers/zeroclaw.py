"""zeroclaw, compiled from the Rust crate registry by cargo.

What was compiled stays in a folder beside the runtimes until the binary is there, so that the next install goes on
where a killed one stopped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.zeroclaw import VERSION
from clawbench.installers.base import InstallError, Piece, Say

_EACH = 25
_TAIL = 12
_QUIET = ("Compiling", "Downloaded", "Downloading", "Updating", "Adding", "Locking", "Blocking")
_TOO_OLD = re.compile(r"requires rustc|rustc \S+ is not supported")


@dataclass(frozen=True)
class CargoInstaller:
    """Compiles the binary of one crate, with the dependencies that it was released with."""

    crate: str
    version: str
    binary: str

    def pieces(self) -> Sequence[Piece]:
        """See `Installer.pieces`."""
        return [Piece(self.version, f"{self.crate} {self.version}")]

    def make(self, piece: Piece, folder: Path, say: Say) -> None:
        """See `Installer.make`."""
        cargo = _find_cargo()
        if cargo is None:
            raise InstallError(
                f"{self.crate} is compiled with cargo, which is neither on PATH nor in ~/.cargo/bin: install Rust "
                "(https://rustup.rs, or your system's package), and a C compiler, and run this again; or let "
                "ZEROCLAW_BIN name a zeroclaw binary that you have"
            )
        built = folder.parent / f".build-{piece.folder}"
        say("this compiles about 500 crates, which took 45 minutes on two busy cores; interrupt it as you like:")
        say(f"the next install goes on with what is in {built}")
        command = [
            *(cargo, "install", self.crate, "--version", f"={self.version}", "--locked", "--bin", self.binary),
            *("--root", str(folder), "--target-dir", str(built)),
        ]
        code, said = _run(command, say)
        if code != 0 and any(_TOO_OLD.search(line) for line in said):
            say("it asks for a newer Rust than this one; trying all the same")
            code, said = _run([*command, "--ignore-rust-version"], say)
        if code != 0:
            raise InstallError(
                f"{self.crate} could not be compiled. It comes from the Rust crate registry: is the network up, "
                f"does cargo's config name a registry that answers from here, is there a C compiler, and is Rust "
                f"new enough (`rustup update`)? This is {_rust_version(cargo)}.\n" + "\n".join(said)
            )
        shutil.rmtree(built, ignore_errors=True)


def _find_cargo() -> str | None:
    home = Path(os.environ.get("CARGO_HOME") or "~/.cargo").expanduser()
    return shutil.which("cargo") or shutil.which(home / "bin" / "cargo")


def _rust_version(cargo: str) -> str:
    done = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "a cargo that does not tell its version"


def _run(command: Sequence[str], say: Say) -> tuple[int, list[str]]:
    """The exit code and the last lines of cargo, whose lines for each crate are counted instead of passed on."""
    tail: deque[str] = deque(maxlen=_TAIL)
    started, compiled = time.monotonic(), 0
    environment = {**os.environ, "CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never"}
    with subprocess.Popen(
        ["nice", "-n", "10", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for line in map(str.strip, process.stdout):
            if line.startswith("Compiling"):
                compiled += 1
                if compiled % _EACH == 0:
                    say(f"{compiled} crates are done or begun ({(time.monotonic() - started) / 60:.0f} min)")
            elif line and not line.startswith(_QUIET):
                tail.append(line)
                say(line[:200])
    return process.returncode, list(tail)


INSTALLER = CargoInstaller("zeroclaw", VERSION, "zeroclaw")

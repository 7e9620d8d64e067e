"""zeroclaw, compiled by cargo from the Rust crate registry.

Compiled crates stay in a folder beside the runtimes until the binary is there, so that the next install continues
where an interrupted one stopped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clawbench.install.base import InstallError, Piece, Say, run_counted

_QUIET = ("Downloaded", "Downloading", "Updating", "Adding", "Locking", "Blocking")
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
        say("this compiles about 500 crates, which took 45 minutes on two busy cores; you can interrupt it:")
        say(f"the next install continues with what is in {built}")
        command = [
            *("nice", "-n", "10", cargo, "install", self.crate, "--version", f"={self.version}", "--locked"),
            *("--bin", self.binary, "--root", str(folder), "--target-dir", str(built)),
        ]
        code, said = _run(command, say)
        if code != 0 and any(_TOO_OLD.search(line) for line in said):
            say("it asks for a newer Rust than this one; trying anyway")
            code, said = _run([*command, "--ignore-rust-version"], say)
        if code != 0:
            rust = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False).stdout.strip()
            raise InstallError(
                f"{self.crate} could not be compiled. It comes from the Rust crate registry: is the network up, "
                "does cargo's config name a registry that answers from here, is there a C compiler, and is Rust "
                f"new enough (`rustup update`)? This is {rust or 'an unknown version of cargo'}.\n"
                + "\n".join(said)
            )
        shutil.rmtree(built, ignore_errors=True)


def _find_cargo() -> str | None:
    home = Path(os.environ.get("CARGO_HOME") or "~/.cargo").expanduser()
    return shutil.which("cargo") or shutil.which(home / "bin" / "cargo")


def _run(command: Sequence[str], say: Say) -> tuple[int, list[str]]:
    environment = {**os.environ, "CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never"}
    return run_counted(
        command, say, counted=("Compiling", "crates are done or begun,"), quiet=_QUIET, environment=environment
    )

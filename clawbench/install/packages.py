"""Installs Python packages: with uv if it is available (ten times faster), else with pip.

uv reads none of pip's settings, so those that say where packages come from and whom to trust are passed on to it.
If uv fails anyway, pip, which knows its own settings best, tries. This module imports only the standard library,
because it also fills the virtual environment that everything else runs in
(`python -I clawbench/install/packages.py -r requirements.lock`).
"""

from __future__ import annotations

import ast
import os
import platform
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_GLIBC = 28
"""Packages for a container are built for glibc 2.28 or older, which every image has."""
_TAIL = 4
_WIDTH = 100
_PER_PACKAGE = (" ", "Requirement already", "Collecting ")


class PackagesError(RuntimeError):
    """Packages could not be installed; the message ends with the installer's last lines."""


@dataclass(frozen=True)
class Target:
    """A folder that another Python, on another Linux of the same machine type, will import from.

    No bytecode is made, since it would name the folder.
    """

    folder: Path
    python: str
    """That Python's version, as in `3.11`."""

    def uv_arguments(self) -> list[str]:
        """Options that make uv install for it."""
        return [
            *("--target", str(self.folder), "--python-version", self.python, "--only-binary", ":all:"),
            *("--python-platform", f"{_machine()}-manylinux_2_{_GLIBC}"),
            *("--link-mode", "copy"),  # a link would change uv's cache, and the next install, with the runtime
        ]

    def pip_arguments(self) -> list[str]:
        """Options that make pip install for it."""
        machine = _machine()
        platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(_GLIBC, 4, -1)]
        platforms.append(f"manylinux2014_{machine}")
        return [
            *("--target", str(self.folder), "--python-version", self.python, "--only-binary", ":all:"),
            *(argument for name in platforms for argument in ("--platform", name)),
            "--no-compile",
        ]


def install(requirements: Sequence[str], say: Callable[[str], None], target: Target | None = None) -> None:
    """Install packages.

    Args:
        requirements: arguments that pip and uv both take: names, `-r FILE`, `-c FILE`, `-e PATH`, `--no-deps`.
        say: prints a line of progress.
        target: where to install; None means the environment of the Python that runs this.

    Raises:
        PackagesError: neither uv nor pip succeeded.
    """
    uv = find_uv()
    if uv is not None:
        place = target.uv_arguments() if target else []
        settings = pip_settings()
        command = [uv, "pip", "install", "--python", sys.executable, *uv_flags(settings), *place, *requirements]
        code, said = _run(command, {**os.environ, **uv_settings(settings)}, _brief(say))
        if code == 0:
            return
        say(f"uv failed ({said[-1] if said else f'exit code {code}'}); trying pip")
        if target is not None:
            shutil.rmtree(target.folder, ignore_errors=True)
    place = target.pip_arguments() if target else []
    command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off", *place, *requirements]
    code, said = _run(command, dict(os.environ), _brief(say))
    if code != 0:
        raise PackagesError("\n".join([f"pip ended with exit code {code}:", *said]))


def pip_settings() -> dict[str, str]:
    """Pip's settings, as pip itself finds them in its files and variables, by plain name (`index-url`)."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        return {}
    found: dict[str, tuple[int, str]] = {}
    for line in listed.stdout.splitlines():
        name, _, quoted = line.partition("=")
        section, _, key = name.rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section)
        if rank is not None and rank >= found.get(key, (0, ""))[0]:
            found[key] = (rank, str(ast.literal_eval(quoted)))
    return {key: value for key, (_, value) in found.items()}


def uv_settings(pip: dict[str, str]) -> dict[str, str]:
    """The variables that pass pip's settings on to uv, without those that the user has set already."""
    links = [link for link in pip.get("find-links", "").split() if "://" in link or Path(link).exists()]
    wanted = {
        "UV_SYSTEM_CERTS": "1",
        "UV_NO_PROGRESS": "1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "UV_INDEX": " ".join(pip.get("extra-index-url", "").split()),
        "UV_FIND_LINKS": ",".join(links),
        "UV_INSECURE_HOST": " ".join(pip.get("trusted-host", "").split()),
        "UV_HTTP_TIMEOUT": pip.get("timeout", pip.get("default-timeout", "")),
        "SSL_CERT_FILE": pip.get("cert", ""),
        "SSL_CLIENT_CERT": pip.get("client-cert", ""),
        "ALL_PROXY": pip.get("proxy", ""),
    }
    return {name: value for name, value in wanted.items() if value and name not in os.environ}


def uv_flags(pip: dict[str, str]) -> list[str]:
    """Options for those of pip's settings that uv has no variable for."""
    return ["--no-index"] if pip.get("no-index", "").lower() in {"1", "true", "yes", "on"} else []


def _machine() -> str:
    """The machine type as Linux, which containers run on, calls it."""
    name = platform.machine()
    return {"arm64": "aarch64", "AMD64": "x86_64"}.get(name, name)


def find_uv() -> str | None:
    """The path of uv: beside the Python that runs this, else on PATH."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.is_file() else shutil.which("uv")


def _run(command: Sequence[str], environment: dict[str, str], say: Callable[[str], None]) -> tuple[int, list[str]]:
    """Run a command, pass every line on, and return the exit code and the last lines."""
    tail: deque[str] = deque(maxlen=_TAIL)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for line in process.stdout:
            if line.strip():
                tail.append(line.rstrip())
                say(line.rstrip())
    return process.returncode, list(tail)


def _brief(say: Callable[[str], None]) -> Callable[[str], None]:
    """Passes on all lines except those that uv and pip print for each package."""

    def passed(line: str) -> None:
        if not line.startswith(_PER_PACKAGE):
            say(line.strip()[:_WIDTH])

    return passed


def _main() -> int:
    try:
        install(sys.argv[1:], lambda line: print(f"  {line}", file=sys.stderr, flush=True))  # noqa: T201
    except PackagesError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())

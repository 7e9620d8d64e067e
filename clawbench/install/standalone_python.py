"""A standalone Python, from `uv python install`, for images that have none or none that fits.

It goes where uv keeps its own Pythons, and `adapters.runtimes.container_python` finds it there. If uv's source
does not answer, `CLAW_PYTHON_HOME` can name a tree that exists already. Whether it runs in an instance's image and
imports the claw there is checked in the case's own container, before any request to the model.
"""

from __future__ import annotations

import os
import subprocess

from adapters.runtimes import UV_PYTHON, container_python
from clawbench.install.base import InstallError, Say
from clawbench.install.packages import find_uv, pip_settings, uv_settings

DEADLINE = 300.0
"""Seconds for the download of about 30 MB."""
_ANSWER = "30"
"""Seconds that uv waits for data, unless its own variable says otherwise."""
_ELSE = (
    "Let UV_PYTHON_INSTALL_MIRROR name a mirror that answers from here, or let CLAW_PYTHON_HOME name a standalone "
    "Python tree that you have: it has one bin/python3.N and runs wherever it lies"
)


def install_python(say: Say) -> None:
    """Install a standalone Python, or say which one is installed already.

    Args:
        say: prints a line of progress.

    Raises:
        NotInstalledError: CLAW_PYTHON_HOME names no Python tree.
        InstallError: it could not be obtained; the message says why and what to do.
    """
    if os.environ.get("CLAW_PYTHON_HOME") == "":
        raise InstallError(
            "CLAW_PYTHON_HOME is set to nothing, which means that the images' own Python runs the claws: unset it"
        )
    if found := container_python().mounts:
        say(f"a standalone Python {container_python().version} is there already: {found[0].source}")
        return
    uv = find_uv()
    if uv is None:
        raise InstallError(f"a standalone Python is installed by uv, which is not on PATH. {_ELSE}")
    say(f"uv gets Python {UV_PYTHON}")
    try:
        _run_uv(uv)
    except InstallError:
        # there was none before, so whatever is there now is incomplete
        subprocess.run([uv, "python", "uninstall", UV_PYTHON], capture_output=True, check=False)
        raise
    if not container_python().mounts:
        raise InstallError(
            f"uv installed Python {UV_PYTHON} for another machine or C library than containers have"
        )
    say(f"Python {UV_PYTHON} is installed: {container_python().mounts[0].source}")
    say("from now on it runs the claws that are Python programs: install those again (`clawbench install all`)")


def _run_uv(uv: str) -> None:
    settings = {"UV_HTTP_TIMEOUT": _ANSWER, **os.environ, **uv_settings(pip_settings()), "UV_NO_PROGRESS": "1"}
    command = [uv, "python", "install", "--no-bin", UV_PYTHON]
    try:
        done = subprocess.run(
            command, env=settings, capture_output=True, text=True, errors="replace", timeout=DEADLINE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"uv's source gave no Python within {DEADLINE:.0f} s. {_ELSE}") from error
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-4:])
        raise InstallError(f"uv could not get Python {UV_PYTHON}. {_ELSE}. uv said:\n{said}")

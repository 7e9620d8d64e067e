"""The common base of all embedded tasks: from a registry when one answers, else by debootstrap.

The registry is tried first because it is the quickest where it works, and given up as soon as it is silent
for `REGISTRY_PATIENCE`. Bootstrapping needs root and the host's own mirror, nothing else.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import RequestException

from demo.apt_sources import AptConfigError, Archive, host_archive
from demo.building import TAIL_LINES, ImageBuildError, Progress, Recipe, Say, build, failure

REGISTRY_IMAGE = "debian:bookworm-slim"
REGISTRY_PATIENCE = 20.0
"""Seconds without a word from the registry after which it is given up."""

ROOT_TAG = "clawbench/demo-root:latest"
"""The bootstrapped system, before the base is built on it; the tag is removed afterwards."""

LEFT_OUT = ("./proc/*", "./sys/*", "./dev/*", "./var/cache/apt/*.bin", "./var/cache/apt/archives/*.deb")


def build_base(
    client: docker.DockerClient, wanted: Recipe, *, cache: Path, say: Say, labels: Mapping[str, str]
) -> None:
    """Build the base image, whichever way its root file system can be had.

    Raises `ImageBuildError`. To be called under the image's lock: it clears what a killed call left.
    """
    if _registry_answers(client, say):
        try:
            build(client, wanted, say, labels=labels, arguments={"ROOT": REGISTRY_IMAGE})
        except ImageBuildError as error:
            say(f"{wanted.tag}: not on {REGISTRY_IMAGE} ({str(error).splitlines()[-2].strip()}); bootstrapping")
        else:
            return
    _bootstrap(client, cache, say)
    build(client, wanted, say, labels=labels, arguments={"ROOT": ROOT_TAG})
    client.images.remove(ROOT_TAG, noprune=True)


def _registry_answers(client: docker.DockerClient, say: Say) -> bool:
    """Whether `REGISTRY_IMAGE` is here, pulled if need be."""
    try:
        client.images.get(REGISTRY_IMAGE)
    except ImageNotFound:
        reason = _pull(client)
    else:
        return True
    if reason:
        say(f"{REGISTRY_IMAGE}: not to be had from a registry ({reason}); bootstrapping from this host's mirror")
    return not reason


def _pull(client: docker.DockerClient) -> str:
    """Pull `REGISTRY_IMAGE`; why it did not work, or an empty string."""
    events: queue.Queue[str | None] = queue.Queue()

    def pull() -> None:
        name, _, tag = REGISTRY_IMAGE.partition(":")
        try:
            for event in client.api.pull(name, tag=tag, stream=True, decode=True):
                events.put(str(event.get("error", "")))
            events.put(None)
        except (DockerException, RequestException) as error:
            events.put(str(getattr(error, "explanation", None) or error))

    # A pull can't be cancelled through the SDK, and one that hangs must not hold up the process's end.
    threading.Thread(target=pull, daemon=True, name="pull").start()
    while True:
        try:
            event = events.get(timeout=REGISTRY_PATIENCE)
        except queue.Empty:
            return f"no answer for {REGISTRY_PATIENCE:.0f} s"
        if event is None:
            return ""
        if event:
            return event


def _bootstrap(client: docker.DockerClient, cache: Path, say: Say) -> None:
    """Make `ROOT_TAG` from the host's own distribution."""
    archive, program = _requirements()
    folder = cache / "bootstrap"
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob("root-*"):
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix="root-", dir=folder) as scratch:
        root = Path(scratch) / "root"
        settings = root / "etc/dpkg/dpkg.cfg.d"
        settings.mkdir(parents=True)
        shutil.copy(Path(__file__).parent / "recipes/base/lean.cfg", settings / "lean")
        _run([*_debootstrap(program, archive, packages.resolve()), str(root.resolve()), archive.main.uri], say)
        (root / "etc/apt/sources.list").write_text(archive.one_line_format(_keyring(root)), encoding="utf-8")
        image = Path(scratch) / "root.tar"
        exclusions = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        tar = ["tar", "--create", "--one-file-system", "--numeric-owner", *exclusions]
        _run([*tar, f"--file={image}", f"--directory={root}", "."])
        name, _, tag = ROOT_TAG.partition(":")
        try:
            client.api.import_image_from_file(str(image), repository=name, tag=tag)
            client.images.get(ROOT_TAG)
        except (APIError, RequestException) as error:
            raise failure(ROOT_TAG, [str(error)]) from error


def _requirements() -> tuple[Archive, str]:
    program = shutil.which("debootstrap", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    why = f"The registry has no {REGISTRY_IMAGE} for us, so the base image must be bootstrapped, "
    if os.geteuid() != 0:
        raise ImageBuildError(f"{why}which needs root: run the command as root, or load {REGISTRY_IMAGE} by hand.")
    if program is None:
        raise ImageBuildError(f"{why}which needs debootstrap: apt-get install debootstrap, then run again.")
    try:
        return host_archive(), program
    except AptConfigError as error:
        raise ImageBuildError(
            f"{why}but {error}. Enable the distribution's own archive in /etc/apt, or load {REGISTRY_IMAGE} "
            "by hand (docker load), then run again."
        ) from error


def _debootstrap(program: str, archive: Archive, packages: Path) -> list[str]:
    """The command, up to the folder and the mirror.

    It runs in namespaces of its own and dies with this process, so that its mounts and its children never
    outlive a killed run.
    """
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command += [program, "--variant=minbase", f"--cache-dir={packages}"]
    if archive.main.signed_by and Path(archive.main.signed_by).is_file():
        command.append(f"--keyring={archive.main.signed_by}")
    if any(source.uri.startswith("https:") for source in archive.sources):
        command.append("--include=ca-certificates")
    return [*command, archive.codename]


def _keyring(root: Path) -> str | None:
    """The distribution's keyring inside a bootstrapped system, as apt there sees it."""
    found = sorted((root / "usr/share/keyrings").glob("*-archive-keyring.[gp][pg][gp]"))
    return f"/{found[0].relative_to(root)}" if found else None


def _run(command: list[str], say: Say | None = None) -> None:
    """Run a step of the bootstrap; `ImageBuildError` if it fails."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    progress = Progress(ROOT_TAG, say) if say else None
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        assert process.stdout is not None  # noqa: S101 - told to be a pipe just above
        for line in process.stdout:
            tail.append(line.rstrip())
            if progress:
                progress.tick(line.strip())
    if process.returncode:
        raise failure(ROOT_TAG, tail)
    if progress:
        progress.done()

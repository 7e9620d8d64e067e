"""The common base of all embedded tasks: from a registry if one answers, else by debootstrap.

The registry is tried first because it is the quickest way, and given up when it has been silent for
`REGISTRY_PATIENCE`. Bootstrapping needs only root and the host's own mirror.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound
from requests.exceptions import RequestException

from common.image_pull import PullError, pull
from demo.apt_sources import AptConfigError, Archive, host_archive
from demo.image_build import TAIL_LINES, ImageBuildError, Progress, Recipe, Say, build, failure

REGISTRY_IMAGE = "debian:bookworm-slim"
REGISTRY_PATIENCE = 20.0
"""Seconds of silence after which the registry is given up."""

ROOT_TAG = "clawbench/demo-root:latest"
"""The bootstrapped system that the base is built on; the tag is removed afterwards."""

LEFT_OUT = ("./proc/*", "./sys/*", "./dev/*", "./var/cache/apt/*.bin", "./var/cache/apt/archives/*.deb")


def build_base(
    client: docker.DockerClient, wanted: Recipe, *, cache: Path, say: Say, labels: Mapping[str, str]
) -> None:
    """Build the base image on the registry's image, or else on a bootstrapped system.

    The caller must hold the image's lock, because the leftovers of a killed call are removed.

    Raises:
        ImageBuildError: the image could not be built.
    """
    if _registry_answers(client, say):
        try:
            build(client, wanted, say, labels=labels, arguments={"ROOT": REGISTRY_IMAGE})
        except ImageBuildError as error:
            say(f"{wanted.tag}: failed on {REGISTRY_IMAGE} ({str(error).splitlines()[-2].strip()}); bootstrapping")
        else:
            return
    _bootstrap(client, cache, say)
    build(client, wanted, say, labels=labels, arguments={"ROOT": ROOT_TAG})
    client.images.remove(ROOT_TAG, noprune=True)


def _registry_answers(client: docker.DockerClient, say: Say) -> bool:
    """Whether the engine has `REGISTRY_IMAGE`, pulled if necessary."""
    try:
        client.images.get(REGISTRY_IMAGE)
    except ImageNotFound:
        try:
            pull(client, REGISTRY_IMAGE, patience=REGISTRY_PATIENCE)
        except PullError as error:
            say(f"{REGISTRY_IMAGE} could not be pulled ({error}); bootstrapping from this host's mirror")
            return False
    return True


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
        _run(
            [*_debootstrap(program, archive, packages.resolve()), str(root.resolve()), archive.sources[0].uri], say
        )
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
    why = f"{REGISTRY_IMAGE} could not be pulled, so the base image must be bootstrapped, "
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
    """The command, without the folder and the mirror at its end.

    It runs in namespaces of its own and dies with this process, so that neither its mounts nor its children
    outlive a killed run.
    """
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command += [program, "--variant=minbase", f"--cache-dir={packages}"]
    if any(source.uri.startswith("https:") for source in archive.sources):
        command.append("--include=ca-certificates")
    return [*command, archive.codename]


def _keyring(root: Path) -> str | None:
    """The path of the distribution's keyring inside a bootstrapped system."""
    found = sorted((root / "usr/share/keyrings").glob("*-archive-keyring.[gp][pg][gp]"))
    return f"/{found[0].relative_to(root)}" if found else None


def _run(command: list[str], say: Say | None = None) -> None:
    """Run a step of the bootstrap (raises ImageBuildError)."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    progress = Progress(ROOT_TAG, say) if say else None
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for line in process.stdout:
            tail.append(line.rstrip())
            if progress:
                progress.tick(line.strip())
    if process.returncode:
        raise failure(ROOT_TAG, tail)
    if progress:
        progress.done()

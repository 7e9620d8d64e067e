"""Prepare an image: the same file system, with a repository that holds only the start commit's own past.

Each source image is prepared once, however many workers ask, and verified before anyone may use it: every
object in the prepared repository is compared with the closure of the start commit, and every file below `.git`
must be known to be harmless. What can't be proven is not used. The proof becomes a label of the image, where
manifests find it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound
from docker.models.containers import Container
from filelock import FileLock

from common.processes import this_process
from workspace.container_files import put_files
from workspace.owner import CASE, MAKER, OWNER, RUN
from workspace.throwaway import run_script, script, throwaway
from workspace.workspace_errors import PreparationError

WORKDIR = "/testbed"
_PROOF = "clawbench.prepared.proof"
_SOURCE = "clawbench.prepared.source"
_BASE_COMMIT = "clawbench.prepared.base_commit"
_REPOSITORY = "clawbench-prepared"
_EVALUATION = "clawbench-evaluation"
_HARMLESS = re.compile(
    r"\.git/(HEAD|config|index|info/exclude|packed-refs|objects/pack/pack-[0-9a-f]+\.(pack|idx|rev))"
)


@dataclass(frozen=True)
class Proof:
    """What the prepared repository contains."""

    start_commit: str
    commits: int
    """The number of commits in the start commit's past, including itself."""
    objects: int
    digest: str
    """Of the sorted ids of all objects in the database."""
    foreign: int = 0
    """The number of objects beyond the start commit's closure; the image is only used if it is 0."""


@dataclass(frozen=True)
class PreparedImage:
    """An image that a claw may get."""

    tag: str
    image_id: str
    evaluation: str
    """The image for the official harness: the same, with the tags of the start commit's own past, from which build
    tools derive versions. In the source image, a patch could take the fix from the history while it is judged."""
    source: str
    source_id: str
    proof: Proof
    platform: str | None = None
    """The platform of its containers, if one was asked for."""


VERIFYING = ("verify.sh", "repositories.sh")
"""The scripts that `verify` needs."""
_STRIPPING = ("strip.sh", "repositories.sh")


def recipe_digest() -> str:
    """A digest of what prepares images and judges them; images prepared by other versions of it are not used.

    This module is part of it: what `verify.sh` lists is judged here.
    """
    texts = [script(name) for name in sorted({*_STRIPPING, *VERIFYING, "prepare.py"})]
    return sha256("".join(texts).encode()).hexdigest()[:12]


def prepare(
    client: docker.DockerClient,
    source: str,
    *,
    instance_id: str,
    base_commit: str,
    locks: Path,
    labels: Mapping[str, str],
    say: Callable[[str], None],
    workdir: str = WORKDIR,
    platform: str | None = None,
    made: Callable[[str], None] = lambda _: None,
) -> PreparedImage:
    """Find or make the prepared image of a source image.

    Args:
        client: the engine.
        source: the source image's name.
        instance_id: for the prepared image's tag.
        base_commit: the instance's base commit, a full id.
        locks: a folder of lock files that all workers on this machine share.
        labels: for the containers that this needs.
        say: told before anything slow.
        workdir: the repository's folder inside the image.
        platform: of the source image; None is whatever it has.
        made: called with the name of each new image.

    Raises:
        PreparationError: the repository can't be stripped, or the proof fails.
    """
    source_id = str(client.images.get(source).id)
    key = sha256(f"{source_id} {base_commit} {workdir} {recipe_digest()}".encode()).hexdigest()[:16]
    slug = re.sub(r"[^a-z0-9_.-]", "-", instance_id.lower())[:100]
    tag, evaluation = f"{_REPOSITORY}:{slug}-{key}", f"{_EVALUATION}:{slug}-{key}"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"prepare-{key}.lock"):
        try:
            client.images.get(evaluation)
            image = client.images.get(tag)
        except ImageNotFound:
            say("stripping the history")
            _Preparation(client, source, base_commit, workdir, labels, platform).make(tag, evaluation)
            made(evaluation)
            made(tag)
            image = client.images.get(tag)
    proof = Proof(**json.loads(image.labels[_PROOF]))
    return PreparedImage(tag, str(image.id), evaluation, source, source_id, proof, platform)


@dataclass(frozen=True)
class _Preparation:
    """The preparation of one image."""

    client: docker.DockerClient
    source: str
    base_commit: str
    workdir: str
    labels: Mapping[str, str]
    platform: str | None

    def make(self, tag: str, evaluation: str) -> None:
        """Strip, verify, and only then name the two images."""
        with self._throwaway(self.source, *_STRIPPING) as container:
            lines = run_script(container, ["/clawbench/strip.sh", self.workdir, self.base_commit])
            stripped = _commit(container)
        tagged = ""
        try:
            # in a fresh container, because the image that agents get is what must be proven
            with self._throwaway(stripped, *VERIFYING) as container:
                proof = verify(container, self.workdir, self.base_commit)
            tagged = self._with_own_tags(stripped, lines)
            self._name(tagged, evaluation, proof)
            self._name(stripped, tag, proof)
        except BaseException:
            for image in filter(None, (tagged, stripped)):
                with suppress(APIError):
                    self.client.images.remove(image, force=True)
            raise

    def _throwaway(self, image: str, *names: str) -> AbstractContextManager[Container]:
        scripts = {name: script(name) for name in names}
        return throwaway(self.client, image, self.labels, scripts, platform=self.platform)

    def _with_own_tags(self, stripped: str, lines: Sequence[str]) -> str:
        """An image with the tags that strip.sh found in the start commit's own past."""
        tags = sorted(line.removeprefix("tag ").split(" ")[::-1] for line in lines if line.startswith("tag "))
        rows = ["# pack-refs with: peeled fully-peeled sorted ", *(f"{commit} {name}" for name, commit in tags)]
        with self._throwaway(stripped) as container:
            put_files(container, self.workdir, {".git/packed-refs": "".join(f"{row}\n" for row in rows).encode()})
            return _commit(container)

    def _name(self, image: str, tag: str, proof: Proof) -> None:
        """Give an image its name, its proof, and the entry point of the source image."""
        config = self.client.images.get(self.source).attrs["Config"]
        proven = json.dumps(asdict(proof))
        marks = {_PROOF: proven, _SOURCE: self.source, _BASE_COMMIT: self.base_commit, MAKER: ""}
        lines = [
            f"FROM {image}",
            f"ENTRYPOINT {json.dumps(config['Entrypoint'] or [])}",
            f"CMD {json.dumps(config['Cmd'] or [])}",
            *(f"LABEL {name}={json.dumps(value)}" for name, value in marks.items()),
        ]
        self.client.images.build(fileobj=io.BytesIO("\n".join(lines).encode()), tag=tag, rm=True)


def _commit(container: Container) -> str:
    """An image of the container, without our labels, which its containers would inherit."""
    marks = {OWNER: "", RUN: "", CASE: "", MAKER: this_process()}
    return str(container.commit(changes=[f"LABEL {name}={json.dumps(value)}" for name, value in marks.items()]).id)


def verify(container: Container, workdir: str, base_commit: str) -> Proof:
    """Prove what the repository in an image contains.

    Args:
        container: of the image, from `throwaway` with the scripts `VERIFYING` in it.
        workdir: the repository's folder.
        base_commit: the instance's base commit.

    Raises:
        PreparationError: the repository contains something besides the start commit's own past.
    """
    lines = run_script(container, ["/clawbench/verify.sh", workdir, base_commit])
    facts: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.replace("submodule ", "").partition(" ")
        facts.setdefault(key, []).append(value)
    start = facts["start"][0]
    problems = [] if facts["base"] == ["reachable"] else ["the base commit is not in it"]
    if any(int(count) for count in facts["foreign"]):
        problems.append(f"{sum(map(int, facts['foreign']))} objects beyond the start commit's past")
    if any(int(count) for count in facts["missing"]):
        problems.append(f"{sum(map(int, facts['missing']))} objects of its past are missing")
    if int(facts["beyond"][0]):
        problems.append(f"{facts['beyond'][0]} commits after the base commit are not the image's own")
    refs = [ref.split() for ref in facts.get("ref", [])]
    starts = set(facts["start"])
    problems += [
        f"ref {name}" for name, target in refs if target not in starts or not name.startswith("refs/heads/")
    ]
    files_of_refs = {f".git/{name}" for name, _ in refs}
    problems += [
        f"file {name}"
        for name in facts.get("file", [])
        if name not in files_of_refs and not _HARMLESS.fullmatch(name)
    ]
    problems += [f"another copy of the repository at {path}" for path in facts.get("copy", [])]
    if int(facts["dirty"][0]):
        problems.append(f"{facts['dirty'][0]} files differ from the start commit")
    if problems:
        raise PreparationError(
            f"the prepared repository of {base_commit} holds more than its own past: " + "; ".join(problems[:8])
        )
    return Proof(start, int(facts["commits"][0]), int(facts["objects"][0]), facts["digest"][0])

"""Preparing an image: the same file system with a repository that holds the start commit's own past alone.

It is done once per source image, however many workers ask, and verified before anyone may use it: every
object in the prepared repository is compared with the closure of the start commit, and every file below
`.git` must be one that is known to be harmless. What can't be proven is not used. The proof goes into the
image's labels, from where the manifests take it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound
from docker.models.containers import Container
from filelock import FileLock

from workspace.errors import PreparationError
from workspace.owner import CASE, MAKER, OWNER, RUN, this_process
from workspace.throwaway import put_files, run_script, script, throwaway

WORKDIR = "/testbed"
_PREFIX = "clawbench.prepared."
_REPOSITORY = "clawbench-prepared"
_EVALUATION = "clawbench-evaluation"
_HARMLESS = re.compile(
    r"\.git/(HEAD|config|index|info/exclude|packed-refs|objects/pack/pack-[0-9a-f]+\.(pack|idx|rev))"
)


@dataclass(frozen=True)
class Proof:
    """What the prepared repository was found to hold."""

    start_commit: str
    commits: int
    """Commits in the start commit's past, itself included."""
    objects: int
    digest: str
    """Of the sorted names of all objects in the database."""
    foreign: int = 0
    """Objects beyond the start commit's closure: 0, or the image is not used."""

    def as_labels(self) -> dict[str, str]:
        """The proof as image labels."""
        return {f"{_PREFIX}{name}": str(value) for name, value in vars(self).items()}

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> Proof:
        """Read the proof back (KeyError where it is not there)."""
        return cls(
            start_commit=labels[_PREFIX + "start_commit"],
            commits=int(labels[_PREFIX + "commits"]),
            objects=int(labels[_PREFIX + "objects"]),
            digest=labels[_PREFIX + "digest"],
            foreign=int(labels[_PREFIX + "foreign"]),
        )


@dataclass(frozen=True)
class PreparedImage:
    """An image that is fit for a claw."""

    tag: str
    image_id: str
    evaluation: str
    """The image for the official harness: the same, with the tags of the start commit's own past, by which
    build tools tell a version. In the source image itself a patch could fetch the fix out of the history while
    it is being judged."""
    source: str
    source_id: str
    proof: Proof
    platform: str | None = None
    """That containers of it are made for, where one was asked for."""


def recipe_digest() -> str:
    """What tells ways of preparing images apart: those that were prepared in another one are not this one's."""
    return sha256((script("strip.sh") + script("verify.sh")).encode()).hexdigest()[:12]


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
        labels: the labels for containers that this needs.
        say: told what takes time.
        workdir: the repository's folder inside the image.
        platform: that the source image must be of; None takes it as it is.
        made: told the name of each image that was not there before.

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
    proof = Proof.from_labels(image.labels)
    return PreparedImage(tag, str(image.id), evaluation, source, source_id, proof, platform)


@dataclass(frozen=True)
class _Preparation:
    """One image being prepared."""

    client: docker.DockerClient
    source: str
    base_commit: str
    workdir: str
    labels: Mapping[str, str]
    platform: str | None

    def make(self, tag: str, evaluation: str) -> None:
        """Strip, verify, and only then give the two images their names."""
        with self._throwaway(self.source, "strip.sh") as container:
            lines = run_script(container, ["/clawbench/strip.sh", self.workdir, self.base_commit])
            stripped = _commit(container)
        tagged = ""
        try:
            # a fresh container: what is proven is the image that agents will get, not where it was made
            with self._throwaway(stripped, "verify.sh") as container:
                proof = verify(container, self.workdir, self.base_commit)
            tagged = self._with_own_tags(stripped, lines)
            self._name(tagged, evaluation, proof)
            self._name(stripped, tag, proof)
        except BaseException:
            for image in (tagged, stripped):
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
        """Give an image its name, its proof, and what the source image runs by itself."""
        config = self.client.images.get(self.source).attrs["Config"]
        marks = proof.as_labels() | {_PREFIX + "source": self.source, _PREFIX + "base_commit": self.base_commit}
        lines = [
            f"FROM {image}",
            f"ENTRYPOINT {json.dumps(config['Entrypoint'] or [])}",
            f"CMD {json.dumps(config['Cmd'] or [])}",
            *(f"LABEL {name}={json.dumps(value)}" for name, value in {**marks, MAKER: ""}.items()),
        ]
        self.client.images.build(fileobj=io.BytesIO("\n".join(lines).encode()), tag=tag, rm=True)


def _commit(container: Container) -> str:
    """An image of the container, without the labels of ours that it would hand on to every container."""
    marks = {OWNER: "", RUN: "", CASE: "", MAKER: this_process()}
    return str(container.commit(changes=[f"LABEL {name}={json.dumps(value)}" for name, value in marks.items()]).id)


def verify(container: Container, workdir: str, base_commit: str) -> Proof:
    """Prove what a created, not yet started container's repository holds.

    The container must have come from `throwaway` with `verify.sh` in it.

    Raises:
        PreparationError: something is there that is not the start commit's own past.
    """
    lines = run_script(container, ["/clawbench/verify.sh", workdir, base_commit])
    facts: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.replace("submodule ", "").partition(" ")
        facts.setdefault(key, []).append(value)
    start = facts["start"][0]
    problems = [] if facts["base"] == ["reachable"] else ["the base commit itself is not in it"]
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
    if int(facts["dirty"][0]):
        problems.append(f"{facts['dirty'][0]} files differ from the start commit")
    if problems:
        raise PreparationError(
            f"the prepared repository of {base_commit} holds more than its own past: " + "; ".join(problems[:8])
        )
    return Proof(start, int(facts["commits"][0]), int(facts["objects"][0]), facts["digest"][0])

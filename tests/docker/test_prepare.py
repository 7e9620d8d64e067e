"""Preparation keeps only the start commit's own past, proves it, and happens once and completely."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container
from support.prepare_world import FIND_FIX, KILLED, LEAKY, ODD, ON_DISK, planted, prepare_in_a_process
from support.workspace_fixtures import RUN_ID, built, container_of, discard, engine, is_removed, prepared_image, sh

from workspace.container_files import put_files
from workspace.owner import CASE, OWNER, RUN, labels, sweep
from workspace.prepare import VERIFYING, PreparedImage, Proof, prepare, verify
from workspace.throwaway import script, throwaway
from workspace.workspace_errors import PreparationError

pytestmark = pytest.mark.docker


@dataclass(frozen=True)
class Leaky:
    client: docker.DockerClient
    source: str
    base: str
    start: str
    objects: int
    commits: int
    image: PreparedImage


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaky]:
    with ExitStack() as stack:
        client = stack.enter_context(engine())
        source, said = stack.enter_context(built(client, LEAKY))
        base, start, objects, commits = said.split()
        image = stack.enter_context(prepared_image(client, source, base, tmp_path_factory.mktemp("leaky")))
        # the submodule's commit is listed with the objects, and is none of this repository's
        yield Leaky(client, source, base, start, int(objects), int(commits), image)


@pytest.fixture(scope="module")
def inside(leaky: Leaky) -> Iterator[Container]:
    with container_of(leaky.client, leaky.image.image_id) as container:
        yield container


def test_the_source_leaks_in_every_way(leaky: Leaky) -> None:
    with container_of(leaky.client, leaky.source) as container:
        found = set(sh(container, FIND_FIX).split())
        names = "branch early remote tag annotated note replace bisect pull loose stash dangling blob second-pack"
        names += " worktree alternate graft reflog fetch orig submodule hook message description"
        assert found >= {f"FIX-{name}" for name in names.split()}
        assert {"/opt", "/review"} <= {f"/{line.split('/')[1]}" for line in sh(container, ON_DISK).splitlines()}


def test_nothing_of_a_fix_is_left(inside: Container) -> None:
    assert sh(inside, FIND_FIX) == ""
    assert sh(inside, ON_DISK) == ""
    copies = "/opt/mirror.git /opt/latest /opt/later /opt/borrowing /srv/* /review /lib-upstream"
    assert sh(inside, f"ls -d {copies} 2>/dev/null || true") == ""
    assert sh(inside, "git -C /opt/unrelated log --format=%s") == "other", "what is not ours stays"


def test_the_objects_are_the_closure_of_the_start_commit(inside: Container, leaky: Leaky) -> None:
    for folder in ("/testbed", "/testbed/third/lib", "'/testbed/löb x'"):
        held = sh(inside, f"cd {folder}; git cat-file --batch-all-objects --batch-check='%(objectname)'").split()
        closure = sh(inside, f"cd {folder}; git rev-list --objects --no-object-names HEAD").split()
        assert sorted(held) == sorted(closure)
        assert sh(inside, f"cd {folder}; git fsck --full --strict --unreachable --no-progress 2>&1") == ""
        assert sh(inside, f"cd {folder}; git rev-list --all --reflog HEAD | sort") == sh(
            inside, f"cd {folder}; git rev-list HEAD | sort"
        )
    proof = leaky.image.proof
    assert (proof.start_commit, proof.commits, proof.foreign) == (leaky.start, leaky.commits, 0)
    held = sh(inside, "cd /testbed; git cat-file --batch-all-objects --batch-check='%(objectname)'").split()
    assert proof.objects == len(held) == leaky.objects
    listed = "".join(f"{name}\n" for name in sorted(held)).encode()
    assert proof.digest == f"sha256:{hashlib.sha256(listed).hexdigest()}"


def test_the_git_folder_has_only_what_a_repository_needs(inside: Container) -> None:
    for folder in ("/testbed", "/testbed/third/lib"):
        files = sh(inside, f"cd {folder}/.git; find . ! -type d | sed 's/pack-[0-9a-f]*/pack/'").split()
        allowed = {"./HEAD", "./config", "./index", "./info/exclude", "./packed-refs", "./refs/heads/main"}
        assert set(files) <= allowed | {f"./objects/pack/pack.{kind}" for kind in ("idx", "pack", "rev")}
    assert sh(inside, "cd /testbed; git for-each-ref --format='%(refname)'") == "refs/heads/main"
    assert sh(inside, "cd /testbed; git remote; git worktree list | wc -l; git stash list") == "1"


def test_the_start_commit_is_the_images_setup_commit_with_base_below(inside: Container, leaky: Leaky) -> None:
    assert sh(inside, "cd /testbed; git rev-parse HEAD HEAD~1").split() == [leaky.start, leaky.base]
    assert sh(inside, "cd /testbed; git symbolic-ref HEAD") == "refs/heads/main"
    assert sh(
        inside, f"cd /testbed; git checkout -q {leaky.base}; git checkout -q main; git status --porcelain"
    ) == ("?? stray.txt")


def test_history_before_base_stays_readable(inside: Container, leaky: Leaky) -> None:
    assert sh(inside, "cd /testbed; git log --format=%s").split("\n") == [
        "SWE-bench", "third", "with a submodule of an odd name", "with a submodule", "second", "first"
    ]  # fmt: skip
    assert "third" in sh(inside, "cd /testbed; git blame -s code.txt")
    assert sh(inside, "cd /testbed; git show HEAD~4:code.txt") == "second"
    assert sh(inside, "git -C /testbed/third/lib log --format=%s") == "one"
    assert sh(inside, "git -C /testbed/third/lib rev-parse HEAD") in sh(
        inside, "git -C /testbed submodule status third/lib"
    )


def test_the_working_tree_is_as_in_the_image(inside: Container, leaky: Leaky) -> None:
    files = "cd /testbed; find . -name .git -prune -o -type f -exec sha256sum {} + | sort"
    with container_of(leaky.client, leaky.source) as container:
        assert sh(inside, files) == sh(container, files)
    assert sh(inside, "cd /testbed; cat dir/tracked.gen local/output stray.txt") == "kept\nbuilt\nother"
    assert sh(inside, "cd /testbed; git ls-files dir") == "dir/tracked.gen"


def test_the_prepared_image_carries_no_traces_of_ours(inside: Container, leaky: Leaky) -> None:
    image = leaky.client.images.get(leaky.image.tag)
    assert not any(image.labels.get(name) for name in (OWNER, RUN, CASE))
    assert Proof(**json.loads(image.labels["clawbench.prepared.proof"])) == leaky.image.proof
    assert sh(inside, "ls -d /clawbench /tmp/* 2>/dev/null || true") == ""


def test_the_evaluation_image_has_tags_of_the_past_and_no_fix(leaky: Leaky) -> None:
    with container_of(leaky.client, leaky.image.evaluation) as container:
        assert sh(container, "cd /testbed; git tag").split() == ["v1", "v1.0"]
        assert sh(container, "cd /testbed; git describe --tags HEAD~1").startswith("v1-1-g")
        assert sh(container, FIND_FIX) == ""
        held = sh(container, "cd /testbed; git cat-file --batch-all-objects --batch-check='%(objectname)'").split()
        assert len(held) == leaky.image.proof.objects
        assert sh(container, "cd /testbed; git rev-parse HEAD; git status --porcelain").split("\n") == [
            leaky.start, "?? stray.txt"
        ]  # fmt: skip
        assert sh(container, "ls -d /clawbench /tmp/* 2>/dev/null || true") == ""
    image, source = (
        leaky.client.images.get(name).attrs["Config"] for name in (leaky.image.evaluation, leaky.source)
    )
    assert [image[name] or [] for name in ("Cmd", "Entrypoint")] == [
        source[name] or [] for name in ("Cmd", "Entrypoint")
    ]
    assert not any(image["Labels"].get(name) for name in (OWNER, RUN, CASE))


# -- images that are not as they should be ----------------------------------------------------------------------


@dataclass(frozen=True)
class Odd:
    client: docker.DockerClient
    source: str
    bases: dict[str, str]
    locks: Path

    @property
    def mark(self) -> str:
        """In the names of all images that are prepared here: a worker beside prepares its own at the same time."""
        return self.source[-12:]

    def tags(self, name: str) -> list[str]:
        """What an instance's prepared images are called."""
        rows = self.client.api.images()
        return sorted(tag for row in rows for tag in row["RepoTags"] or [] if f"tests__{name}-{self.mark}" in tag)

    def prepare(self, name: str, base: str | None = None) -> PreparedImage:
        return prepare(
            self.client,
            self.source,
            instance_id=f"tests__{name}-{self.mark}",
            base_commit=base or self.bases.get(name, self.bases["whole"]),
            locks=self.locks,
            labels=labels(RUN_ID),
            say=print,
            workdir=f"/odd/{name}",
        )


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odd]:
    with engine() as client, built(client, ODD) as (source, _):
        with container_of(client, source) as container:
            bases = dict(line.split() for line in sh(container, "cat /odd/bases").splitlines())
        yield Odd(client, source, bases, tmp_path_factory.mktemp("odd"))


@pytest.mark.parametrize("name", ["named", "ahead", "detached", "unborn", "linked"])
def test_only_setup_commits_of_the_image_move_the_start(odd: Odd, name: str) -> None:
    image = odd.prepare(name)
    try:
        assert image.proof.start_commit == odd.bases.get(name, odd.bases["whole"])
        assert image.proof.commits == 2
        with container_of(odd.client, image.image_id) as container:
            assert sh(container, f"cd /odd/{name}; git status --porcelain; cat a; ls") == "second\na"
            assert sh(container, f"cd /odd/{name}; git rev-list --all HEAD | wc -l") == "2"
    finally:
        discard(odd.client, image)


@pytest.mark.parametrize(
    ("name", "base", "message"),
    [
        ("shallow", None, "shallow"),
        ("whole", "0123456789" * 4, "does not have the base commit 0123456789012345678901234567890123456789"),
        ("none", None, "is not a git repository"),
        ("nowhere", None, "has no /odd/nowhere"),
        ("corrupt", None, "strip.sh failed"),
        ("partial", None, "strip.sh failed"),
    ],
)
def test_an_image_that_can_not_be_proven_is_not_used(odd: Odd, name: str, base: str | None, message: str) -> None:
    with pytest.raises(PreparationError, match=message):
        odd.prepare(name, base)
    assert odd.tags(name) == []
    assert not odd.client.containers.list(
        all=True, filters={"label": f"{OWNER}={labels(RUN_ID)[OWNER]}", "ancestor": odd.source}
    )


# -- verification fails closed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", planted("", ""))
def test_verification_fails_closed(leaky: Leaky, inside: Container, what: str) -> None:
    tree = sh(inside, "git -C /testbed rev-parse HEAD^{tree}")
    with throwaway(
        leaky.client, leaky.image.image_id, labels(RUN_ID), {name: script(name) for name in VERIFYING}
    ) as container:
        files = {f"testbed/{name}": data for name, data in planted(leaky.start, tree)[what].items()}
        put_files(container, "/", files)
        with pytest.raises(PreparationError):
            verify(container, "/testbed", leaky.base)


def test_verification_accepts_a_prepared_image(leaky: Leaky) -> None:
    with throwaway(
        leaky.client, leaky.image.image_id, labels(RUN_ID), {name: script(name) for name in VERIFYING}
    ) as container:
        assert verify(container, "/testbed", leaky.base) == leaky.image.proof


def test_verification_accepts_only_the_images_own_setup_commits(leaky: Leaky, inside: Container) -> None:
    earlier = sh(inside, "git -C /testbed rev-parse HEAD~2")
    scripts = {name: script(name) for name in VERIFYING}
    told = pytest.raises(PreparationError, match="1 commits after the base commit are not the image's own")
    with throwaway(leaky.client, leaky.image.image_id, labels(RUN_ID), scripts) as container, told:
        verify(container, "/testbed", earlier)


# -- many at once, and killed -----------------------------------------------------------------------------------


def test_many_processes_prepare_an_image_once(odd: Odd, tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        arguments = (odd.source, odd.bases["whole"], str(tmp_path))
        results = pool.map(prepare_in_a_process, [arguments] * 4)
    try:
        assert len({image for image, _ in results}) == 1
        assert sum(len(said) for _, said in results) == 1
        assert odd.tags("once") == [results[0][0].evaluation, results[0][0].tag]
    finally:
        discard(odd.client, results[0][0])


@pytest.mark.parametrize("function", ["run_script", "_commit", "verify"])
def test_a_killed_preparation_leaves_no_usable_image(odd: Odd, tmp_path: Path, function: str) -> None:
    text = KILLED.format(
        tests=str(Path(__file__).parents[1]),
        function=function,
        source=odd.source,
        base=odd.bases["whole"],
        locks=str(tmp_path),
    )
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        ours = {"label": f"{RUN}={RUN_ID}", "ancestor": odd.source}
        (left,) = odd.client.containers.list(all=True, filters=ours, ignore_removed=True)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert odd.tags("once") == []
    sweep(odd.client)
    assert is_removed(odd.client, left.id)
    image, said = prepare_in_a_process((odd.source, odd.bases["whole"], str(tmp_path)))
    assert said == ["stripping the history"]
    discard(odd.client, image)

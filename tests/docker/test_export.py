"""Export: applying the raw patch to the start tree gives what the agent left, whatever it did.

Real containers, real git. The operations are drawn; `export_world` judges with an oracle of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from support.export_operations import LARGE, OPERATIONS, START, Operation
from support.export_world import World, exported, mutate, unpack
from support.workspace_fixtures import built, container_of, engine, prepared_image, sh, start_tree

import workspace.changes
import workspace.export
from workspace.export import Export

pytestmark = pytest.mark.docker

THOROUGH = "CLAWBENCH_EXPORT_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("CLAWBENCH_EXPORT_EXAMPLES", "10"))


@dataclass(frozen=True)
class ExportBench:
    client: docker.DockerClient
    image: str
    world: World

    @contextmanager
    def container(self) -> Iterator[Container]:
        with container_of(self.client, self.image) as container:
            yield container

    def after(self, script: str, agent_files: Sequence[str] = (), folder: Path | None = None) -> Export:
        """The export after a shell script, judged by the oracle."""
        with self.container() as container:
            sh(container, f"cd /testbed\n{script}")
            result = exported(container, self.world, agent_files, folder)
            if not agent_files:
                self.world.check(container, result)
            return result


@contextmanager
def made(folder: Path, script: str, files: dict[str, bytes] | None = None) -> Iterator[ExportBench]:
    with ExitStack() as stack:
        client = stack.enter_context(engine())
        source, base = stack.enter_context(built(client, script, files))
        image = stack.enter_context(prepared_image(client, source, base, folder))
        start = start_tree(client, image, folder)
        with container_of(client, image.image_id) as container:
            checkout = unpack(container, folder / "checkout")
        yield ExportBench(client, image.image_id, World(start, checkout))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportBench]:
    with made(tmp_path_factory.mktemp("export"), "python3 /start.py", {"start.py": START.encode()}) as bench:
        yield bench


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not THOROUGH,
    phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if THOROUGH else [])],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(OPERATIONS, min_size=1, max_size=14))
@example([("delete", b"README.md", 0), ("delete", b"src/core.py", 0), ("delete", b"docs", 0)])
@example([("hardlink", b".git/HEAD", b"latin/\xd5S"), ("nested", b"fresh/caf\xe9", b"clone")])
@example(
    [("into_file", b"cache", b"in the way"), ("into_folder", b"stray.txt", b"x"), ("into_file", b"build", b"")]
)
@example([("into_folder", b"latin/prose.txt", b"utf8.txt"), ("symlink", b"latin/prose2.txt", b"caf\xe9")])
@example([("sneak", b"src/core.py", 0), ("remake", b"\xe9", b"first"), ("remake", b"src", b"core.py")])
def test_the_raw_patch_reproduces_the_final_tree(bench: ExportBench, operations: list[Operation]) -> None:
    with bench.container() as container:
        mutate(container, operations)
        result = exported(container, bench.world)
        bench.world.check(container, result)


def test_an_untouched_tree_gives_an_empty_patch(bench: ExportBench) -> None:
    result = bench.after(":")
    assert (result.raw, result.patch, result.dropped, result.changed_files) == ("", "", (), 0)
    assert result.start_tree == result.final_tree


def test_new_time_stamps_give_an_empty_patch(bench: ExportBench) -> None:
    result = bench.after("find . -path ./.git -prune -o -type f -exec touch {} +")
    assert (result.raw, result.patch, result.changed_files) == ("", "", 0)


def test_bytes_that_an_attribute_can_not_decode_are_still_exported(bench: ExportBench) -> None:
    result = bench.after("printf 'odd' >win/u16.txt; echo x >>win/start.bat")
    assert result.changed_files == 2


@pytest.mark.parametrize("name", ["git~1", ".git ", ".git.", ".GIT", "GIT~1/config", ".git:stream", ".git\\x"])
def test_names_that_git_refuses_do_not_spoil_the_patch(bench: ExportBench, name: str) -> None:
    result = bench.after(f"mkdir -p '{Path('odd', name).parent}'; echo x >'odd/{name}' || true; echo y >new.txt")
    assert result.changed_files == 1
    assert [item.path for item in result.dropped] == [f"odd/{name}"]


@pytest.mark.parametrize("write", [":", "printf 'a\\0b'", "printf '\\377'"], ids=["empty", "binary", "latin"])
def test_a_folder_name_that_ends_with_a_space_does_not_spoil_the_patch(bench: ExportBench, write: str) -> None:
    result = bench.after(f"mkdir 'odd '; {write} >'odd /file'; echo text >'odd /text'; echo y >new.txt")
    assert result.changed_files == 2
    assert [item.path for item in result.dropped] == ["odd /file"]


# -- the claw's agent_files --------------------------------------------------------------------------------------

AGENT_FILES = ["/.claw/", "/MEMORY.md", "/README.md", "*.session", "/keep.log"]


def test_agent_files_are_saved_and_not_judged(bench: ExportBench, tmp_path: Path) -> None:
    result = bench.after(
        "mkdir -p .claw/deep src/sub; echo m >MEMORY.md; echo a >.claw/deep/a; ln -s /etc/passwd .claw/link;"
        "echo s >src/sub/x.session; echo r >>README.md; rm keep.log; echo fixed >>src/core.py; touch .claw/x.log",
        AGENT_FILES,
        tmp_path / "saved",
    )
    files = [".claw/deep/a", ".claw/link", ".claw/x.log", "MEMORY.md", "src/sub/x.session"]
    # the repository ignores *.log, and the claw's log is kept all the same
    assert list(result.agent_files) == files
    assert sorted(item.path for item in result.dropped) == files
    assert {item.reason for item in result.dropped} == {"left by the claw itself"}
    assert (tmp_path / "saved/.claw/link").read_text() == "/etc/passwd"
    assert not (tmp_path / "saved/.claw/link").is_symlink()
    # what the repository tracks is the repository's, whatever its name
    for part in ("README.md", "keep.log", "src/core.py"):
        assert f"a/{part}" in result.patch
    assert result.changed_files == 3
    assert not any(name in result.patch for name in files)


def test_agent_files_where_the_repository_had_a_file(bench: ExportBench, tmp_path: Path) -> None:
    result = bench.after("rm README.md; mkdir README.md; echo x >README.md/x", AGENT_FILES, tmp_path)
    assert "deleted file" in result.patch
    assert result.agent_files == ("README.md/x",)


# -- tampering -------------------------------------------------------------------------------------------------

EDIT = "echo fixed >>src/core.py; echo new >new.py; rm docs/a.md; "
TAMPERED = {
    "the git binary lies": "printf '#!/bin/sh\\nexit 0\\n' >\"$(command -v git)\"; rm -rf /usr/lib/git-core",
    "hooks, filters and configuration": (
        "printf '#!/bin/sh\\nrm -rf /testbed\\n' >.git/hooks/post-checkout || mkdir -p .git/hooks;"
        "git config filter.x.clean 'echo lie'; git config core.fsmonitor /bin/false; git config core.worktree /;"
        "git config diff.external /bin/true; git config --global core.excludesFile /all; echo '*' >/all;"
        "git config core.autocrlf true; git config core.attributesFile /at; echo '* filter=x -diff' >/at"
    ),
    "info files": "mkdir -p .git/info; cd .git/info; echo '*' >exclude; echo '* binary filter=x' >attributes",
    "index flags": "git update-index --assume-unchanged src/core.py; git update-index --skip-worktree src/util.py",
    "no index": "rm .git/index; echo garbage >.git/index",
    "commits, a moved HEAD, a tag": "git add src; git commit -qm done; git tag v9; git checkout -q --detach; "
    "git update-ref HEAD HEAD~1",
    "no .git": "rm -rf .git",
    "another repository": "rm -rf .git; git init -q; git add -A; git commit -qm mine",
    "a .git file": "mv .git /elsewhere; echo 'gitdir: /elsewhere' >.git",
    "a .git link": "mv .git /elsewhere; ln -s /elsewhere .git",
    "replaced objects": 'git replace HEAD "$(git commit-tree -m x HEAD~1^{tree})"; git gc -q --prune=now',
    "tools removed": "rm -rf /usr/bin/tar /usr/bin/perl /bin/ls; chmod 000 /testbed",
    "pack deleted": "rm -rf .git/objects/pack",
}


@pytest.fixture(scope="module")
def honest(bench: ExportBench) -> Export:
    return bench.after(EDIT)


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_changes_nothing(bench: ExportBench, honest: Export, how: str) -> None:
    result = bench.after(EDIT + TAMPERED[how])
    assert (result.raw, result.final_tree) == (honest.raw, honest.final_tree)


def test_changed_attributes_of_the_repository_are_an_ordinary_change(bench: ExportBench, honest: Export) -> None:
    result = bench.after(EDIT + "echo '* binary -text' >>.gitattributes")
    assert result.changed_files == honest.changed_files + 1
    assert "+fixed" in result.raw
    assert "+* binary -text" in result.raw


@pytest.mark.parametrize(
    "how",
    [
        "cp -a /testbed /moved; rm -rf /testbed; ln -s /moved /testbed",
        "cp -a . /m; rm -rf /testbed; cp -a /m /testbed",
    ],
    ids=["a link", "made again"],
)
def test_another_folder_in_place_of_the_repository(bench: ExportBench, honest: Export, how: str) -> None:
    with bench.container() as container:
        sh(container, f"cd /testbed; {EDIT} {how}")
        result = exported(container, bench.world)
    assert (result.raw, result.final_tree) == (honest.raw, honest.final_tree)


@pytest.mark.parametrize(
    "how", ["rm -rf /testbed", "rm -rf /testbed; echo x >/testbed", "rm -rf /testbed; mkdir /testbed"]
)
def test_no_repository_at_all_is_a_deletion(bench: ExportBench, how: str) -> None:
    with bench.container() as container:
        sh(container, how)
        result = exported(container, bench.world)
    assert result.changed_files == len(bench.world.start.entries)
    assert result.raw.count("\ndeleted file mode") == len(bench.world.start.entries)


def test_what_is_too_large_is_left_out_and_named(bench: ExportBench) -> None:
    """Git would need more memory than there is, and the claw's failure would become an infrastructure error."""
    with bench.container() as container:
        sh(
            container,
            "cd /testbed; truncate -s 100M sparse; ln sparse again; truncate -s 65M README.md; echo x >>src/core.py",
        )
        result = exported(container, bench.world)
    reasons = {item.path: item.reason for item in result.dropped}
    assert reasons.keys() == {"sparse", "again", "README.md"}
    assert all(reason.startswith("more than 64 MiB") for reason in reasons.values())
    assert [line for line in result.patch.splitlines() if line.startswith("diff ")] == [
        "diff --git a/src/core.py b/src/core.py"
    ]


def test_the_largest_files_are_left_out_of_a_patch_that_would_be_too_large(
    bench: ExportBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace.export, "MAX_PATCH", 5000)
    with bench.container() as container:
        sh(container, "cd /testbed; seq 9999 >large.txt; seq 500 >small.txt; seq 4000 >middle.txt")
        result = exported(container, bench.world)
    assert [item.path for item in result.dropped] == ["large.txt", "middle.txt"]
    assert result.changed_files == 1


def test_a_socket_is_named_wherever_it_is(bench: ExportBench) -> None:
    """The engine leaves sockets out of its archives."""
    code = "import socket; [socket.socket(socket.AF_UNIX).bind(path) for path in ('new.sock', 'src/core.py')]"
    with bench.container() as container:
        sh(container, f'cd /testbed; rm src/core.py; python3 -c "{code}"')
        result = exported(container, bench.world)
    assert [item.path for item in result.dropped] == ["new.sock", "src/core.py"]
    assert "deleted file mode" in result.patch


def test_links_to_files_of_the_host_stay_links(bench: ExportBench) -> None:
    secret = Path("/etc/hostname").read_text().strip()
    result = bench.after(
        "rm -rf docs; ln -s /etc docs; ln -s /etc/hostname host; rm .gitignore; ln -s /etc/hostname .gitignore"
    )
    assert f"+{secret}" not in result.raw
    assert "+/etc/hostname" in result.raw


# -- how it is read --------------------------------------------------------------------------------------------

MANY = [
    ("write", b"src/new.py", b"x\n"), ("delete", b"docs", 0), ("rename", b"swap/one", b"moved/caf\xe9"),
    ("into_folder", b"swapfile", b"in"), ("into_file", b"a b", b"f"), ("remake", b"latin", b"prose.txt"),
    ("chmod", b"data/blob.bin", 0o755), ("symlink", b"link", b"elsewhere"), ("hardlink", b".git/HEAD", b"h"),
    ("sneak", b"src/util.py", 0), ("fifo", b"pipe", 0), ("many", b"node_modules", 300), ("write", b"x.log", b""),
    ("nested", b"mine", b"init"),
]  # fmt: skip


def test_reading_the_whole_tree_gives_the_same_as_the_layer(
    bench: ExportBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench.container() as container:
        mutate(container, MANY)
        by_layer = exported(container, bench.world)
        monkeypatch.setattr(workspace.changes, "_layer_of", lambda _: None)
        by_tree = exported(container, bench.world)
        bench.world.check(container, by_tree)
    assert (by_tree.raw, by_tree.final_tree) == (by_layer.raw, by_layer.final_tree)


def requests_for(bench: ExportBench, script: str) -> int:
    """How many requests an export asks of the engine."""
    asked: list[object] = []
    hooks = bench.client.api.hooks["response"]
    with bench.container() as container:
        sh(container, f"cd /testbed; {script}")
        container.kill()
        container.wait()
        hooks.append(lambda reply, **_: asked.append(reply))
        try:
            exported(container, bench.world)
        finally:
            hooks.pop()
    return len(asked)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportBench]:
    """1,000 files and a submodule."""
    with made(tmp_path_factory.mktemp("large"), LARGE) as bench:
        yield bench


def test_the_work_does_not_grow_with_the_repository(bench: ExportBench, large: ExportBench) -> None:
    assert requests_for(large, "echo x >>pkg7/sub/f7; rm pkg8/sub/f8; echo n >pkg9/sub/new") == requests_for(
        bench, "echo x >>src/core.py; rm docs/a.md; echo n >swap/new"
    )


@pytest.mark.parametrize("read_whole", [False, True], ids=["layer", "tree"])
@pytest.mark.parametrize(
    ("script", "changed", "told"),
    [
        (":", 0, False),
        ("echo x >>third/lib/lib.c; echo y >third/lib/new; rm third/lib/in/f; echo z >>pkg1/sub/f1", 1, True),
        ("cd third/lib; echo x >>lib.c; git commit -qam ahead", 0, True),
        ("rm -rf third/lib; echo z >third/new", 2, False),
        ("rm -rf third .gitmodules; git add -A", 2, False),
    ],
    ids=["untouched", "edited", "committed", "removed", "removed by git"],
)
def test_a_submodule_is_a_repository_of_its_own(
    large: ExportBench,
    monkeypatch: pytest.MonkeyPatch,
    *,
    read_whole: bool,
    script: str,
    changed: int,
    told: bool,
) -> None:
    if read_whole:
        monkeypatch.setattr(workspace.changes, "_layer_of", lambda _: None)
    with large.container() as container:
        sh(container, f"cd /testbed; {script}")
        result = exported(container, large.world)
    assert result.changed_files == changed
    if told:
        assert any("submodule" in item.reason for item in result.dropped)

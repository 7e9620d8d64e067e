"""Export: applying the raw patch to the start tree gives what the agent left, whatever it did.

Real containers, real git. The operations are drawn; `export_world` judges them with an oracle of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from export_world import START, Operation, World, exported, mutate
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from workspace_fixtures import built, container_of, engine, prepared_image, start_tree

pytestmark = pytest.mark.docker

THOROUGH = "CLAWBENCH_EXPORT_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("CLAWBENCH_EXPORT_EXAMPLES", "18"))


@dataclass(frozen=True)
class Bench:
    client: docker.DockerClient
    image: str
    world: World


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("export")
    with ExitStack() as stack:
        client = stack.enter_context(engine())
        source, base = stack.enter_context(built(client, "python3 /start.py", {"start.py": START.encode()}))
        image = stack.enter_context(prepared_image(client, source, base, folder))
        start = start_tree(client, image, folder)
        with container_of(client, image.image_id) as container:
            checkout = unpack(container, folder / "checkout")
        yield Bench(client, image.image_id, World(start, checkout))


def unpack(container: docker.models.containers.Container, folder: Path) -> Path:
    """A container's /testbed on the host, `.git` included."""
    import io
    import tarfile

    data = b"".join(container.get_archive("/testbed")[0])
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as archive:
        archive.extractall(folder, filter="fully_trusted")
    return folder / "testbed"


PLACES = [
    b"README.md", b"src", b"src/core.py", b"src/util.py", b"src/lib", b"src/lib/deep", b"src/lib/deep/er/x.c",
    b"a b", b"a b/c d/e f", b"swap", b"swap/one", b"swap/in", b"swapfile", b"build", b"build/kept.txt",
    b"src/forced.tmp", b"keep.log", b"with space.txt", b"tab\there", b"new\nline", b'quote"back\\slash', b":colon",
    b"-dash", b"trailing ", "ünï".encode(), b"*star", b"latin", b"latin/\xff\xfe", b"latin/caf\xe9.txt", b"\xe9",
    b"\xe9/first", b"bin/run.sh", b"docs", b"docs/crlf.txt", b"docs/mixed.txt", b"win", b"win/start.bat",
    b"win/lf.auto", b"win/version.id", b"win/u16.txt", b"latin/prose.txt", b"latin/prose2.txt", b"data",
    b"data/blob.bin", b"data/no-eol.txt", b"data/empty", b"data/big.txt", b"link", b"dangling", b"folder-link",
    b"absolute-link", b"latin-link", b".gitignore", b"src/.gitignore", b".gitattributes", b"stray.txt", b"cache",
    b"image.log", b"vendored/file", b"setup.cfg",
]  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(
        [b"new.py", b"two words", b"tab\t", b"line\nbreak", b'"quoted"', b"back\\slash", b":(top)x", b"-rf", b"--",
         b"caf\xe9", "日本".encode(), b"end ", b" start", b"x.log", b"y.tmp", b"z.excluded", b"#c", b"!n", b"[a]",
         b"\x01\x7f", b"a" * 200, b"\xf0\x9f\x98\x80", b"node_modules", b".hidden", b"core.py", b"...", b"~", b"\r"]
    ),
    st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"0")).filter(
        lambda name: name not in (b".", b"..") and not name.lower().startswith((b".git", b"git~"))
    ),
)  # fmt: skip
FOLDERS = st.sampled_from(
    [b"", b"src/", b"src/lib/", b"build/", b"latin/", b"\xe9/", b"fresh/", b"fresh/er/", b"swap/"]
)
NEW = st.builds(bytes.__add__, FOLDERS, NAMES)
PATHS = st.one_of(st.sampled_from(PLACES), NEW)
LINES = [
    b"plain\n",
    b"dos\r\n",
    b"caf\xe9\n",
    "日本\n".encode(),
    b"\r",
    b"no end",
    b"\0",
    b"\x0c",
    "\u2028".encode(),
    b"\n",
]
CONTENTS = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=8).map(b"".join),
    st.binary(max_size=300),
    st.sampled_from([b"", b"x" * 9000 + b"\0late\n", b"word\n" * 700_000, bytes(range(256)) * 12_000]),
)


def operation(kind: str, paths: st.SearchStrategy[bytes], values: object) -> st.SearchStrategy[Operation]:
    strategy = values if isinstance(values, st.SearchStrategy) else st.just(values)
    return st.tuples(st.just(kind), paths, strategy)


OPERATIONS = st.one_of(
    operation("write", PATHS, CONTENTS),
    operation("write", NEW, CONTENTS),
    operation("edit", st.sampled_from(PLACES), CONTENTS),
    operation("delete", PATHS, 0),
    operation("rename", PATHS, PATHS),
    operation("remake", st.sampled_from([b"src", b"swap", b"latin", b"\xe9", b"build", b"data"]), st.sampled_from([b"one", b"core.py/x", b"\xff/prose.txt"])),
    operation("symlink", PATHS, st.sampled_from([b"README.md", b"/etc", b"nowhere", b"..", b"src", b"caf\xe9", b"a b\n"])),
    operation("hardlink", PATHS, PATHS),
    operation("hardlink", st.sampled_from([b".git/config", b".git/HEAD"]), NEW),
    operation("sneak", PATHS, 0),
    operation("touch", PATHS, 0),
    operation("chmod", PATHS, st.sampled_from([0o755, 0o644, 0o600, 0o711, 0o4755, 0])),
    operation("copy", PATHS, PATHS),
    operation("into_folder", PATHS, NAMES),
    operation("into_file", PATHS, CONTENTS),
    operation("many", st.sampled_from([b"node_modules", b"build/out"]), st.sampled_from([10, 3000])),
    operation("nested", NEW, st.sampled_from([b"clone", b"init"])),
    operation("fifo", PATHS, 0),
    operation("write", st.sampled_from([b".gitignore", b"fresh/.gitignore", b"src/.gitignore"]), st.sampled_from([b"*.py\n", b"*\n", b"!*.log\n/fresh/\n", b"caf\xe9\n"])),
    operation("git", st.sampled_from([b"git add -A; git commit -qm agent", b"git rm -rq src", b"git mv README.md moved.md", b"git checkout -q -b other", b"git stash -u", b"git gc -q", b"git clean -fdx", b"rm -rf .git"]), 0),
)  # fmt: skip


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not THOROUGH,
    phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if THOROUGH else [])],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(OPERATIONS, min_size=1, max_size=14))
@example([("delete", b"README.md", 0), ("delete", b"src/core.py", 0), ("delete", b"docs", 0)])
def test_the_raw_patch_gives_what_was_left(bench: Bench, operations: list[Operation]) -> None:
    with container_of(bench.client, bench.image) as container:
        mutate(container, operations)
        result = exported(container, bench.world)
        bench.world.check(container, result)

"""The embedded task set: well formed, consistent, and leaking exactly as it says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import docker
import pytest
import yaml
from support.workspace_fixtures import done
from swebench.task.checks import check_task_repo
from unidiff import PatchSet

from adapters.runtimes import default_home
from demo.apt_sources import AptConfigError, Source, host_archive
from demo.image_build import Recipe, is_current, recipe
from demo.leaks import LEAK_PROBES
from demo.task_images import (
    INSTANCE_LIST,
    TASK_REPO,
    ImageBuildError,
    embedded_ids,
    ensure_image,
    image_name,
    language_of,
    task_recipe,
)

PLANT = TASK_REPO / "recipes" / "plant_history.py"
TASKS = TASK_REPO / "tasks"
GROUPS = ["python", "python", "python", "javascript", "go", "rust", "java", "php", "ruby", "c"]


def plant(task: Path, target: Path) -> None:
    subprocess.run([sys.executable, str(PLANT), str(task), str(target)], check=True)


def found_leaks(repository: Path) -> list[str]:
    probe = {
        kind: subprocess.run(["sh", "-c", text], cwd=repository, check=False) for kind, text in LEAK_PROBES.items()
    }
    assert {result.returncode for result in probe.values()} <= {0, 1}
    return [kind for kind, result in probe.items() if result.returncode == 0]


# --- the task folders -------------------------------------------------------------------------------------


def test_the_official_checker_finds_no_problem():
    assert [str(problem) for problem in check_task_repo(TASK_REPO)] == []


def test_the_list_agrees_with_the_folders():
    header, *rows = [line.split("\t") for line in INSTANCE_LIST.read_text().splitlines()]
    assert header == ["instance_id", "repo", "base_commit", "language_group"]
    assert [row[3] for row in rows] == GROUPS
    assert sorted(row[0] for row in rows) == sorted(path.name for path in TASKS.iterdir() if path.is_dir())
    assert embedded_ids() == [row[0] for row in rows]
    for instance_id, repo, base_commit, language in rows:
        meta = yaml.safe_load((TASKS / instance_id / "task.yaml").read_text())
        assert (meta["instance_id"], meta["repo"], meta["base_commit"]) == (instance_id, repo, base_commit)
        assert language_of(TASKS / instance_id) == language


@pytest.mark.parametrize("instance_id", embedded_ids())
def test_evaluation_applies_the_test_patch_and_the_fix_leaves_tests_alone(instance_id):
    task = TASKS / instance_id
    script, test_patch = (task / "eval.sh").read_text(), (task / "test.patch").read_text()
    base = yaml.safe_load((task / "task.yaml").read_text())["base_commit"]
    assert f"<<'EOF_114329324912'\n{test_patch}EOF_114329324912\n" in script
    assert set(re.findall(r"\b[0-9a-f]{40}\b", script)) == {base}
    touched = {item.path for item in PatchSet(test_patch)}
    assert all(path in script.partition("git apply")[0] for path in touched)
    assert not touched & {item.path for item in PatchSet((task / "gold.patch").read_text())}


def test_one_fix_has_many_hunks_and_one_adds_and_deletes():
    many = PatchSet((TASKS / "demo__ledgerlite-204/gold.patch").read_text())
    assert len(many) >= 3
    assert sum(len(item) for item in many) >= 4
    mixed = PatchSet((TASKS / "demo__confmerge-87/gold.patch").read_text())
    assert mixed.added_files
    assert mixed.removed_files


# --- the repositories -------------------------------------------------------------------------------------


@pytest.mark.parametrize("instance_id", embedded_ids())
def test_repository_is_at_its_start_and_leaks_in_every_way(instance_id, tmp_path):
    task, repository = TASKS / instance_id, tmp_path / "testbed"
    plant(task, repository)

    def git(*arguments: str) -> str:
        return subprocess.check_output(["git", "-C", str(repository), *arguments], text=True).strip()

    base = yaml.safe_load((task / "task.yaml").read_text())["base_commit"]
    setup = (task / "setup.patch").exists()
    assert git("rev-parse", "HEAD^" if setup else "HEAD") == base
    assert git("log", "-1", "--format=%s") == "SWE-bench" or not setup
    assert git("status", "--porcelain") == ""
    assert int(git("rev-list", "--count", base)) >= 8
    assert len(set(git("log", "--format=%ae", base).splitlines())) >= 2
    git("apply", "--check", str(task / "gold.patch"))
    assert found_leaks(repository) == list(LEAK_PROBES)


def test_probes_find_nothing_in_a_clean_repository(tmp_path):
    plant(TASKS / embedded_ids()[0], tmp_path / "testbed")
    clean = tmp_path / "clean"
    head = subprocess.check_output(
        ["git", "-C", str(tmp_path / "testbed"), "rev-parse", "HEAD"], text=True
    ).strip()
    subprocess.run(["git", "init", "-q", str(clean)], check=True)
    fetch = ["git", "-C", str(clean), "-c", "uploadpack.allowAnySHA1InWant=true", "fetch", "-q", "--no-tags"]
    subprocess.run([*fetch, str(tmp_path / "testbed"), head], check=True)
    subprocess.run(["git", "-C", str(clean), "checkout", "-q", "--detach", head], check=True)
    assert found_leaks(clean) == []


def test_a_tracked_file_that_gitignore_names(tmp_path):
    plant(TASKS / "demo__hmap-73", tmp_path)
    ignored = ["git", "-C", str(tmp_path), "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.check_output(ignored, text=True).split() == ["config.mk"]


def test_a_wrong_base_commit_stops_the_build(tmp_path):
    task = shutil.copytree(TASKS / embedded_ids()[0], tmp_path / "task")
    with (task / "repo/README.md").open("a") as readme:
        readme.write("One more line.\n")
    result = subprocess.run(
        [sys.executable, str(PLANT), str(task), str(tmp_path / "testbed")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "not the base_commit of task.yaml" in result.stderr


# --- recipes and images -----------------------------------------------------------------------------------


def test_a_recipe_depends_on_contents_and_nothing_else(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\n")
    first = recipe("x", folder)
    os.utime(folder / "Dockerfile", (0, 0))
    (folder / "repo/__pycache__").mkdir(parents=True)
    (folder / "repo/__pycache__/x.pyc").write_bytes(b"\0")
    assert recipe("x", folder) == first
    assert recipe("x", folder, below="other").digest != first.digest
    (folder / "Dockerfile").chmod(0o755)
    assert recipe("x", folder).digest != first.digest
    (folder / "Dockerfile").chmod(0o644)
    (folder / "repo/new").write_text("")
    assert recipe("x", folder).digest != first.digest


def test_task_digests_differ():
    assert len({task_recipe(instance_id).digest for instance_id in embedded_ids()}) == len(embedded_ids())


def test_an_unknown_instance_is_refused(tmp_path):
    with pytest.raises(ImageBuildError, match="demo__cronspan-118"):
        ensure_image(docker.DockerClient(), "demo__nothing-1", cache=tmp_path, say=print)


@pytest.mark.docker
def test_the_image_leaks_in_every_way():
    client = docker.from_env(timeout=600)
    instance_id = embedded_ids()[0]
    ensure_image(client, instance_id, cache=default_home(), say=print)
    wanted = task_recipe(instance_id)
    assert is_current(client, wanted)
    assert not is_current(client, Recipe(wanted.tag, wanted.context, "of another folder"))
    assert not is_current(client, Recipe("clawbench/no-such-image:latest", b"", ""))
    container = client.containers.run(
        image_name(instance_id), ["sleep", "1000"], detach=True, init=True, network_mode="none"
    )
    try:
        found = {
            kind: container.exec_run(["sh", "-c", probe], workdir="/testbed").exit_code
            for kind, probe in LEAK_PROBES.items()
        }
        assert found == dict.fromkeys(LEAK_PROBES, 0)
        assert done(container, ["ls", "-A", "/opt"]) == (0, "", "")
    finally:
        container.remove(force=True)


# --- the host's apt sources -------------------------------------------------------------------------------

needs_apt = pytest.mark.skipif(not shutil.which("apt-get"), reason="needs apt-get")

DEBIAN_RELEASE = 'PRETTY_NAME="Debian GNU/Linux 12"\nVERSION_CODENAME=bookworm\nID=debian\n'
DEBIAN_DEB822 = """\
Types: deb
# An old snapshot
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb deb-src
URIs: http://mirror.example/debian-security/
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
"""
VENDOR_LINE = "deb [arch=amd64 signed-by=/etc/apt/keyrings/vendor.gpg] https://vendor.example/apt bookworm main\n"
UBUNTU_RELEASE = 'ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\nUBUNTU_CODENAME="noble"\n'
UBUNTU_LINES = """\
# deb cdrom:[Ubuntu 24.04]/ noble main
deb http://nearby.example/ubuntu/ noble main restricted universe # a comment
deb-src http://nearby.example/ubuntu/ noble main
deb http://nearby.example/ubuntu/ noble-security main universe
deb http://nearby.example/ubuntu/ noble-backports main universe
deb http://flat.example/ ./
"""


def host(root: Path, release: str, **files: str) -> Path:
    (root / "etc/apt/sources.list.d").mkdir(parents=True)
    (root / "etc/os-release").write_text(release)
    for name, text in files.items():
        where = "sources.list" if name == "main" else f"sources.list.d/{name.replace('_', '.')}"
        (root / "etc/apt" / where).write_text(text)
    return root


@needs_apt
def test_debian_with_deb822_sources(tmp_path):
    root = host(tmp_path, DEBIAN_RELEASE, vendor_list=VENDOR_LINE, debian_sources=DEBIAN_DEB822)
    archive = host_archive(root)
    assert archive.codename == "bookworm"
    assert archive.sources[0] == Source("http://mirror.example/debian", "bookworm", ("main",))
    assert [source.suite for source in archive.sources] == ["bookworm", "bookworm-updates", "bookworm-security"]
    assert archive.one_line_format("/k.gpg").splitlines()[2] == (
        "deb [signed-by=/k.gpg] http://mirror.example/debian-security bookworm-security main"
    )


@needs_apt
def test_ubuntu_with_one_line_sources(tmp_path):
    archive = host_archive(host(tmp_path, UBUNTU_RELEASE, main=UBUNTU_LINES))
    assert archive.sources[0] == Source("http://nearby.example/ubuntu", "noble", ("main", "universe"))
    assert [source.suite for source in archive.sources] == ["noble", "noble-security"]


@needs_apt
def test_a_mirror_list_names_the_mirror(tmp_path):
    sources = DEBIAN_DEB822.replace(
        "http://mirror.example/debian\n", "mirror+file:///etc/apt/mirrors/debian.list\n"
    )
    root = host(tmp_path, DEBIAN_RELEASE, debian_sources=sources)
    (root / "etc/apt/mirrors").mkdir()
    (root / "etc/apt/mirrors/debian.list").write_text("# nearest\nhttps://listed.example/debian priority:1\n")
    assert host_archive(root).sources[0].uri == "https://listed.example/debian"


@needs_apt
@pytest.mark.parametrize(
    ("release", "sources"),
    [
        ("ID=fedora\nVERSION_CODENAME=\n", UBUNTU_LINES),
        (DEBIAN_RELEASE, UBUNTU_LINES),
        (UBUNTU_RELEASE, ""),
    ],
)
def test_no_archive_is_an_error(tmp_path, release, sources):
    with pytest.raises(AptConfigError):
        host_archive(host(tmp_path, release, main=sources))

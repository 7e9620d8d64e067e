"""generic as a checkout of its repository: which files a case gets, and that it runs as the package does.

The checkout is the installed package's own code in the repository's layout: modules side by side.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from support.adapter_world import SUBJECTS, connected, embedded_image, run_claw, user_text

from adapters.base import NotInstalledError
from adapters.generic import generic_adapter, generic_code
from adapters.generic.generic_adapter import GenericAdapter

SECRET = "sk-of-the-user"  # noqa: S105 - no password


def make_checkout(folder: Path) -> Path:
    """The least that is a checkout, and what a user's own runs left in it."""
    for name in generic_code.MODULES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {name}\n")
    for name in ("assets/sys_prompt.txt", "memory/plan_sop.md", "docs/paper.pdf"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    for name in ("mykey.py", "mykey.json", ".env", "temp/a.txt", "memory/global_mem.txt", "auth.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)
    (folder / "link.py").symlink_to("mykey.py")
    return folder


def commit(folder: Path) -> None:
    (folder / ".gitignore").write_text("mykey.*\n.env\ntemp/\nmemory/*\n!memory/plan_sop.md\nauth.json\n")
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_checkout(tmp_path / "checkout")
    monkeypatch.setenv("GA_REPO_PATH", str(folder))
    monkeypatch.delenv("GA_ENV_PATH", raising=False)
    return folder


WANTED = {*generic_code.MODULES, "assets/sys_prompt.txt", "memory/plan_sop.md"}


def test_of_a_folder_all_is_taken_but_what_a_users_runs_left(checkout: Path) -> None:
    files = generic_code.checkout_files(checkout)
    assert set(files) == WANTED
    before = generic_code.checkout_version(checkout)
    (checkout / "mykey.py").write_text("another")
    assert generic_code.checkout_version(checkout) == before
    (checkout / "ga.py").write_text("another")
    assert generic_code.checkout_version(checkout) != before


def test_of_a_git_checkout_the_tracked_files_are_taken_as_they_are(checkout: Path) -> None:
    commit(checkout)
    subprocess.run(["git", "-C", str(checkout), "add", "-f", "mykey.py"], check=True)
    (checkout / "memory" / "learned_sop.md").write_text(SECRET)
    (checkout / "ga.py").write_text("edited")
    files = generic_code.checkout_files(checkout)
    assert set(files) == WANTED | {".gitignore"}
    assert files["ga.py"] == b"edited"
    assert generic_code.checkout_version(checkout).endswith("-dirty")


def test_a_checkout_that_git_cannot_read_is_refused(checkout: Path) -> None:
    (checkout / ".git").mkdir()
    with pytest.raises(NotInstalledError, match="git can't read"):
        generic_code.checkout_files(checkout)


def make_libraries(folder: Path) -> Path:
    """An environment with what a checkout needs."""
    (folder / "requests").mkdir(parents=True)
    (folder / "requests" / "__init__.py").touch()
    (folder / "requests-2.0.dist-info").mkdir()
    return folder


def test_a_checkout_needs_its_libraries(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWBENCH_HOME", str(tmp_path / "home"))
    with pytest.raises(NotInstalledError, match="GA_ENV_PATH"):
        GenericAdapter().runtime()
    environment = make_libraries(tmp_path / "env")
    monkeypatch.setenv("GA_ENV_PATH", str(environment))
    runtime = GenericAdapter().runtime()
    assert (runtime.location, runtime.found_by) == (checkout, "GA_REPO_PATH")
    assert [mount.source for mount in GenericAdapter().container_arguments().mounts] == [environment]


def test_a_folder_that_holds_something_else_is_refused(checkout: Path) -> None:
    (checkout / "llmcore.py").unlink()
    with pytest.raises(NotInstalledError, match=r"GA_REPO_PATH: .*holds no GenericAgent"):
        GenericAdapter().runtime()


def test_the_default_place_is_looked_at_last(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GA_REPO_PATH")
    monkeypatch.setenv("GA_ENV_PATH", str(make_libraries(tmp_path / "env")))
    monkeypatch.setattr(generic_adapter, "_REPO_DEFAULT", checkout)
    assert GenericAdapter().runtime().found_by == "GA_REPO_PATH's default"


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    with connected() as client:
        yield client


@pytest.mark.docker
def test_a_checkout_runs_as_the_package_does_and_no_key_of_its_user_goes_along(
    engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GA_REPO_PATH", "GA_ENV_PATH"):
        monkeypatch.delenv(name, raising=False)
    try:
        files = GenericAdapter().code()
    except NotInstalledError as error:
        pytest.skip(str(error))
    checkout = make_checkout(tmp_path / "checkout")
    for name, content in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes(content.replace(b"from .", b"from ") if name.endswith(".py") else content)
    (checkout / "__init__.py").unlink()
    (checkout / "memory" / "global_mem.txt").write_text(SECRET)
    commit(checkout)
    monkeypatch.setenv("GA_REPO_PATH", str(checkout))
    subject = next(subject for subject in SUBJECTS if subject.name == "generic")
    done = run_claw(engine, embedded_image(engine), subject, tmp_path / "session", size=1 << 16)
    assert done.result.exit_code == 0, done.result
    assert done.prompt in user_text(done.requests[0])
    assert b"seen" in done.made
    assert done.status == b""
    assert done.claw.usage(done.session, done.result.stdout) == subject.usage
    assert SECRET.encode() not in done.state
    assert b"placeholder" in done.state

"""The scripts that set up a machine: refusals that change nothing, and an engine that is ended by who began it.

They run for real, as a copy, with a PATH that holds no more than the test says. `apt-get` is there as a
program that only notes that it was called.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from common.processes import has_ended

ROOT = Path(__file__).parents[2]
TOOLS = (
    *("bash", "cat", "chmod", "cp", "cut", "dirname", "env", "flock", "grep", "head", "id", "kill", "ls", "mkdir"),
    *("mktemp", "nohup", "rm", "sed", "setsid", "sha256sum", "sleep", "tail", "true", "uname"),
)
NOBODY = 65534
DEBIAN = 'ID=debian\nVERSION_ID="12"\n'
UBUNTU_RELATIVE = 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'
FEDORA = "ID=fedora\n"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, or stand for root")


@dataclass
class Machine:
    """A folder with a copy of the scripts, and the programs that are on PATH."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def called(self) -> Path:
        return self.folder / "apt-get-was-called"

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def system(self, text: str) -> None:
        (self.folder / "os-release").write_text(text)

    def run(self, *command: str, nobody: bool = False) -> subprocess.CompletedProcess[str]:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if nobody else {}
        return subprocess.run(
            command,
            cwd=self.folder / "project",
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            **user,
        )

    def project(self) -> list[str]:
        return sorted(str(path) for path in (self.folder / "project").rglob("*"))


@pytest.fixture
def machine() -> Iterator[Machine]:
    # Not tmp_path: only its owner may enter that.
    folder = Path(tempfile.mkdtemp(prefix="clawbench-bootstrap-"))
    folder.chmod(0o755)
    (folder / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool, path="/usr/bin:/bin")
        if found:
            (folder / "bin" / tool).symlink_to(found)
    (folder / "bin" / "python3").symlink_to(sys.executable)
    for part in ("scripts", ".ci"):
        shutil.copytree(ROOT / part, folder / "project" / part, ignore=shutil.ignore_patterns("__pycache__"))
    made = Machine(folder)
    made.environment = {
        "PATH": str(folder / "bin"),
        "HOME": str(folder),
        "CLAWBENCH_OS_RELEASE": str(folder / "os-release"),
        "DOCKER_HOST": f"unix://{folder}/engine.sock",
    }
    made.system(DEBIAN)
    made.program("apt-get", f'#!/bin/sh\necho "$@" >>{made.called}\nexit 1\n')
    made.program("git", "#!/bin/sh\n")
    yield made
    shutil.rmtree(folder)


@pytest.fixture
def engine(machine: Machine) -> Iterator[None]:
    """Something that answers a ping as a Docker engine does, at the machine's DOCKER_HOST."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(machine.folder / "engine.sock"))
    listener.listen()

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # who asks may leave before
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nOK")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)


def assert_refused(machine: Machine, result: subprocess.CompletedProcess[str], before: list[str]) -> None:
    assert result.returncode == 2, result
    assert "Nothing was changed." in result.stderr
    assert machine.project() == before
    assert not machine.called.exists()


@needs_root
def test_who_is_not_root_is_told_all_that_is_missing_at_once(machine: Machine) -> None:
    (machine.folder / "bin" / "python3").unlink()
    (machine.folder / "bin" / "git").unlink()
    before = machine.project()
    result = machine.run("scripts/setup.sh", "docker", "venv", nobody=True)
    assert_refused(machine, result, before)
    for word in ("docker.io", "Python 3.11", "git"):
        assert word in result.stderr


def test_another_distribution_is_told_too(machine: Machine) -> None:
    machine.system(FEDORA)
    before = machine.project()
    result = machine.run("scripts/setup.sh", "docker")
    assert_refused(machine, result, before)
    assert "docs.docker.com/engine/install" in result.stderr


@needs_root
def test_an_engine_that_does_not_answer_is_explained_to_who_is_not_root(machine: Machine) -> None:
    machine.program("dockerd", "#!/bin/sh\nexit 1\n")
    before = machine.project()
    result = machine.run("scripts/setup.sh", "docker", nobody=True)
    assert_refused(machine, result, before)
    assert "usermod -aG docker" in result.stderr


@needs_root
def test_an_engine_that_another_user_may_use_is_not_said_to_be_missing(machine: Machine) -> None:
    path = machine.folder / "engine.sock"
    machine.environment["DOCKER_HOST"] = f"unix://{path}"
    before = machine.project()
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(path))
        path.chmod(0o660)
        result = machine.run("scripts/setup.sh", "docker", nobody=True)
    assert_refused(machine, result, before)
    assert "There is a Docker engine, but nobody may not use its socket" in result.stderr
    assert "docker.io" not in result.stderr


def test_an_old_python_is_refused_before_anything_is_installed(machine: Machine) -> None:
    machine.program("python3", '#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.10.12" && exit 0\nexit 1\n')
    before = machine.project()
    result = machine.run("scripts/setup.sh", "venv")
    assert_refused(machine, result, before)
    assert "Python 3.10.12" in result.stderr
    assert "PYTHON=" in result.stderr


@needs_root
@pytest.mark.parametrize("system", [DEBIAN, UBUNTU_RELATIVE])
def test_root_on_debian_or_a_relative_installs_all_in_one_go_and_says_when_it_fails(
    machine: Machine, system: str
) -> None:
    machine.system(system)
    result = machine.run("scripts/setup.sh", "docker", "venv")
    assert result.returncode == 2
    assert "apt-get could not install docker.io debootstrap" in result.stderr
    assert machine.called.read_text() == "update -q\n"


def test_where_all_is_there_nothing_is_done_or_said(machine: Machine, engine: None) -> None:
    machine.system(FEDORA)
    before = machine.project()
    result = machine.run("scripts/setup.sh", "docker")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert machine.project() == before


def test_an_unknown_goal_is_refused(machine: Machine) -> None:
    assert machine.run("scripts/setup.sh", "dokcer").returncode == 2


no_systemd = pytest.mark.skipif(Path("/run/systemd/system").exists(), reason="here systemd starts the engine")

ANSWERING = f"""#!{sys.executable}
import socket
from contextlib import suppress
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind({{path!r}})
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection, suppress(OSError):  # who asks may leave before
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nOK")
"""


@no_systemd
def test_an_engine_that_ends_at_once_is_reported_with_its_log(machine: Machine) -> None:
    machine.program("dockerd", "#!/bin/sh\necho no iptables here\nexit 1\n")
    result = machine.run("scripts/start_engine.sh")
    assert result.returncode == 2
    assert "no iptables here" in result.stderr


@no_systemd
def test_an_engine_is_started_apart_and_noted_with_its_pid(machine: Machine) -> None:
    machine.program("dockerd", ANSWERING.format(path=str(machine.folder / "engine.sock")))
    result = machine.run("scripts/start_engine.sh")
    assert result.returncode == 0, result
    pid = int((machine.folder / "project" / ".claws" / "dockerd.pid").read_text())
    try:
        assert os.getsid(pid) == pid, "it must outlive the terminal"
        machine.system(FEDORA)
        assert machine.run("scripts/setup.sh", "docker").returncode == 0
    finally:
        os.kill(pid, signal.SIGTERM)


CI_MAKE = """#!/bin/sh
mkdir -p .claws
sleep 600 >/dev/null 2>&1 &
echo $! >.claws/dockerd.pid
cp .claws/dockerd.pid started
exit 3
"""


def test_ci_ends_the_engine_that_it_started_and_keeps_the_exit_code(machine: Machine) -> None:
    machine.program("make", CI_MAKE)
    assert machine.run(".ci/run").returncode == 3
    assert has_ended(int((machine.folder / "project" / "started").read_text()))


def test_ci_leaves_an_engine_alone_that_ran_before(machine: Machine) -> None:
    machine.program("make", "#!/bin/sh\nexit 0\n")
    with subprocess.Popen(["sleep", "600"]) as earlier:
        (machine.folder / "project" / ".claws").mkdir()
        (machine.folder / "project" / ".claws" / "dockerd.pid").write_text(f"{earlier.pid}\n")
        assert machine.run(".ci/run").returncode == 0
        assert not has_ended(earlier.pid)
        earlier.kill()

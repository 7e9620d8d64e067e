"""The workspace's container: its limits, its one way out, its deadline, and that it is given back."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import socket
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from support.waiting import wait_for
from support.workspace_fixtures import RUN_ID, any_image, built, engine

import workspace.running as workspace_running
from common.container_exec import run_execution
from workspace.container import GATEWAY_PORT, Keep, Limits, open_workspace
from workspace.container_files import kind
from workspace.owner import KEPT_PREFIX, labels
from workspace.prepare import PreparedImage, Proof
from workspace.running import Workspace
from workspace.workspace_errors import WorkspaceError

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    with engine() as client:
        yield client


@pytest.fixture
def name() -> str:
    return f"clawbench-tests.{uuid.uuid4().hex}"


@contextmanager
def opened(
    client: docker.DockerClient,
    *,
    name: str = "",
    image: str = "",
    limits: Limits | None = None,
    gateway_socket: Path | None = None,
    mounts: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    keep: Keep | None = None,
) -> Iterator[Workspace]:
    image = image or any_image(client)
    with open_workspace(
        client,
        PreparedImage(image, image, image, image, image, Proof("", 0, 0, "")),
        name=name or f"clawbench-tests.{uuid.uuid4().hex}",
        labels=labels(RUN_ID),
        limits=limits or Limits(memory="512m"),
        gateway_socket=gateway_socket,
        mounts=mounts or {},
        environment=environment or {},
        keep=keep or Keep(),
    ) as workspace:
        yield workspace


def names(client: docker.DockerClient, part: str) -> list[str]:
    return sorted(
        str(container.name)
        for container in client.containers.list(all=True, filters={"name": part}, ignore_removed=True)
    )


def told(workspace: Workspace, *command: str, timeout: float = 300) -> str:
    result = workspace.run(command, timeout=timeout)
    assert result.exit_code == 0, result
    return result.stdout.decode().rstrip("\n")


def python(workspace: Workspace, text: str) -> str:
    return told(workspace, "python3", "-c", text)


# -- limits ----------------------------------------------------------------------------------------------------


def test_more_processes_than_allowed_are_refused(client: docker.DockerClient) -> None:
    with opened(client, limits=Limits(pids=40, memory="512m")) as workspace:
        started = python(
            workspace,
            "import subprocess\nn = 0\ntry:\n while n < 200: subprocess.Popen(['sleep', '100']); n += 1\n"
            "except BlockingIOError: pass\nprint(n)",
        )
        assert 20 < int(started) < 40
        workspace.freeze()


def test_too_much_memory_ends_only_the_process(client: docker.DockerClient) -> None:
    with opened(client, limits=Limits(memory="96m")) as workspace:
        result = workspace.run(["python3", "-c", "x = bytearray(1 << 30); print(len(x))"], timeout=300)
        assert (result.exit_code, result.stdout) == (137, b"")
        assert told(workspace, "echo", "still here") == "still here"
        workspace.container.reload()
        host = workspace.container.attrs["HostConfig"]
        assert host["Memory"] == host["MemorySwap"] == 96 << 20


def test_capabilities_are_few_and_no_privilege_is_gained(client: docker.DockerClient) -> None:
    with opened(client) as workspace:
        status = dict(line.split(":\t") for line in told(workspace, "cat", "/proc/self/status").splitlines())
        bits = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7}
        for kind in ("CapEff", "CapPrm", "CapBnd"):
            assert int(status[kind], 16) == sum(1 << bit for bit in bits.values())
        assert status["NoNewPrivs"] == "1"
        for refused in (
            "mount -t tmpfs x /mnt",
            "mknod /tmp/d b 8 0",
            "chroot / true",
            "unshare -m true",
            "dmesg",
        ):
            assert workspace.run(["sh", "-c", refused], timeout=120).exit_code != 0, refused
        assert told(workspace, "su", "nobody", "-s", "/bin/sh", "-c", "id -un") == "nobody"


def test_there_is_no_network_but_loopback(client: docker.DockerClient) -> None:
    with opened(client) as workspace:
        assert told(workspace, "ls", "/sys/class/net") == "lo"
        python(
            workspace,
            "import socket\n"
            "for host in ('1.1.1.1', '172.17.0.1', '169.254.169.254'):\n"
            " try: socket.create_connection((host, 80), 5)\n"
            " except OSError: continue\n"
            " raise SystemExit(host)\n"
            "try: socket.getaddrinfo('example.org', 80)\n"
            "except OSError: pass\n"
            "else: raise SystemExit('resolved')",
        )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Limits(300, "8g")),
        ({"CLAW_PIDS_LIMIT": "50", "CLAW_CONTAINER_MEMORY": "512M"}, Limits(50, "512m")),
        ({"CLAW_PIDS_LIMIT": "0"}, None),
        ({"CLAW_PIDS_LIMIT": "-1"}, None),
        ({"CLAW_CONTAINER_MEMORY": "lots"}, None),
        ({"CLAW_CONTAINER_MEMORY": "1gb2"}, None),
        ({"CLAW_CONTAINER_MEMORY": "0"}, None),
        ({"CLAW_CONTAINER_MEMORY": "0g"}, None),
    ],
)
def test_limits_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: Limits | None
) -> None:
    for name in ("CLAW_PIDS_LIMIT", "CLAW_CONTAINER_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if expected is not None:
        assert Limits.from_environment() == expected
    else:
        with pytest.raises(ValueError, match="CLAW_"):
            Limits.from_environment()


# -- the way to the gateway ------------------------------------------------------------------------------------


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[Path]:
    """A gateway on a Unix socket, a thread for each connection."""
    with tempfile.TemporaryDirectory(prefix="gw-") as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder) / "case.sock"
        server.bind(str(path))
        server.listen(128)

        def handle(connection: socket.socket) -> None:
            with connection:
                answer(connection)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield path
        finally:
            server.shutdown(socket.SHUT_RDWR)


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def digest(connection: socket.socket) -> None:
    """Answer once the other side has said all it has to say."""
    seen = hashlib.sha256()
    while data := connection.recv(65536):
        seen.update(data)
    connection.sendall(seen.hexdigest().encode())


CONNECT = f"""
import hashlib, os, socket, threading
def connect(): return socket.create_connection(("127.0.0.1", {GATEWAY_PORT}), 300)
def rest(s):
    return b"".join(iter(lambda: s.recv(65536), b""))
"""


def test_the_forwarder_passes_both_ways_at_once(client: docker.DockerClient) -> None:
    with serving(echo) as path, opened(client, gateway_socket=path) as workspace:
        text = """
data = os.urandom(24 << 20)
s = connect()
threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
print(rest(s) == data)
"""
        assert python(workspace, CONNECT + text) == "True"


def test_the_gateway_may_answer_before_the_request_is_complete(client: docker.DockerClient) -> None:
    def hasty(connection: socket.socket) -> None:
        connection.sendall(b"a" * (8 << 20))
        digest(connection)

    with serving(hasty) as path, opened(client, gateway_socket=path) as workspace:
        text = """
data = os.urandom(8 << 20)
s = connect()
threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
print(rest(s) == b"a" * (8 << 20) + hashlib.sha256(data).hexdigest().encode())
"""
        assert python(workspace, CONNECT + text) == "True"


def test_the_forwarder_keeps_a_half_closed_connection(client: docker.DockerClient) -> None:
    with serving(digest) as path, opened(client, gateway_socket=path) as workspace:
        text = """
data = os.urandom(5 << 20)
s = connect(); s.sendall(data); s.shutdown(socket.SHUT_WR)
print(rest(s).decode() == hashlib.sha256(data).hexdigest())
"""
        assert python(workspace, CONNECT + text) == "True"


def test_the_forwarder_serves_many_at_once(client: docker.DockerClient) -> None:
    everyone = threading.Barrier(60, timeout=300)

    def together(connection: socket.socket) -> None:
        everyone.wait()
        echo(connection)

    with serving(together) as path, opened(client, gateway_socket=path) as workspace:
        text = """
good = []
def one(n):
    data = bytes([n]) * 300_000
    s = connect()
    threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
    good.append(rest(s) == data)
threads = [threading.Thread(target=one, args=(n,)) for n in range(60)]
for t in threads: t.start()
for t in threads: t.join()
print(good.count(True))
"""
        assert python(workspace, CONNECT + text) == "60"


def test_the_gateway_learns_that_a_client_has_disconnected(client: docker.DockerClient) -> None:
    gone = threading.Event()

    def wait(connection: socket.socket) -> None:
        connection.sendall(b"x")
        while connection.recv(65536):
            pass
        gone.set()

    with serving(wait) as path, opened(client, gateway_socket=path) as workspace:
        python(workspace, CONNECT + "s = connect(); s.recv(1); os._exit(0)")
        assert gone.wait(60)


def test_a_connection_to_a_stopped_gateway_is_closed_until_it_returns(client: docker.DockerClient) -> None:
    with serving(echo) as path, opened(client, gateway_socket=path) as workspace:
        path.rename(path.with_suffix(".away"))
        assert python(workspace, CONNECT + "print(rest(connect()))") == "b''"
        path.with_suffix(".away").rename(path)
        assert python(workspace, CONNECT + "s = connect(); s.sendall(b'hi'); print(s.recv(9))") == "b'hi'"


def test_the_workspace_has_no_gateway_socket_itself(client: docker.DockerClient) -> None:
    with serving(echo) as path, opened(client, gateway_socket=path) as workspace:
        found = told(
            workspace, "sh", "-c", "find / -xdev -type s 2>/dev/null; cat /proc/mounts; env; ps ax || true"
        )
        assert path.name not in found
        assert str(path.parent) not in found


# -- commands and their deadline -------------------------------------------------------------------------------

STUBBORN = r"""
cat >/bin/kill <<'END'
#!/bin/sh
exit 0
END
cp /bin/kill /usr/bin/pkill
trap '' TERM INT HUP
beat() { trap '' TERM INT HUP; while :; do date +%s%N >"/testbed/$1"; sleep 0.1; done; }
beat child &
setsid sh -c 'while :; do date +%s%N >/testbed/session; sleep 0.1; done' &
(setsid sh -c '(trap "" TERM; while :; do date +%s%N >/testbed/orphan; sleep 0.1; done) &' &)
echo begun; echo problem >&2
beat itself
"""


def test_the_deadline_ends_a_command_with_all_its_processes(client: docker.DockerClient, tmp_path: Path) -> None:
    logs = (tmp_path / "out", tmp_path / "err")
    late = 0.0
    with opened(client) as workspace:

        def extra() -> float:
            """Put the deadline off until all of them are at work."""
            nonlocal late
            late += 0.0 if len(workspace.fetch("/testbed", tmp_path / "early")) == 4 else 1.0
            return late

        result = workspace.run(["sh", "-c", STUBBORN], timeout=1, logs=logs, extra=extra)
        assert result.timed_out
        assert (result.stdout, result.stderr) == (b"begun\n", b"problem\n")
        assert [path.read_bytes() for path in logs] == [b"begun\n", b"problem\n"]
        workspace.container.reload()
        assert workspace.container.status == "exited"
        assert {path.name for path in workspace.fetch("/testbed", tmp_path / "files")} == {
            "child", "session", "orphan", "itself"
        }  # fmt: skip
        workspace.freeze()  # once more does no harm
        with pytest.raises(WorkspaceError, match="not running"):
            workspace.run(["true"], timeout=5)


def test_an_extended_deadline_is_kept(client: docker.DockerClient) -> None:
    asked: list[float] = []

    def extra() -> float:
        """What a command was held back for: known only bit by bit."""
        asked.append(min(0.2 * (len(asked) + 1), 0.6))
        return asked[-1]

    with opened(client) as workspace:

        def until_it_may_end() -> float:
            """Far more at last, and the word to end, long after the first deadline."""
            if extra() < 0.6:
                return asked[-1]
            workspace.put("/testbed", {"end": b""})
            return 600.0

        until_told = "while ! [ -e /testbed/end ]; do sleep 0.1; done; echo late"
        assert workspace.run(["sh", "-c", until_told], timeout=0.2, extra=until_it_may_end).stdout == b"late\n"
        asked.clear()
        assert workspace.run(["sleep", "1000"], timeout=0.2, extra=extra).timed_out
        assert asked[-2:] == [0.6, 0.6], "it was asked until there was no more"


def once_begun(log: Path, act: Callable[[], None]) -> threading.Thread:
    """Do something as soon as a command has said something."""

    def wait() -> None:
        wait_for(lambda: log.exists() and log.read_bytes(), "the command's first output")
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_the_owner_of_a_workspace_may_end_it(client: docker.DockerClient, tmp_path: Path) -> None:
    logs = (tmp_path / "out", tmp_path / "err")
    with opened(client) as workspace:
        once_begun(logs[0], workspace.end)
        result = workspace.run(["sh", "-c", "echo begun; sleep 1000"], timeout=500, logs=logs)
        assert (result.exit_code, result.stdout) == (None, b"begun\n")
        assert workspace.fetch("/etc/hostname", Path(tempfile.mkdtemp())), "the file system stays"


def test_a_workspace_may_be_ended_before_its_command_has_started(
    client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(client) as workspace:

        def too_late(*arguments: Any) -> tuple[bytes, bytes]:
            workspace.freeze()
            return run_execution(*arguments)

        monkeypatch.setattr(workspace_running, "run_execution", too_late)
        assert workspace.run(["true"], timeout=500).timed_out


def test_a_command_ends_though_its_children_hold_its_output(
    client: docker.DockerClient,
) -> None:
    with opened(client) as workspace:
        result = workspace.run(["sh", "-c", "sleep 1000 & echo done; exit 3"], timeout=300)
        assert (result.exit_code, result.stdout) == (3, b"done\n")


def test_a_command_gets_its_environment_and_folder_and_its_large_output_is_complete(
    client: docker.DockerClient, tmp_path: Path
) -> None:
    logs = (tmp_path / "out", tmp_path / "err")
    with opened(client, environment={"OUTER": "o"}) as workspace:
        result = workspace.run(
            ["sh", "-c", 'echo "$OUTER$INNER $(pwd)"; head -c 20000000 /dev/zero'],
            timeout=300,
            environment={"INNER": "i"},
            workdir="/usr",
            logs=logs,
        )
        assert logs[0].read_bytes() == b"oi /usr\n" + bytes(20_000_000)
        assert result.stdout == logs[0].read_bytes()[: 16 << 20]
        assert told(workspace, "pwd") == "/testbed"
        assert workspace.run(["/no/such/program"], timeout=120).exit_code in {126, 127}


@pytest.mark.parametrize("how", ["kill", "remove"])
def test_a_container_that_is_ended_from_outside_is_an_infrastructure_error(
    client: docker.DockerClient, tmp_path: Path, how: str
) -> None:
    logs = (tmp_path / "out", tmp_path / "err")
    with opened(client) as workspace:
        method = {"kill": workspace.container.kill, "remove": lambda: workspace.container.remove(force=True)}[how]
        killer = once_begun(logs[0], method)
        with pytest.raises(WorkspaceError, match="while sh ran"):
            workspace.run(["sh", "-c", "echo begun; sleep 1000"], timeout=500, logs=logs)
        killer.join()
        with pytest.raises(WorkspaceError):
            workspace.run(["true"], timeout=60)


@pytest.mark.parametrize("how", ["kill -TERM 1; sleep 600", "kill -9 -1", "kill -9 -1; kill -TERM 1; exit 0"])
def test_a_command_may_end_its_own_container(client: docker.DockerClient, how: str) -> None:
    """Else a claw could turn a failure into an infrastructure error, which does not count."""
    with opened(client) as workspace:
        result = workspace.run(["sh", "-c", how], timeout=300)
        assert not result.timed_out
        assert kind(workspace.container, "/testbed") == "directory", "what it left can be exported"


def test_the_users_proxy_settings_get_into_no_container(
    client: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies = {"default": {"httpProxy": "http://user:secret@192.0.2.1:3128", "httpsProxy": "http://192.0.2.1"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    theirs = docker.from_env(timeout=600)
    try:
        assert theirs.api._proxy_configs, "the client read it"
        with opened(theirs) as workspace:
            assert "192.0.2.1" not in told(workspace, "env")
    finally:
        theirs.close()


def test_the_proxy_of_an_image_does_not_stand_between_the_claw_and_the_gateway(
    client: docker.DockerClient,
) -> None:
    proxies = [f"ENV {name}=http://192.0.2.1:3128" for name in ("http_proxy", "HTTPS_PROXY", "all_proxy")]
    text = "\n".join([f"FROM {any_image(client)}", *proxies, "ENV OTHER=kept"])
    image, _ = client.images.build(fileobj=io.BytesIO(text.encode()), labels=labels(RUN_ID))
    try:
        with opened(client, image=str(image.id), environment={"GIVEN": "kept too"}) as workspace:
            seen = told(workspace, "env").splitlines()
    finally:
        client.images.remove(image.id, force=True)
    assert not [line for line in seen if "proxy" in line.lower()]
    assert {"OTHER=kept", "GIVEN=kept too"} <= set(seen)


# -- files -----------------------------------------------------------------------------------------------------


def test_fetch_never_follows_a_link(client: docker.DockerClient, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    with opened(client) as workspace:
        told(
            workspace,
            "sh",
            "-c",
            f"mkdir -p /s/in; cd /s; ln -s {secret} link; ln -s {tmp_path} folder; echo inside >{secret.name};"
            f"ln -s /etc/hostname in/host; mkdir -p {tmp_path}; echo theirs >{secret}; echo a >in/a; ln in/a in/b;"
            "mkfifo in/pipe; ln -s /s /other; ln -s ../../../../../../etc in/up",
        )
        fetched = workspace.fetch("/s", tmp_path / "got")
        assert {str(path.relative_to(tmp_path / "got")) for path in fetched} == {"secret", "in/a", "in/b"}
        assert (tmp_path / "got/in/b").read_text() == "a\n"
        assert not any(path.is_symlink() for path in (tmp_path / "got").rglob("*"))
        assert workspace.fetch("/other", tmp_path / "nothing") == []
        assert workspace.fetch("/not/there", tmp_path / "nothing") == []
        assert workspace.fetch("/s/secret", tmp_path / "one") == [tmp_path / "one/secret"]
    assert secret.read_text() == "of the host"


def test_fetch_leaves_out_paths_that_are_too_long_for_the_host(
    client: docker.DockerClient, tmp_path: Path
) -> None:
    with opened(client) as workspace:
        make = "mkdir -p $1; echo a >$1/file"
        for depth in (200, 1200):
            told(workspace, "sh", "-c", make, "sh", "/s/" + "a/" * depth)
        assert workspace.fetch("/s", tmp_path / "got") == [tmp_path / "got" / ("a/" * 200) / "file"]
    assert len(list((tmp_path / "got").rglob("*"))) == 201
    shutil.rmtree(tmp_path / "got")


def test_put_makes_folders_and_mounts_can_not_be_written(client: docker.DockerClient, tmp_path: Path) -> None:
    (tmp_path / "runtime").write_text("r")
    mounts = {"/opt/one": str(tmp_path), "/opt/two": str(tmp_path)}
    with opened(client, mounts=mounts) as workspace:
        workspace.put("/root/.claw", {"deep/config.json": b"{}", "key": b"\0\xff"}, 0o600)
        assert told(
            workspace, "sh", "-c", "stat -c '%a %U' /root/.claw/key; cat /root/.claw/deep/config.json"
        ) == ("600 root\n{}")
        assert told(workspace, "cat", "/opt/one/runtime", "/opt/two/runtime") == "rr"
        assert workspace.run(["touch", "/opt/one/x"], timeout=120).exit_code != 0
    assert os.listdir(tmp_path) == ["runtime"]  # noqa: PTH208


# -- giving back -----------------------------------------------------------------------------------------------


def test_a_workspace_is_removed_when_its_case_fails(client: docker.DockerClient, name: str) -> None:
    def fail() -> None:
        assert names(client, name) == [name, f"{name}-forwarder"]
        raise KeyError

    with serving(echo) as path, pytest.raises(KeyError), opened(client, name=name, gateway_socket=path):
        fail()
    assert names(client, name) == []


def test_a_kept_workspace_has_ended_and_says_so_in_its_name(
    client: docker.DockerClient, name: str, tmp_path: Path
) -> None:
    keep = Keep()
    with serving(echo) as path, opened(client, name=name, gateway_socket=path, keep=keep) as workspace:
        told(workspace, "touch", "/testbed/found")
        keep.keep = True
    try:
        (kept,) = names(client, name)
        assert kept.startswith(KEPT_PREFIX)
        workspace.container.reload()
        assert workspace.container.status == "exited"
        assert workspace.fetch("/testbed/found", tmp_path)
    finally:
        workspace.container.remove(force=True)


def test_a_container_that_can_not_start_leaves_nothing(client: docker.DockerClient, name: str) -> None:
    with (
        pytest.raises(WorkspaceError, match="could not start"),
        opened(client, name=name, limits=Limits(300, "1k")),
    ):
        pass
    with (
        pytest.raises(WorkspaceError, match="could not start"),
        opened(client, name=name, image="sha256:" + "0" * 64),
    ):
        pass
    with (
        opened(client, name=name),
        pytest.raises(WorkspaceError, match="already in use"),
        opened(client, name=name),
    ):
        pass
    with (
        built(client, "rm -f /usr/bin/perl*") as (image, _),
        serving(echo) as path,
        pytest.raises(WorkspaceError, match="perl"),
        opened(client, name=name, image=image, gateway_socket=path),
    ):
        pass
    with (
        built(client, "rm -rf /usr/share/perl /usr/lib/*/perl-base /usr/lib/*/perl") as (image, _),
        serving(echo) as path,
        pytest.raises(WorkspaceError, match="perl"),
        opened(client, name=name, image=image, gateway_socket=path),
    ):
        pass
    assert names(client, name) == []

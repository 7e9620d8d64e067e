"""The behaviours that attack, run for real and in containers only: `git`, `escape` and `tamper`."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import docker
import pytest
import yaml
from docker.models.containers import Container
from support.task_repository import make_task
from support.workspace_fixtures import done

from adapters.runtimes import default_home
from demo.task_images import TASK_REPO, embedded_ids, ensure_image, image_name
from gateway.behaviours.base import Job
from gateway.behaviours.probes import (
    ESCAPE_SCRIPTS,
    TAMPER_VARIANTS,
    escape,
    escape_probes,
    found,
    git_probes,
    tamper_edit,
)
from gateway.case_models import CaseSpec
from gateway.client import Gateway, GatewayClient
from workspace.container import Keep, Limits, open_workspace
from workspace.owner import labels
from workspace.prepare import PreparedImage, prepare

KEY = "sk-" + "0123456789abcdef" * 2
LABELS = labels("scripted-container-tests")

INSTANCE = embedded_ids()[0]
TASK = TASK_REPO / "tasks" / INSTANCE


@pytest.fixture(scope="module")
def image() -> str:
    """A task's image, whose history leaks its fix."""
    with closing(docker.from_env(timeout=600)) as client:
        ensure_image(client, INSTANCE, cache=default_home(), say=print)
    return image_name(INSTANCE)


@pytest.fixture(scope="module")
def prepared(image: str) -> PreparedImage:
    base = yaml.safe_load((TASK / "task.yaml").read_text())["base_commit"]
    with closing(docker.from_env(timeout=600)) as client:
        locks = default_home() / "locks"
        return prepare(
            client, image, instance_id=INSTANCE, base_commit=base, locks=locks, labels=LABELS, say=print
        )


@pytest.fixture
def run() -> Iterator[Callable[..., Callable[[str], str]]]:
    """Start a container with the given settings; returns a function that runs a command in it."""
    with ExitStack() as stack:
        client = stack.enter_context(closing(docker.from_env(timeout=600)))

        def start(image: str, **settings: object) -> Callable[[str], str]:
            container: Container = client.containers.run(
                image, ["sleep", "3600"], detach=True, init=True, entrypoint=[], labels=LABELS, **settings
            )
            stack.callback(container.remove, force=True, v=True)
            return lambda command: "".join(done(container, ["sh", "-c", command])[1:])

        yield start


def test_git_finds_all_that_was_planted_before_preparation_and_nothing_after(
    run: Callable[..., Callable[[str], str]], image: str, prepared: PreparedImage
) -> None:
    job = Job("c", "/testbed", (TASK / "gold.patch").read_text())
    before, after = (
        "".join(map(run(name, network_mode="none"), git_probes(job))) for name in (image, prepared.image_id)
    )
    planted = {"branch", "remote-branch", "tag", "stash", "note", "replace", "reflog", "fetch-head", "orig-head"}
    planted |= {"worktree", "loose-object", "pack", "unreachable", "foreign-commit", "foreign-object"}
    assert set(found("LEAK", before)) >= planted, before
    assert "took the fix" in before
    assert found("LEAK", after) == []
    assert set(found("NO-LEAK", after)) > planted


def test_escape_finds_nothing_in_a_workspace(prepared: PreparedImage, tmp_path: Path) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(closing(docker.from_env(timeout=600)))
        gateway = stack.enter_context(Gateway.start(tmp_path))
        spec = CaseSpec(case_id="c", model="scripted:escape", request_log=tmp_path / "log.jsonl")
        socket = GatewayClient(gateway.control).open_case(spec)
        workspace = stack.enter_context(
            open_workspace(
                client,
                prepared,
                name=f"clawbench-tests.{uuid.uuid4().hex}",
                labels=LABELS,
                limits=Limits(),
                gateway_socket=socket,
                mounts={"/opt/runtime": str(tmp_path)},
                environment={"OPENAI_API_KEY": "placeholder"},
                keep=Keep(),
            )
        )
        output = ""
        for command in escape_probes(Job("c", "/testbed", "")):
            result = workspace.run(["sh", "-c", command], timeout=600)
            assert not result.timed_out
            output += result.stdout.decode() + result.stderr.decode()
        asked = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert found("ESCAPE", output) == []
    assert "gateway at port unknown" not in output
    assert any(request["path"] == "/v1/models" and request["status"] == 200 for request in asked)
    assert "Nothing was found" in escape.conclude(Job("c", "/testbed", ""), output)
    assert {"dns", "docker-socket", "key-file", "gateway-control", "mount-bind"} <= set(found("HELD", output))


def test_escape_sees_holes(run: Callable[..., Callable[[str], str]], image: str, tmp_path: Path) -> None:
    """The same probes in a container that has some holes, none of which leads anywhere."""
    execute = run(
        image,
        network_mode="none",
        environment={"SOME_TOKEN": "a-rather-long-value", "OPENAI_KEY": KEY, "https_proxy": "http://127.0.0.1:1"},
        volumes={str(tmp_path): {"bind": "/shared", "mode": "rw"}},
    )
    execute(f"mkdir -p /claw /run/secrets; echo 'key: {KEY}' > /claw/config; echo x > /run/secrets/it")
    execute("perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Listen => 1, Local => \"/run/docker.sock\")'")
    output = "".join(execute(command) for command in escape_probes(Job("c", "/testbed", "")))
    assert KEY not in output
    expected = {
        "capabilities",
        "credentials",
        "docker-socket",
        "environment",
        "environment-names",
        "host-mount",
        "key-file",
        "mknod",
        "new-privileges",
        "proxy",
        "raw-socket",
    }
    kinds = set(found("ESCAPE", output))
    assert kinds >= expected, output
    assert not kinds & {"dns", "tcp-internet", "tcp-host", "route", "gateway-control"}
    assert all(kind in escape.conclude(Job("c", "/testbed", ""), output) for kind in expected)


def test_no_probe_is_left_out() -> None:
    for job in (Job("a", "/testbed", ""), Job("b", "/it's", "")):
        assert len(escape_probes(job)) == len(ESCAPE_SCRIPTS)


BEFORE = {"src/a.py": b"x = 1\n", "b.txt": b"one\r\n", "gone.txt": b"bye\n", ".gitignore": b"*.log\n"}
AFTER = {"src/a.py": b"x = 2\n", "b.txt": b"two\r\n", "new.py": b"y = 1\n", ".gitignore": b"*.log\n"}


@pytest.mark.parametrize("variant", TAMPER_VARIANTS)
def test_tamper_leaves_the_edit_alone(
    run: Callable[..., Callable[[str], str]], image: str, tmp_path: Path, variant: str
) -> None:
    job = next(job for job in _jobs(tmp_path) if f"variant={variant}\n" in _decoded(tamper_edit(job)[-1]))
    execute = run(image, network_mode="none", volumes={str(tmp_path / "repo"): {"bind": "/repo", "mode": "ro"}})
    execute("rm -rf /testbed && cp -a /repo /testbed && mkdir /kept && cp /bin/cat /usr/bin/find /kept")
    assert "version" in execute("git --version")
    outputs = [execute(command) for command in tamper_edit(job)]
    assert f"the export was attacked: {variant}" in outputs[-1]
    assert execute("cd /testbed && git diff; git status; git --version") == ""
    listing = execute("cd /testbed && /kept/find . -path ./.git -prune -o -type f -print")
    assert sorted(listing.split()) == sorted(f"./{name}" for name in AFTER)
    for name, content in AFTER.items():
        assert execute(f"/kept/cat /testbed/{name}").encode() == content
    assert "core.hooksPath" not in outputs[-1]


def _jobs(tmp_path: Path) -> Iterator[Job]:
    patch = make_task(tmp_path / "repo", BEFORE, AFTER)
    for number in range(100):
        yield Job(f"case-{number}", "/testbed", patch)


def _decoded(command: str) -> str:
    encoded = command.partition("printf %s ")[2].partition(" ")[0]
    return subprocess.run(["base64", "-d"], input=encoded, capture_output=True, text=True, check=True).stdout

"""What the tests of adapters in containers share: a container as adapters see it, and a model for the claws."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
from aiohttp import web

from adapters.base import Adapter, CommandResult, Task, TokenUsage
from adapters.registry import adapter
from adapters.runtimes import default_home
from adapters.zeroclaw.zeroclaw_adapter import PROMPT_LIMIT
from demo.task_images import TASK_REPO, ensure_image, image_name
from evaluation.instances import load_instance
from evaluation.lists import listed_instances
from workspace.container import GATEWAY_PORT, Keep, Limits, open_workspace
from workspace.owner import labels
from workspace.prepare import PreparedImage, prepare
from workspace.running import Workspace

LABELS = labels("adapter-tests")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/of the image/bin"
PROBE = 'echo "$PROBE|$PATH|$HOME" >> made.txt; pwd >> made.txt'


@dataclass(frozen=True)
class Subject:
    """What a test must know of a claw to talk to it."""

    name: str
    call: Callable[[str], tuple[str, dict[str, Any]]]
    """The name and the arguments of the tool call that runs a shell command in the repository."""
    usage: TokenUsage
    """What it reports of two replies of 100 tokens in, 40 of them cached, and 7 out."""
    not_offered: frozenset[str]
    """Tools that its own means take away."""
    longest: int = 200 << 10
    """Bytes of a prompt that it must take."""


SUBJECTS = (
    Subject(
        "openclaw",
        lambda command: ("exec", {"command": command}),
        TokenUsage(120, 80, 0, 14),
        frozenset({"web_search", "web_fetch", "memory_search", "sessions_spawn", "subagents", "cron", "image"}),
    ),
    Subject(
        "hermes",
        lambda command: ("terminal", {"command": command}),
        TokenUsage(120, 80, 0, 14),
        frozenset(
            {"web_search", "web_extract", "memory", "session_search", "cronjob", "delegate_task", "skills_list"}
        ),
    ),
    Subject(
        "nanobot",
        lambda command: ("exec", {"command": command}),
        TokenUsage(120, 80, None, 14),
        frozenset({"web_search", "web_fetch", "my", "run_cli_app"}),
    ),
    Subject(
        "zeroclaw",
        lambda command: ("shell", {"command": command}),
        TokenUsage(120, 80, None, 14),
        frozenset({"web_fetch", "http_request", "memory_recall", "cron_add", "sessions_list", "spawn_subagent"}),
        longest=PROMPT_LIMIT,
    ),
    Subject(
        "generic",
        lambda command: ("code_run", {"type": "bash", "script": command, "cwd": "/testbed"}),
        TokenUsage(120, 80, None, None),
        frozenset(),
    ),
)


class WorkspaceShell:
    """A workspace as adapters see it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        done = self.workspace.run(command, timeout=timeout, environment=environment, workdir=workdir)
        return CommandResult(done.exit_code, done.stdout, done.stderr, done.seconds)

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        self.workspace.put(folder, files, mode)

    def fetch(self, path: str, destination: Path) -> list[Path]:
        return self.workspace.fetch(path, destination)


class ScriptedModel:
    """A chat/completions server: one shell call per reply, for as long as tools and `calls` last."""

    def __init__(self, subject: Subject, calls: int, socket: Path) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        """What each request had for a key."""
        self._socket = socket
        self._subject = subject
        self._calls = calls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._reply)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, self._socket).start()

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        delta: dict[str, Any] = {"role": "assistant", "content": "Finished."}
        reason = "stop"
        if body.get("tools") and len(self.requests) <= self._calls:
            name, arguments = self._subject.call(PROBE)
            call = {"name": name, "arguments": json.dumps(arguments)}
            delta = {
                "tool_calls": [
                    {"index": 0, "id": f"call{len(self.requests)}", "type": "function", "function": call}
                ]
            }
            reason = "tool_calls"
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 40},
        }
        if not body.get("stream"):
            message = {"role": "assistant", "content": None, **delta}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return web.json_response(
                {"id": "c", "object": "chat.completion", "created": 0, "model": "m"}
                | {"choices": [choice], "usage": usage}
            )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for choice in (
            {"index": 0, "delta": delta, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": reason},
        ):
            await response.write(_event({"choices": [choice]}))
        await response.write(_event({"choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        return response


def _event(fields: dict[str, Any]) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def user_text(request: dict[str, Any]) -> str:
    """The first thing that the user says in a request."""
    content = next(m["content"] for m in request["messages"] if m["role"] == "user")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def hard_prompt(size: int) -> str:
    """Text of so many bytes in UTF-8: every plane, quotes, substitutions, a leading dash, odd line ends."""
    head = "--help -c /etc/passwd\n$(touch /testbed/pwned) `id` ${HOME} \"'\\\n"
    head += "\r\n\t\x01\x7f%s {{issue}} [bold]x[/] @file:/etc/passwd\n"
    rng = random.Random(size)  # noqa: S311 - the same text each time
    planes = [(0x20, 0x7E), (0xA1, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF)]
    planes += [(plane << 16, (plane << 16) | 0xFFFF) for plane in range(1, 17)]
    text = head
    while len(text.encode()) < size - 64:
        text += "".join(chr(rng.randint(*rng.choice(planes))) for _ in range(16))
    return text + "x" * (size - len(text.encode()) - 1) + "|"


@contextmanager
def connected() -> Iterator[docker.DockerClient]:
    """The engine; without one the test is skipped."""
    try:
        client = docker.from_env(timeout=600)
        client.ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine answers: {error}")
    with closing(client):
        yield client


def embedded_image(engine: docker.DockerClient) -> PreparedImage:
    """An embedded task's prepared image: made at most once, under the locks that a run takes too."""
    listed = next(listed for listed in listed_instances() if listed.embedded)
    locks = default_home() / "locks"
    ensure_image(engine, listed.instance_id, cache=default_home(), say=print)
    return prepare(
        engine,
        image_name(listed.instance_id),
        instance_id=listed.instance_id,
        base_commit=load_instance(listed, demo=TASK_REPO).base_commit,
        locks=locks,
        labels=LABELS,
        say=print,
    )


@contextmanager
def claws_workspace(
    engine: docker.DockerClient, image: PreparedImage, claw: Adapter, socket: Path | None = None
) -> Iterator[WorkspaceShell]:
    """A workspace with a claw's mounts and its least memory and pids, and a model at a socket."""
    arguments = claw.container_arguments()
    with open_workspace(
        engine,
        image,
        name=f"clawbench-tests.{uuid.uuid4().hex}",
        labels=LABELS,
        limits=Limits(claw.min_pids, claw.min_memory),
        gateway_socket=socket,
        mounts={mount.target: str(mount.source) for mount in arguments.mounts},
        environment={**arguments.environment, "PROBE": "seen", "PATH": PATH},
        keep=Keep(),
    ) as workspace:
        yield WorkspaceShell(workspace)


def make_task(prompt: str, **settings: Any) -> Task:
    """A task for the model at the workspace's gateway."""
    address = f"http://127.0.0.1:{GATEWAY_PORT}/v1"
    defaults: dict[str, Any] = {"workdir": "/testbed", "timeout": 900.0, "max_turns": 5, "model": "vendor/m-1"}
    return Task(**defaults | settings, prompt=prompt, base_url=address)


@dataclass(frozen=True)
class Run:
    """What a finished run left."""

    subject: Subject
    claw: Adapter
    prompt: str
    result: CommandResult
    requests: list[dict[str, Any]]
    made: bytes
    """What the tool call wrote."""
    was_tricked: bool
    status: bytes
    """Of the repository, but for the file that the tool call made and what the adapter declares."""
    state: bytes
    """All files of the claw's own state, one after the other."""
    session: Path


def run_claw(
    engine: docker.DockerClient,
    image: PreparedImage,
    subject: Subject,
    session: Path,
    *,
    size: int = 1000,
    calls: int = 1,
    max_turns: int = 5,
) -> Run:
    """Run a claw on a hard prompt of so many bytes, against a model that calls its tool so many times."""
    claw, prompt = adapter(subject.name), hard_prompt(size)
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder, "s")
        model = ScriptedModel(subject, calls, socket)
        model.start()
        try:
            with claws_workspace(engine, image, claw, socket) as shell:
                task = make_task(prompt, max_turns=max_turns)
                claw.create_agent(shell, task)
                result = claw.send_task(shell, task)
                made = shell.run(["cat", "made.txt"], timeout=120).stdout
                tricked = shell.run(["test", "-e", "pwned"], timeout=120).exit_code == 0
                exclude = "\n".join([*claw.agent_files, "/made.txt", "/pwned"]).encode()
                shell.put("/testbed/.git/info", {"exclude": exclude})
                status = shell.run(["git", "status", "--porcelain", "-uall"], timeout=120).stdout
                state = shell.run(["find", "/claw", "-type", "f", "-exec", "cat", "{}", "+"], timeout=120).stdout
                shell.workspace.freeze()
                claw.backup_session(shell, session)
        finally:
            model.stop()
    return Run(subject, claw, prompt, result, model.requests, made, tricked, status, state, session)

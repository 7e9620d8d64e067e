"""What the tests of adapters in containers share: a container as adapters see it, and a model for the claws."""

from __future__ import annotations

import asyncio
import io
import json
import random
import tarfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker.errors
from aiohttp import web

from adapters.base import CommandResult, Task, TokenUsage

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


SUBJECTS = (
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
        "generic",
        lambda command: ("code_run", {"type": "bash", "script": command, "cwd": "/testbed"}),
        TokenUsage(120, 80, None, None),
        frozenset(),
    ),
)


class ContainerShell:
    """The `Shell` protocol on a container of the Docker SDK, no more than the adapters need."""

    def __init__(self, container: Any) -> None:
        self.container = container

    def run(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        start = time.monotonic()
        bounded = ["timeout", "-s", "KILL", str(timeout), *command]
        code, (out, err) = self.container.exec_run(
            bounded, environment=dict(environment or {}), workdir=workdir, demux=True
        )
        ended = None if code == 137 else code
        return CommandResult(ended, out or b"", err or b"", time.monotonic() - start)

    def put(self, folder: str, files: Mapping[str, bytes], mode: int = 0o644) -> None:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(f"{folder.strip('/')}/{name}")
                member.size, member.mode = len(content), mode
                archive.addfile(member, io.BytesIO(content))
        self.container.put_archive("/", stream.getvalue())

    def fetch(self, path: str, destination: Path) -> list[Path]:
        try:
            chunks, _ = self.container.get_archive(path)
        except docker.errors.NotFound:
            return []
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            files = [member for member in archive.getmembers() if member.isfile()]
            archive.extractall(destination, files, filter="data")
        return [destination / member.name for member in files]


class ScriptedModel:
    """A chat/completions server: one shell call per reply, for as long as tools and `calls` last."""

    def __init__(self, subject: Subject, calls: int) -> None:
        self.requests: list[dict[str, Any]] = []
        self.port = 0
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
        site = web.TCPSite(runner, "0.0.0.0", 0)  # noqa: S104 - the container reaches it over the bridge
        await site.start()
        self.port = runner.addresses[0][1]

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        delta: dict[str, Any] = {"role": "assistant", "content": "Finished."}
        reason = "stop"
        if body.get("tools") and len(self.requests) <= self._calls:
            name, arguments = self._subject.call(PROBE)
            call = {"name": name, "arguments": json.dumps(arguments)}
            delta = {"tool_calls": [{"index": 0, "id": f"call{len(self.requests)}", "function": call}]}
            reason = "tool_calls"
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 40},
        }
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


def make_task(shell: ContainerShell, port: int, prompt: str, **settings: Any) -> Task:
    """A task for a model that listens on the host."""
    shell.container.reload()
    networks = shell.container.attrs["NetworkSettings"]["Networks"]
    address = f"http://{next(iter(networks.values()))['Gateway']}:{port}/v1"
    defaults: dict[str, Any] = {"workdir": "/testbed", "timeout": 240.0, "max_turns": 5, "model": "vendor/m-1"}
    return Task(**defaults | settings, prompt=prompt, base_url=address)


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

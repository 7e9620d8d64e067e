"""nanobot for real: in a container, against a scripted model, with what is hard about prompts and budgets."""

from __future__ import annotations

import asyncio
import io
import json
import random
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
from aiohttp import web

from adapters.base import CommandResult, NotInstalledError, Task
from adapters.nanobot import NanobotAdapter
from adapters.runtimes import default_home
from demo.images import embedded_ids, ensure_image, image_name

pytestmark = pytest.mark.docker


class ContainerShell:
    """The `Shell` protocol on a container of the Docker SDK, no more than the adapter needs."""

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

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.calls = 1
        self.port = 0
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
        if body.get("tools") and len(self.requests) <= self.calls:
            call = {"name": "exec", "arguments": json.dumps({"command": "echo $PROBE >> made.txt; pwd"})}
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


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine answers: {error}")
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient) -> str:
    """An embedded task's image: built at most once, under the lock that a run takes too."""
    instance = embedded_ids()[0]
    ensure_image(engine, instance, cache=default_home() / "locks", say=print)
    return image_name(instance)


@pytest.fixture(scope="module")
def nanobot() -> NanobotAdapter:
    adapter = NanobotAdapter()
    try:
        adapter.runtime()
    except NotInstalledError as error:
        pytest.skip(str(error))
    return adapter


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    scripted = ScriptedModel()
    scripted.start()
    yield scripted
    scripted.stop()


@pytest.fixture
def shell(engine: docker.DockerClient, image: str, nanobot: NanobotAdapter) -> Iterator[ContainerShell]:
    arguments = nanobot.container_arguments()
    container = engine.containers.create(
        image,
        ["sleep", "infinity"],
        init=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        environment={**arguments.environment, "PROBE": "seen"},
        volumes={str(mount.source): {"bind": mount.target, "mode": "ro"} for mount in arguments.mounts},
        mem_limit=nanobot.min_memory,
        pids_limit=nanobot.min_pids,
        labels={"clawbench.test": "adapters"},
    )
    try:
        container.start()
        yield ContainerShell(container)
    finally:
        container.remove(force=True)


def make_task(shell: ContainerShell, model: ScriptedModel, prompt: str, **settings: Any) -> Task:
    shell.container.reload()
    networks = shell.container.attrs["NetworkSettings"]["Networks"]
    gateway = next(iter(networks.values()))["Gateway"]
    address = f"http://{gateway}:{model.port}/v1"
    return Task(
        **{"workdir": "/testbed", "timeout": 120.0, "max_turns": 5, "model": "vendor/m-1"} | settings,
        prompt=prompt,
        base_url=address,
    )


def run(adapter: NanobotAdapter, shell: ContainerShell, task: Task) -> CommandResult:
    adapter.create_agent(shell, task)
    return adapter.send_task(shell, task)


def user_text(request: dict[str, Any]) -> str:
    content = next(m["content"] for m in request["messages"] if m["role"] == "user")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def hard_prompt(size: int) -> str:
    """Text of so many bytes in UTF-8: every plane, quotes, substitutions, a leading dash, odd line ends."""
    head = "--help -c /etc/passwd\n$(touch /testbed/pwned) `id` ${HOME} \"'\\\n"
    head += "\r\n\t\x01\x7f%s {{issue}} [bold]x[/]\n"
    rng = random.Random(size)  # noqa: S311 - the same text each time
    planes = [(0x20, 0x7E), (0xA1, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF)]
    planes += [(plane << 16, (plane << 16) | 0xFFFF) for plane in range(1, 17)]
    text = head
    while len(text.encode()) < size - 64:
        text += "".join(chr(rng.randint(*rng.choice(planes))) for _ in range(16))
    return text + "x" * (size - len(text.encode()) - 1) + "|"


@pytest.mark.parametrize("size", [1 << 16, 200 << 10])
def test_a_prompt_arrives_whole(
    nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel, size: int
) -> None:
    prompt = hard_prompt(size)
    assert len(prompt.encode()) == size
    result = run(nanobot, shell, make_task(shell, model, prompt))
    assert result.exit_code == 0, result
    assert prompt in user_text(model.requests[0])
    assert shell.run(["test", "-e", "/testbed/pwned"], timeout=10).exit_code == 1


def test_session_and_usage_are_saved(
    nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel, tmp_path: Path
) -> None:
    task = make_task(shell, model, "Do it.")
    result = run(nanobot, shell, task)
    assert result.exit_code == 0, result
    assert [request["model"] for request in model.requests] == ["vendor/m-1"] * 2
    shell.container.pause()
    try:
        nanobot.backup_session(shell, tmp_path)
    finally:
        shell.container.unpause()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
    assert b"made.txt" in kept
    assert b"Finished." in kept
    usage = nanobot.usage(tmp_path, result.stdout)
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output) == (120, 80, 14)


def test_the_shell_tool_has_the_images_variables_and_starts_in_the_repository(
    nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel
) -> None:
    run(nanobot, shell, make_task(shell, model, "Do it."))
    assert shell.run(["cat", "/testbed/made.txt"], timeout=10).stdout == b"seen\n"


def test_the_budget_of_turns_is_kept(nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel) -> None:
    model.calls = 1000
    run(nanobot, shell, make_task(shell, model, "Do it.", max_turns=4))
    with_tools = [request for request in model.requests if request.get("tools")]
    assert len(with_tools) == 4
    assert len(model.requests) <= 5


def test_droppings_are_all_declared(nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel) -> None:
    run(nanobot, shell, make_task(shell, model, "Do it."))
    shell.run(["rm", "/testbed/made.txt"], timeout=10)
    patterns = "\n".join(nanobot.droppings).encode()
    shell.put("/testbed/.git/info", {"exclude": patterns})
    status = shell.run(["git", "status", "--porcelain", "--untracked-files=all"], timeout=10, workdir="/testbed")
    assert status.stdout == b""
    ignored = shell.run(["git", "status", "--porcelain", "--ignored"], timeout=10, workdir="/testbed")
    assert b"AGENTS.md" in ignored.stdout


def test_web_and_self_tools_are_not_offered(
    nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel
) -> None:
    run(nanobot, shell, make_task(shell, model, "Do it."))
    offered = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert "exec" in offered
    assert not offered & {"web_search", "web_fetch", "my", "run_cli_app"}


def test_a_python_that_does_not_fit_is_said_with_what_to_do(
    nanobot: NanobotAdapter, shell: ContainerShell, model: ScriptedModel
) -> None:
    shell.run(["mv", "/usr/bin/python3", "/usr/bin/python3.gone"], timeout=10)
    with pytest.raises(NotInstalledError, match="CLAW_PYTHON_HOME"):
        nanobot.create_agent(shell, make_task(shell, model, "Do it."))

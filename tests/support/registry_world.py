"""A real registry on loopback (Debian's docker-registry), and before it a proxy that makes it fail at will."""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest
from aiohttp import ClientSession, web
from docker.errors import ImageNotFound

from support.waiting import wait_for

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request in the registry's place, or leaves it to it."""


def program() -> str:
    """Debian's docker-registry: the one that is installed, or the package's, unpacked beside the tests' caches."""
    installed = shutil.which("docker-registry")
    if installed:
        return installed
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("needs docker-registry, which Debian and Ubuntu have as a package")
    folder = Path(tempfile.gettempdir()) / "clawbench-tests" / "docker-registry"
    found = folder / "usr" / "bin" / "docker-registry"
    if not found.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fetch = ["apt-get", "download", "-q", "docker-registry"]
            done = subprocess.run(fetch, cwd=scratch, capture_output=True, text=True, check=False)
            packages = list(Path(scratch).glob("*.deb"))
            if not packages:
                pytest.skip(f"docker-registry can't be had from this machine's mirror: {done.stderr[-200:]}")
            subprocess.run(["dpkg-deb", "-x", str(packages[0]), scratch], check=True)
            found.parent.mkdir(parents=True, exist_ok=True)
            (Path(scratch) / "usr" / "bin" / "docker-registry").replace(found)
    return str(found)


@dataclass
class Registry:
    """A registry at `address`, whose answers `fault` may change."""

    client: docker.DockerClient
    behind: int
    """The registry's own port."""
    port: int = 0
    fault: Fault | None = None
    asked: list[str] = field(default_factory=list)
    """Every request, as `GET /v2/...`."""
    at_work: dict[str, int] = field(default_factory=dict)
    """Blobs being sent, by repository."""
    most_at_once: int = 0
    """Repositories whose blobs were sent at the same time."""
    made: list[str] = field(default_factory=list)

    def name(self, repository: str) -> str:
        """The name under which an image is pulled."""
        return f"127.0.0.1:{self.port}/{repository}:latest"

    def publish(self, *, size: int = 2000, script: str = "", platform: str | None = None) -> str:
        """Put an image of random bytes there that is nowhere else, and return the name that it is pulled by."""
        repository = f"tests-{uuid.uuid4().hex[:10]}"
        buffer = io.BytesIO()
        recipe = f"FROM scratch\nCOPY data /data\n{script}"
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in {"data": os.urandom(size), "Dockerfile": recipe.encode()}.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        own = f"127.0.0.1:{self.behind}/{repository}"
        self.client.images.build(
            fileobj=io.BytesIO(buffer.getvalue()), custom_context=True, tag=own, rm=True, platform=platform
        )
        self.push(own)
        self.client.images.remove(f"{own}:latest")
        return self.name(repository)

    def push(self, own: str) -> str:
        """Push an image that is here under a name of the registry's own port; the name that it is pulled by."""
        said = self.client.images.push(own, tag="latest")
        assert "errorDetail" not in said, said
        name = self.name(own.partition("/")[2])
        self.made.append(name)
        return name

    def pulled(self) -> set[str]:
        """The repositories whose manifests were asked for."""
        paths = (line.partition(" ")[2] for line in self.asked if "/manifests/" in line)
        return {path.partition("/manifests/")[0] for path in paths}

    def pulls(self, name: str) -> int:
        """How many times the engine began to pull an image."""
        path = f"HEAD /v2/{name.partition('/')[2].rpartition(':')[0]}/manifests/latest"
        return self.asked.count(path)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        with self._counted(request):
            return await self._answer(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.fault is not None and (answer := await self.fault(request)) is not None:
            return answer
        headers = (
            request.headers.copy()
        )  # several of one name stay several: what a registry answers hangs on Accept
        headers.popall("Host")
        address = f"http://127.0.0.1:{self.behind}{request.path_qs}"
        async with (
            ClientSession(auto_decompress=False) as session,
            session.request(request.method, address, headers=headers) as upstream,
        ):
            response = web.StreamResponse(status=upstream.status, headers=upstream.headers)
            await response.prepare(request)
            async for chunk in upstream.content.iter_chunked(65536):
                await response.write(chunk)
            await response.write_eof()
            return response

    @contextmanager
    def _counted(self, request: web.Request) -> Iterator[None]:
        repository = request.path.removeprefix("/v2/").partition("/blobs/")[0]
        if "/blobs/" not in request.path or request.method != "GET":
            yield
            return
        self.at_work[repository] = self.at_work.get(repository, 0) + 1
        self.most_at_once = max(self.most_at_once, sum(number > 0 for number in self.at_work.values()))
        try:
            yield
        finally:
            self.at_work[repository] -= 1


@contextmanager
def registry() -> Iterator[Registry]:
    """The two of them; all images that came from there are removed at the end."""
    client = docker.from_env(timeout=600)
    with tempfile.TemporaryDirectory() as folder:
        settings, log = Path(folder) / "settings.yml", Path(folder) / "log.txt"
        settings.write_text(
            "version: 0.1\nlog: {level: info}\n"
            f"storage:\n  filesystem: {{rootdirectory: {folder}/data}}\nhttp: {{addr: '127.0.0.1:0'}}\n"
        )
        with (
            log.open("wb") as said,
            subprocess.Popen([program(), "serve", str(settings)], stdout=said, stderr=said) as process,
        ):
            world = Registry(client, 0)
            try:
                world.behind = _port_of(process, log)
                with _proxy(world):
                    yield world
            finally:
                process.kill()
                for name in world.made:
                    with suppress(ImageNotFound):
                        client.images.remove(name, force=True)
                client.close()


@contextmanager
def _proxy(world: Registry) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    started = threading.Event()
    ended = asyncio.Event()

    async def serve() -> None:
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", world.handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        world.port = runner.addresses[0][1]
        started.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(120)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(90)
        loop.close()


def _port_of(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port that a registry chose, once it listens."""

    def listening() -> re.Match[str] | None:
        assert process.poll() is None, log.read_text()
        return re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text())

    found = wait_for(listening, "the registry to listen")
    assert found is not None
    return int(found[1])


# -- faults -------------------------------------------------------------------------------------------


def refusing(status: int, *, times: int | None = None, message: str = "", **headers: str) -> Fault:
    """Answer for manifests with a status: so many times (a HEAD does not count), or always."""
    left = [times]

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if "/manifests/" not in request.path or left[0] == 0:
            return None
        if left[0] is not None:
            left[0] -= request.method == "GET"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        code = {429: "TOOMANYREQUESTS", 403: "DENIED", 401: "UNAUTHORIZED"}.get(status, "UNKNOWN")
        body = {"errors": [{"code": code, "message": message or f"refused with {status}"}]}
        return web.json_response(body, status=status, headers=named)

    return fault


def breaking(times: int) -> Fault:
    """Break the connection off in the middle of a blob, as often as told."""
    left = [times]

    async def fault(request: web.Request) -> web.StreamResponse | None:
        if "/blobs/" not in request.path or request.method != "GET" or not left[0]:
            return None
        left[0] -= 1
        response = web.StreamResponse(headers={"Content-Length": "1000000"})
        await response.prepare(request)
        await response.write(b"\x1f\x8b")
        assert request.transport is not None
        request.transport.close()
        return response

    return fault


def until_asked(world: Registry, repositories: int) -> Fault:
    """Hold all blobs back until so many images are being pulled at the same time."""

    async def fault(request: web.Request) -> web.StreamResponse | None:
        while "/blobs/" in request.path and len(world.pulled()) < repositories:
            await asyncio.sleep(0.05)
        return None

    return fault


def until(released: threading.Event) -> Fault:
    """Hold all blobs back until they are released."""

    async def fault(request: web.Request) -> web.StreamResponse | None:
        while "/blobs/" in request.path and not released.is_set():
            await asyncio.sleep(0.05)
        return None

    return fault

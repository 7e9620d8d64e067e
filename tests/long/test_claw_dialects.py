"""The five claws against each provider's dialect, by the public door: real containers, a real gateway.

The provider is a local server whose model fixes the task through the claw's own shell tool. What is looked at is
that each claw can talk to it in the wire format that it is given, streaming as it is known to, and that three
counts of tokens agree: what the server charged, what the gateway counted, and what the claw itself says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.bench_run import BenchRun, run_bench
from support.dialects.delivery import Delivery
from support.dialects.profiles import DIALECTS
from support.dialects.server import MODEL, Brain, DialectServer

from adapters import registry
from adapters.base import NotInstalledError
from adapters.registry import CLAWS
from demo.task_images import TASK_REPO
from evaluation.instances import load_instance
from evaluation.lists import listed_instances
from gateway.behaviours.base import Job

pytestmark = pytest.mark.docker

TASK = "demo__cronspan-118"
KEY_VARIABLE = "CLAWBENCH_TEST_PROVIDER_KEY"
DELIVERY = Delivery(sizes=(211, 3, 97), alive=True)
"""Cut through characters and fields, kept alive between."""
TRANSFORMS = {
    "openai": ["include_usage"],
    "deepseek": ["include_usage", "deepseek_reasoning_content"],
    "dashscope": ["include_usage", "dashscope_cache_control"],
}
NEVER_STREAMS = {"zeroclaw"}
"""The others never do otherwise, but for hermes with a provider that says that it can't: docs/claws.md has where
that is in their code."""
NO_OUTPUT = {"generic"}
"""Claws that do not tell the tokens that the model wrote."""
READS_NO_WRITES = {"generic"}
"""Claws that take cache writes for input in chat/completions, where a provider tells them apart."""
CLASSES = ("input", "cache_read", "cache_write", "output")


@dataclass(frozen=True)
class Way:
    """How a claw talks to a provider."""

    claw: str
    dialect: str
    api: str
    streams: bool

    def __str__(self) -> str:
        return f"{self.claw}-{self.dialect}-{self.api}-{'streaming' if self.streams else 'whole'}"


def ways() -> list[Way]:
    """Each claw in each wire format; what DeepSeek and DashScope want beside it, streaming and not."""
    everyone = [("openrouter", "chat"), ("openai", "responses"), ("anthropic", "messages")]
    particular = [("deepseek", "chat"), ("dashscope", "chat")]
    found = []
    for claw in CLAWS:
        kinds = everyone + (particular if claw in ("zeroclaw", "generic") else [])
        found += [Way(claw, dialect, api, claw not in NEVER_STREAMS) for dialect, api in kinds]
    return [*found, Way("hermes", "openai", "chat", streams=False)]


@dataclass
class Done:
    """A run that has ended, and what its provider saw of it."""

    bench: BenchRun
    server: DialectServer
    folder: Path

    @property
    def metadata(self) -> dict[str, Any]:
        return self.json("metadata.json")

    def json(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / name).read_text())
        return content

    def asked(self) -> list[dict[str, Any]]:
        """The requests to the model that were answered, from the log."""
        lines = [json.loads(line) for line in (self.folder / "requests.jsonl").read_text().splitlines()]
        return [line for line in lines if line["method"] == "POST" and line["status"] == 200]

    def charged(self) -> dict[str, int]:
        """What the provider charged for all replies, class by class."""
        charges = self.server.charges
        return {name: sum(getattr(charge, name) for charge in charges) for name in CLASSES}


def provider(way: Way, server: DialectServer, folder: Path) -> Path:
    """A file that declares the server as a provider."""
    entry = {
        "base_url": server.base_url,
        "apis": [way.api],
        "auth": "x-api-key" if way.dialect == "anthropic" else "bearer",
        "key_env": KEY_VARIABLE,
        "transforms": TRANSFORMS.get(way.dialect, []),
        "context_window": {"default": 150_000},
        "prices": {MODEL: {"input": 2, "cache_read": 0.2, "cache_write": 2.5, "output": 8}},
    }
    file = folder / "providers.yaml"
    file.write_text(yaml.safe_dump({"local": entry}))
    return file


def can_not_stream(http: Any) -> tuple[int, dict[str, str], list[bytes]]:
    """What a server without streaming says."""
    error = {"error": {"message": "Streaming is not supported by this server.", "code": 501}}
    return 501, {"Content-Type": "application/json"}, [json.dumps(error).encode()]


@pytest.fixture(scope="module", params=ways(), ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    try:
        registry.adapter(found.claw).runtime()
    except NotInstalledError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture(scope="module")
def done(way: Way, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The claw's work on the task, by a model that knows how."""
    folder = tmp_path_factory.mktemp("dialect")
    listed = next(listed for listed in listed_instances() if listed.instance_id == TASK)
    patch = load_instance(listed, demo=TASK_REPO).patch
    brain = Brain("oracle", Job("case", "/testbed", patch))
    with DialectServer(DIALECTS[way.dialect], brain, delivery=DELIVERY) as server:
        if way.claw == "hermes" and not way.streams:
            server.canned.append(can_not_stream)
        bench = run_bench(
            folder,
            "run",
            *(
                "-k",
                f"{way.claw} and cronspan",
                "--model",
                f"local/{MODEL}",
                "--no-request",
                "--agent-timeout",
                "600",
            ),
            CLAWBENCH_PROVIDERS=str(provider(way, server, folder)),
            **{KEY_VARIABLE: server.key},
        )
    return Done(bench, server, bench.folder / way.claw / TASK)


def test_it_does_the_task(done: Done) -> None:
    assert done.metadata["outcome"] == "resolved", done.bench.output
    assert done.metadata["exit_code"] == 0


def test_it_speaks_the_format_that_it_is_given_as_it_is_known_to(way: Way, done: Done) -> None:
    asked = done.asked()
    assert len(asked) >= 2
    assert {line["api"] for line in asked} == {way.api}
    assert {line["stream"] for line in asked} == {way.streams}
    assert done.json("manifest.json")["model"] == {"name": MODEL, "api": way.api, "context_window": 150_000}


def test_the_gateway_counts_what_the_provider_charged(done: Done) -> None:
    counts = done.json("usage.json")["gateway"]
    # a class that the provider does not tell is unknown, and was not charged
    known = {name: counts["tokens"][name] or 0 for name in CLASSES}
    assert known == done.charged()
    assert counts["tokens"]["output"] > 0
    assert counts["unknown_usage"] == 0
    assert counts["cost"]["unpriced"] == 0


def test_the_claw_says_the_same_as_far_as_it_says_anything(way: Way, done: Done) -> None:
    told, charged = done.json("usage.json")["claw"], done.charged()
    known = {name: count for name, count in told.items() if count is not None}
    if way.claw in READS_NO_WRITES and way.api == "chat":
        charged["input"] += charged.pop("cache_write")
    # a class that was not used is left out by some
    used = {name for name, count in charged.items() if count} - ({"output"} if way.claw in NO_OUTPUT else set())
    assert known == {name: charged[name] for name in known}
    assert used <= set(known)


def test_the_key_stays_outside(done: Done) -> None:
    files = [path for path in done.bench.folder.rglob("*") if path.is_file()]
    assert [path for path in files if done.server.key.encode() in path.read_bytes()] == []
    assert done.server.key not in done.bench.output

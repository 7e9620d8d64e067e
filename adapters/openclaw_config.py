"""openclaw's config: what a file in `claw_configs/openclaw/` may set, and what the suite sets over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from adapters.base import BadOptionError, Task
from adapters.configs import reading
from adapters.own import set_over

PROVIDER = "gateway"
APIS = {"chat": "openai-completions", "responses": "openai-responses", "messages": "anthropic-messages"}
"""openclaw's names of the wire formats."""
TOOLS = ("exec", "process", "read", "write", "edit", "apply_patch")
"""What the model is offered: the shell and the files."""
DENIED_TOOLS = (
    *("memory_search", "memory_get"),
    *("web_search", "web_fetch"),
    *("sessions_list", "sessions_history", "sessions_send", "sessions_yield", "sessions_spawn"),
    *("subagents", "session_status", "cron", "image"),
)
"""What reaches out of the case; denied beside the list of what is allowed: neither depends on the other."""
_TOOLS: dict[str, Any] = {
    "profile": "coding",
    "allow": list(TOOLS),
    "deny": list(DENIED_TOOLS),
    "toolSearch": False,
    "codeMode": False,
    "web": {"search": {"enabled": False}, "fetch": {"enabled": False}},
    # the prompt sends scratch files to /tmp
    "fs": {"workspaceOnly": False},
    "exec": {"security": "full", "ask": "off", "applyPatch": {"workspaceOnly": False}},
}


class _Settings(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)


class AgentDefaults(_Settings):
    """`agents.defaults`; what is None is openclaw's own default."""

    user_timezone: str = "UTC"
    thinking_default: (
        Literal["off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra"] | None
    ) = None
    context_injection: Literal["always", "continuation-skip", "never"] = "always"
    """Whether the repository's own AGENTS.md goes into the system prompt."""


class Agents(_Settings):
    """`agents`."""

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)


class Model(_Settings):
    """`models.providers.gateway.models[0]`: what openclaw must be told of the model."""

    context_window: int = 200_000
    """Tokens."""
    max_tokens: int = 8192
    """Most tokens of a reply."""
    reasoning: bool = False
    """Whether it takes a reasoning effort."""


class Gateway(_Settings):
    """`models.providers.gateway`."""

    models: Annotated[list[Model], Field(min_length=1, max_length=1)] = Field(default_factory=lambda: [Model()])


class Providers(_Settings):
    """`models.providers`."""

    gateway: Gateway = Field(default_factory=Gateway)


class Models(_Settings):
    """`models`."""

    providers: Providers = Field(default_factory=Providers)


class ShellTool(_Settings):
    """`tools.exec`."""

    timeout_seconds: Annotated[int, Field(gt=0)] = 1800
    """Seconds that a command may take where the model names no timeout."""
    background_ms: Annotated[int, Field(gt=0)] = 10_000
    """Milliseconds after which a command goes on in the background, for the model to ask after."""


class Tools(_Settings):
    """`tools`."""

    shell: ShellTool = Field(default_factory=ShellTool, alias="exec")


class OpenclawSettings(_Settings):
    """A whole file."""

    agents: Agents = Field(default_factory=Agents)
    models: Models = Field(default_factory=Models)
    tools: Tools = Field(default_factory=Tools)


def read_settings(file: Path, *, is_whole_config: bool = False) -> OpenclawSettings:
    """The settings in a file.

    Args:
        file: It is JSON.
        is_whole_config: It is the config of an openclaw of the user's own: what is no setting here is passed over.

    Raises:
        BadOptionError: it is not JSON, or sets something that is not a setting.
    """
    if not is_whole_config:
        with reading(file):
            return OpenclawSettings.model_validate_json(file.read_bytes())
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise BadOptionError(f"{file} is not JSON (openclaw also takes JSON5; comments must go)") from error
    with reading(file):
        return OpenclawSettings.model_validate(_known(content, OpenclawSettings))


def _known(content: Any, model: type[BaseModel]) -> Any:
    """The part of an object that a model has fields for."""
    if not isinstance(content, dict):
        return content
    known = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in content:
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                known[key] = _known(content[key], inner)
            else:
                known[key] = content[key]
    return known


def render_config(settings: OpenclawSettings, task: Task) -> dict[str, Any]:
    """The config for one task, as the object that goes into its config file.

    Args:
        settings: What a file set.
        task: Where the model is, and which one.
    """
    config: dict[str, Any] = settings.model_dump(by_alias=True, exclude_none=True)
    config["agents"]["defaults"]["model"] = {"primary": f"{PROVIDER}/{task.model}"}
    model = config["models"]["providers"][PROVIDER]["models"][0]
    model |= {
        "id": task.model,
        "name": task.model,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        # without it openclaw does not ask for usage
        "compat": {"supportsUsageInStreaming": True},
    }
    if task.context_window:
        model["contextWindow"] = task.context_window
    provider = {
        "baseUrl": task.base_url,
        "apiKey": "placeholder",
        "api": APIS[task.api],
        "models": [model],
    }
    config["models"] = {
        "mode": "replace",
        "catalogRefresh": {"enabled": False},
        "providers": {PROVIDER: provider},
    }
    # unless they are off, it takes 50 s and 1.5 GiB to start
    return set_over(config, {**fixed_for_all(task), "plugins": {"enabled": False}})


def fixed_for_all(task: Task) -> dict[str, Any]:
    """What is the same for every case, whoever answers."""
    return {
        "agents": {
            "defaults": {
                "workspace": task.workdir,
                "skipBootstrap": True,
                "utilityModel": "",
            }
        },
        "tools": _TOOLS,
        # each of them reaches out of the case, or starts what a headless run has no use for
        "memory": {"search": {"enabled": False}},
        "update": {"checkOnStart": False},
        "telemetry": {"enabled": False},
        "cron": {"enabled": False},
        # none of its own skills (an empty list would be all of them): they are about services and openclaw itself,
        # and one named `spike` would make a `$spike` in an issue change the prompt
        "skills": {"allowBundled": ["none"]},
    }

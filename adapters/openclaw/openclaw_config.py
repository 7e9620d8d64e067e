"""openclaw's config: what a file in `claw_configs/openclaw/` may set, and what the suite sets itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from adapters.base import Task
from adapters.config_files import CamelSettings, load_object, read_settings
from adapters.openclaw.openclaw_adapter import TOOLS
from adapters.user_config import set_over

_PROVIDER = "gateway"
_APIS = {"chat": "openai-completions", "responses": "openai-responses", "messages": "anthropic-messages"}
"""openclaw's names for the wire formats."""
_OWN_SECTIONS = ("auth", "env", "models", "plugins")
"""What is taken from a config of the user's own: not their channels, agents and secrets of other kinds."""
DENIED_TOOLS = (
    *("memory_search", "memory_get"),
    *("web_search", "web_fetch"),
    *("sessions_list", "sessions_history", "sessions_send", "sessions_yield", "sessions_spawn"),
    *("subagents", "session_status", "cron", "image"),
)
"""What reaches out of the case. Denied in addition to the list of what is allowed, so that neither has to hold
alone."""
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


class AgentDefaults(CamelSettings):
    """`agents.defaults`; None means openclaw's own default."""

    user_timezone: str = "UTC"
    thinking_default: (
        Literal["off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra"] | None
    ) = None
    context_injection: Literal["always", "continuation-skip", "never"] = "always"
    """Whether the repository's own AGENTS.md goes into the system prompt."""


class Agents(CamelSettings):
    """`agents`."""

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)


class Model(CamelSettings):
    """`models.providers.gateway.models[0]`: what openclaw must know about the model."""

    context_window: int = 200_000
    """Tokens."""
    max_tokens: int = 8192
    """Most tokens of a reply."""
    reasoning: bool = False
    """Whether it accepts a reasoning effort."""


class Gateway(CamelSettings):
    """`models.providers.gateway`."""

    models: Annotated[list[Model], Field(min_length=1, max_length=1)] = Field(default_factory=lambda: [Model()])


class Providers(CamelSettings):
    """`models.providers`."""

    gateway: Gateway = Field(default_factory=Gateway)


class Models(CamelSettings):
    """`models`."""

    providers: Providers = Field(default_factory=Providers)


class ShellTool(CamelSettings):
    """`tools.exec`."""

    timeout_seconds: Annotated[int, Field(gt=0)] = 1800
    """Seconds that a command may take if the model gives no timeout."""
    background_ms: Annotated[int, Field(gt=0)] = 10_000
    """Milliseconds after which a command continues in the background, where the model can poll it."""


class Tools(CamelSettings):
    """`tools`."""

    shell: ShellTool = Field(default_factory=ShellTool, alias="exec")


class OpenclawSettings(CamelSettings):
    """A whole file."""

    agents: Agents = Field(default_factory=Agents)
    models: Models = Field(default_factory=Models)
    tools: Tools = Field(default_factory=Tools)


def own_config(file: Path, task: Task) -> dict[str, Any]:
    """The part of the user's own config that says where models are, with what the suite sets itself.

    Args:
        file: a config of openclaw's own.
        task: names the model.

    Raises:
        BadOptionError: it is not JSON.
    """
    content = load_object(file)
    agents = content.get("agents")
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    kept: dict[str, Any] = {name: content[name] for name in _OWN_SECTIONS if name in content}
    kept["agents"] = {"defaults": defaults if isinstance(defaults, dict) else {}}
    model = {"agents": {"defaults": {"model": {"primary": task.model}}}} if task.model else {}
    return set_over(set_over(kept, _fixed(task)), model)


def render_config(file: Path, task: Task, *, is_whole_config: bool = False) -> dict[str, Any]:
    """The content of openclaw's config file for one task.

    Args:
        file: the settings.
        task: the model and its address.
        is_whole_config: whether the file is the config of an openclaw of the user's own; what is not a setting
            here is ignored.

    Raises:
        BadOptionError: it is not JSON, or sets something that is not a setting.
    """
    settings = read_settings(file, OpenclawSettings, ignore_unknown=is_whole_config)
    config: dict[str, Any] = settings.model_dump(by_alias=True, exclude_none=True)
    config["agents"]["defaults"]["model"] = {"primary": f"{_PROVIDER}/{task.model}"}
    model = config["models"]["providers"][_PROVIDER]["models"][0]
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
    provider = {"baseUrl": task.base_url, "apiKey": "placeholder", "api": _APIS[task.api], "models": [model]}
    config["models"] = {
        "mode": "replace",
        "catalogRefresh": {"enabled": False},
        "providers": {_PROVIDER: provider},
    }
    # with plugins it takes 50 s and 1.5 GiB to start
    return set_over(config, {**_fixed(task), "plugins": {"enabled": False}})


def _fixed(task: Task) -> dict[str, Any]:
    """What is the same for every case, whoever answers."""
    return {
        "agents": {"defaults": {"workspace": task.workdir, "skipBootstrap": True, "utilityModel": ""}},
        "tools": _TOOLS,
        # each of these reaches out of the case, or starts what a headless run has no use for
        "memory": {"search": {"enabled": False}},
        "update": {"checkOnStart": False},
        "telemetry": {"enabled": False},
        "cron": {"enabled": False},
        # none of its own skills (an empty list would mean all): they are about services and openclaw itself, and
        # the one named `spike` would make a `$spike` in an issue change the prompt
        "skills": {"allowBundled": ["none"]},
    }

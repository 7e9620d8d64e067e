"""nanobot's config: what a file in `claw_configs/nanobot/` may set, and what the suite sets itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adapters.base import Task
from adapters.config_files import CamelSettings, load_object, read_settings
from adapters.user_config import set_over

_PROVIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "chat": ("custom", {}),
    "messages": ("anthropic", {}),
    # the only provider of nanobot's that can be told to use this format, whatever the model's name
    "responses": ("openai", {"apiType": "responses"}),
}
"""For each wire format nanobot's provider for it, and its further settings."""

_BYTES_A_TOKEN = 3
"""Bytes that stand for one token of `contextWindowTokens`."""


class AgentDefaults(CamelSettings):
    """`agents.defaults`; the defaults are nanobot's own."""

    max_tokens: int = 8192
    context_window_tokens: int = 600_000
    """In effect bytes: without a network nanobot has no tokenizer and counts a byte as a token, so this stands for
    a window of about 200,000 tokens."""
    temperature: float = 0.1
    idle_compact_after_minutes: int = 0
    """0, since a case is one task: there is nothing to compact between messages."""
    timezone: str = "UTC"
    reasoning_effort: str | None = None
    max_tool_result_chars: int = 16_000
    provider_retry_mode: Literal["standard", "persistent"] = "standard"
    disabled_skills: list[str] = Field(default_factory=list)


class ShellTool(CamelSettings):
    """`tools.exec`."""

    enable: Literal[True] = True
    timeout: int = 60
    """Seconds that a command may take if the model gives no timeout; 0 means no limit."""
    deny_patterns: list[str] = Field(default_factory=list)


class Tools(CamelSettings):
    """`tools`."""

    shell: ShellTool = Field(default_factory=ShellTool, alias="exec")
    restrict_to_workspace: bool = False


class Agents(CamelSettings):
    """`agents`."""

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)


class NanobotSettings(CamelSettings):
    """A whole file."""

    agents: Agents = Field(default_factory=Agents)
    tools: Tools = Field(default_factory=Tools)


def make_config(file: Path, task: Task, variables: list[str]) -> dict[str, Any]:
    """The content of nanobot's config file for one task.

    Args:
        file: the settings; with the gateway off, a config of nanobot's own.
        task: the model and its address, the number of rounds.
        variables: names of the container's environment variables that the shell tool passes on; nanobot would hide
            even the PATH of an image's toolchains.

    Raises:
        BadOptionError: the file is not JSON, or sets something that is not a setting.
    """
    defaults: dict[str, Any] = {"workspace": task.workdir, "maxToolIterations": task.max_turns}
    if task.model:
        defaults["model"] = task.model
    off = {name: {"enable": False} for name in ("web", "cliApps", "my")}
    fixed = {"agents": {"defaults": defaults}, "tools": {"exec": {"allowedEnvKeys": variables}, **off}}
    if task.base_url is None:
        return set_over(load_object(file), fixed)
    config: dict[str, Any] = read_settings(file, NanobotSettings).model_dump(by_alias=True)
    provider, extra = _PROVIDERS[task.api]
    config["agents"]["defaults"]["provider"] = provider
    if task.context_window:
        config["agents"]["defaults"]["contextWindowTokens"] = task.context_window * _BYTES_A_TOKEN
    config["providers"] = {provider: {"apiKey": "placeholder", "apiBase": task.base_url, **extra}}
    return set_over(config, fixed)

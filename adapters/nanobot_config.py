"""nanobot's config: what a file in `claw_configs/nanobot/` may set, and what the suite sets over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from adapters.base import Task
from adapters.configs import read_object, reading
from adapters.own import set_over

PROVIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "chat": ("custom", {}),
    "messages": ("anthropic", {}),
    # the only one of its providers that can be told to use that format, whatever the model's name is
    "responses": ("openai", {"apiType": "responses"}),
}
"""For each wire format the provider of nanobot's that speaks it, and what that one must be told."""

_BYTES_A_TOKEN = 3
"""What stands for a token in `contextWindowTokens`: see there."""


class _Settings(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)


class AgentDefaults(_Settings):
    """`agents.defaults`; what is not set is nanobot's own default."""

    max_tokens: int = 8192
    context_window_tokens: int = 600_000
    """Bytes in effect: without a network nanobot has no tokenizer and takes a byte for a token, so this
    stands for a window of about 200,000 tokens."""
    temperature: float = 0.1
    idle_compact_after_minutes: int = 0
    """0: a case is one task, there is nothing to compact between messages."""
    timezone: str = "UTC"
    reasoning_effort: str | None = None
    max_tool_result_chars: int = 16_000
    provider_retry_mode: Literal["standard", "persistent"] = "standard"
    disabled_skills: list[str] = Field(default_factory=list)


class ShellTool(_Settings):
    """`tools.exec`."""

    enable: Literal[True] = True
    timeout: int = 60
    """Seconds that a command may take where the model names no timeout; 0 is no limit."""
    deny_patterns: list[str] = Field(default_factory=list)


class Tools(_Settings):
    """`tools`."""

    shell: ShellTool = Field(default_factory=ShellTool, alias="exec")
    restrict_to_workspace: bool = False


class Agents(_Settings):
    """`agents`."""

    defaults: AgentDefaults = Field(default_factory=AgentDefaults)


class NanobotSettings(_Settings):
    """A whole file."""

    agents: Agents = Field(default_factory=Agents)
    tools: Tools = Field(default_factory=Tools)


def read_settings(file: Path) -> NanobotSettings:
    """The settings in a file.

    Raises:
        BadOptionError: it is not JSON, or sets something that is not a setting.
    """
    with reading(file):
        return NanobotSettings.model_validate_json(file.read_bytes())


def own_config(file: Path, task: Task, variables: list[str]) -> dict[str, Any]:
    """The user's own config, with what a case fixes set over it: all but where the model is.

    Args:
        file: A config of nanobot's own.
        task: How many rounds, and which model, if it says.
        variables: As for `render_config`.

    Raises:
        BadOptionError: it is not JSON, or no object.
    """
    return set_over(read_object(file), _fixed(task, variables))


def render_config(settings: NanobotSettings, task: Task, variables: list[str]) -> dict[str, Any]:
    """The config for one task, as the object that goes into its config file.

    Args:
        settings: What a file set.
        task: Where the model is, which one, how many rounds.
        variables: Names of the container's environment variables that the shell tool hands on; nanobot
            would hide even the PATH of an image's toolchains.
    """
    config: dict[str, Any] = settings.model_dump(by_alias=True)
    provider, told = PROVIDERS[task.api]
    config["agents"]["defaults"]["provider"] = provider
    if task.context_window:
        config["agents"]["defaults"]["contextWindowTokens"] = task.context_window * _BYTES_A_TOKEN
    config["providers"] = {provider: {"apiKey": "placeholder", "apiBase": task.base_url, **told}}
    return set_over(config, _fixed(task, variables))


def _fixed(task: Task, variables: list[str]) -> dict[str, Any]:
    """What is the same for every case, whoever answers."""
    defaults: dict[str, Any] = {"workspace": task.workdir, "maxToolIterations": task.max_turns}
    if task.model:
        defaults["model"] = task.model
    off = {name: {"enable": False} for name in ("web", "cliApps", "my")}
    return {"agents": {"defaults": defaults}, "tools": {"exec": {"allowedEnvKeys": variables}, **off}}

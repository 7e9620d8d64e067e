"""zeroclaw's config: what a file in `claw_configs/zeroclaw/` may set, and what the suite sets over it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from adapters.base import BadOptionError, Task
from adapters.configs import reading
from adapters.own import set_over

ALIAS = "clawbench"
"""The name of the one agent, and of its profiles."""

TOOLS = (
    "shell",
    "file_read",
    "file_write",
    "file_edit",
    "glob_search",
    "content_search",
    "git_operations",
)
"""Of its 44 tools, those that stay inside the case."""

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    # without `native_tools` tools are described in the prompt and called in the text
    "chat": ("custom", {"wire_api": "chat_completions", "native_tools": True}),
    "responses": ("custom", {"wire_api": "responses"}),
    "messages": ("anthropic", {}),
}
"""For each wire format the family of zeroclaw's providers that speaks it, and what one of it must be told."""

_PROVIDER = "gateway"
_SCHEMA = 3


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Provider(_Settings):
    """`provider`; what is not set is the provider's own default."""

    max_tokens: int | None = Field(default=None, gt=0)
    """Most tokens of a reply."""
    temperature: float | None = None
    timeout_secs: int = Field(default=600, gt=0)
    """Seconds that one reply may take."""


class Profile(_Settings):
    """`profile`: zeroclaw's runtime profile."""

    max_context_tokens: int = Field(default=200_000, gt=0)
    """As zeroclaw estimates them; it drops older messages beyond that."""
    shell_timeout_secs: int = Field(default=60, gt=0)
    """Seconds that a command may take."""
    max_tool_result_chars: int = Field(default=50_000, gt=0)
    parallel_tools: bool | None = None


class Reliability(_Settings):
    """`reliability`: how often a failed request is tried again."""

    provider_retries: int = 2
    provider_backoff_ms: int = 500


class Pacing(_Settings):
    """`pacing`."""

    loop_detection_enabled: bool = True


class Platform(_Settings):
    """`runtime`."""

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class ZeroclawSettings(_Settings):
    """A whole file."""

    provider: Provider = Field(default_factory=Provider)
    profile: Profile = Field(default_factory=Profile)
    reliability: Reliability = Field(default_factory=Reliability)
    pacing: Pacing = Field(default_factory=Pacing)
    runtime: Platform = Field(default_factory=Platform)


def read_settings(file: Path) -> ZeroclawSettings:
    """The settings in a file.

    Raises:
        BadOptionError: it is not TOML, or sets something that is not a setting.
    """
    content = _load(file)
    with reading(file):
        return ZeroclawSettings.model_validate(content)


def _load(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # tomllib's own, and text that is not UTF-8
        raise BadOptionError(f"{file} is not TOML") from error


def own_config(file: Path, task: Task, variables: Sequence[str]) -> dict[str, Any]:
    """The user's own config, with what a case fixes set over it: all but where the model is.

    Args:
        file: A config of zeroclaw's own, whose keys are not encrypted.
        task: How many rounds, and which model, if it says.
        variables: As for `render_config`.

    Raises:
        BadOptionError: it is not TOML, or does not tell which provider of its to use.
    """
    own = _load(file)
    chosen = _own_provider(own, file)
    if task.model:
        family, _, alias = chosen.partition(".")
        own = set_over(own, {"providers": {"models": {family: {alias: {"model": task.model}}}}})
    return set_over(own, _fixed(task, chosen, variables))


def _own_provider(own: Mapping[str, Any], file: Path) -> str:
    """Which of its providers a config is for: the one that its agent names, or the only one."""
    match own:
        case {"agents": {"clawbench": {"model_provider": str(named)}}}:
            return named
        case {"providers": {"models": {**families}}}:
            found = {name: aliases for name, aliases in families.items() if isinstance(aliases, dict)}
            names = [f"{name}.{alias}" for name, aliases in found.items() for alias in aliases]
            if len(names) == 1:
                return names[0]
    raise BadOptionError(
        f"{file}: [providers.models] does not have one provider alone; say which one is meant, as "
        f'model_provider = "<family>.<alias>" in [agents.{ALIAS}]'
    )


def render_config(settings: ZeroclawSettings, task: Task, variables: Sequence[str]) -> dict[str, Any]:
    """The config for one task, as the object that goes into its config file.

    Args:
        settings: What a file set.
        task: Where the model is, which one, how many rounds.
        variables: Names of the container's environment variables that the shell tool hands on; zeroclaw
            would hide all but a few.
    """
    chosen: dict[str, Any] = settings.model_dump(exclude_none=True)
    family, told = FAMILIES[task.api]
    provider = {
        **chosen.pop("provider"),
        "uri": _address(task, family),
        "api_key": "placeholder",
        "model": task.model,
        **told,
    }
    profile = chosen.pop("profile")
    if task.context_window:
        profile["max_context_tokens"] = task.context_window
    chosen["providers"] = {"models": {family: {_PROVIDER: provider}}}
    chosen["runtime_profiles"] = {ALIAS: profile}
    return set_over(chosen, _fixed(task, f"{family}.{_PROVIDER}", variables))


def _fixed(task: Task, provider: str, variables: Sequence[str]) -> dict[str, Any]:
    """What is the same for every case, whoever answers."""
    agent = {
        "model_provider": provider,
        "risk_profile": ALIAS,
        "runtime_profile": ALIAS,
        "memory": {"backend": "none"},
        # the shell starts in the workspace, and AGENTS.md is read from it
        "workspace": {"path": task.workdir, "unrestricted_filesystem": True},
    }
    profile = {
        "agentic": True,
        "max_tool_iterations": task.max_turns,
        # each has a low default, which would end a case in the middle of its budget
        "max_actions_per_hour": 1_000_000,
        "max_cost_per_day_cents": 1_000_000_000,
    }
    return {
        "schema_version": _SCHEMA,
        "agents": {ALIAS: agent},
        "risk_profiles": {ALIAS: _risk_profile(variables)},
        "runtime_profiles": {ALIAS: profile},
        "observability": {"log_persistence": "full", "log_tool_io": "full"},
        "secrets": {"encrypt": False},  # there is none
    }


def _address(task: Task, family: str) -> str:
    """The gateway's, without the `/v1` that zeroclaw itself writes behind Anthropic's."""
    address = str(task.base_url)
    return address.removesuffix("/v1") if family == "anthropic" else address


def _risk_profile(variables: Sequence[str]) -> dict[str, Any]:
    """Everything is allowed, without being asked for, with the tools that stay inside the case."""
    return {
        "level": "full",
        "workspace_only": False,
        "allowed_commands": ["*"],
        "forbidden_paths": [],
        "block_high_risk_commands": False,
        "require_approval_for_medium_risk": False,
        "sandbox_enabled": False,  # the container is one
        "allowed_tools": list(TOOLS),
        "shell_env_passthrough": list(variables),
    }


def to_toml(config: Mapping[str, Any]) -> str:
    """An object of strings, numbers, truth values, lists and tables as TOML, one line for each key."""
    return "".join(f"{_quoted(key)} = {_value(value)}\n" for key, value in config.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    """A TOML string is a JSON string without surrogate pairs and with DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

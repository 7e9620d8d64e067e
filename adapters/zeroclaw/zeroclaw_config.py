"""zeroclaw's config: what a file in `claw_configs/zeroclaw/` may set, and what the suite sets itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adapters.base import BadOptionError, Task
from adapters.config_files import Settings, load_object, read_settings
from adapters.user_config import set_over
from adapters.zeroclaw.zeroclaw_adapter import ALIAS, TOOLS

_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    # without `native_tools`, tools are described in the prompt and called in the text
    "chat": ("custom", {"wire_api": "chat_completions", "native_tools": True}),
    "responses": ("custom", {"wire_api": "responses"}),
    "messages": ("anthropic", {}),
}
"""For each wire format the family of zeroclaw's providers for it, and its further settings."""

_PROVIDER = "gateway"
_SCHEMA = 3


class Provider(Settings):
    """`provider`; what is not set has the provider's own default."""

    max_tokens: int | None = Field(default=None, gt=0)
    """Most tokens of a reply."""
    temperature: float | None = None
    timeout_secs: int = Field(default=600, gt=0)
    """Seconds that one reply may take."""


class Profile(Settings):
    """`profile`: zeroclaw's runtime profile."""

    max_context_tokens: int = Field(default=200_000, gt=0)
    """As zeroclaw estimates them; beyond that it drops older messages."""
    shell_timeout_secs: int = Field(default=60, gt=0)
    """Seconds that a command may take."""
    max_tool_result_chars: int = Field(default=50_000, gt=0)
    parallel_tools: bool | None = None


class Reliability(Settings):
    """`reliability`: how often a failed request is retried."""

    provider_retries: int = 2
    provider_backoff_ms: int = 500


class Pacing(Settings):
    """`pacing`."""

    loop_detection_enabled: bool = True


class Platform(Settings):
    """`runtime`."""

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class ZeroclawSettings(Settings):
    """A whole file."""

    provider: Provider = Field(default_factory=Provider)
    profile: Profile = Field(default_factory=Profile)
    reliability: Reliability = Field(default_factory=Reliability)
    pacing: Pacing = Field(default_factory=Pacing)
    runtime: Platform = Field(default_factory=Platform)


def make_config(file: Path, task: Task, variables: Sequence[str]) -> dict[str, Any]:
    """The content of zeroclaw's config file for one task.

    Args:
        file: the settings; with the gateway off, a config of zeroclaw's own, whose keys are not encrypted.
        task: the model and its address, the number of rounds.
        variables: names of the container's environment variables that the shell tool passes on; zeroclaw would
            hide all but a few.

    Raises:
        BadOptionError: the file is not TOML, sets something that is not a setting, or does not say which of its
            providers to use.
    """
    config, provider = _own(file, task) if task.base_url is None else _rendered(file, task)
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
        # each has a low default, which would end a case before its time is up
        "max_actions_per_hour": 1_000_000,
        "max_cost_per_day_cents": 1_000_000_000,
    }
    fixed = {
        "schema_version": _SCHEMA,
        "agents": {ALIAS: agent},
        "risk_profiles": {ALIAS: _risk_profile(variables)},
        "runtime_profiles": {ALIAS: profile},
        "observability": {"log_persistence": "full", "log_tool_io": "full"},
        "secrets": {"encrypt": False},  # there are none
    }
    return set_over(config, fixed)


def _own(file: Path, task: Task) -> tuple[dict[str, Any], str]:
    """The user's own config, and the provider that its agent names, or the only one."""
    own = load_object(file)
    match own:
        case {"agents": {"clawbench": {"model_provider": str(chosen)}}}:
            pass
        case {"providers": {"models": {**families}}}:
            found = {name: aliases for name, aliases in families.items() if isinstance(aliases, dict)}
            names = [f"{name}.{alias}" for name, aliases in found.items() for alias in aliases]
            chosen = names[0] if len(names) == 1 else ""
        case _:
            chosen = ""
    if not chosen:
        raise BadOptionError(
            f"{file}: [providers.models] does not hold exactly one provider; say which one to use, as "
            f'model_provider = "<family>.<alias>" in [agents.{ALIAS}]'
        )
    if task.model:
        family, _, alias = chosen.partition(".")
        own = set_over(own, {"providers": {"models": {family: {alias: {"model": task.model}}}}})
    return own, chosen


def _rendered(file: Path, task: Task) -> tuple[dict[str, Any], str]:
    """The settings as a config of zeroclaw's, and the name of its provider."""
    config: dict[str, Any] = read_settings(file, ZeroclawSettings).model_dump(exclude_none=True)
    family, extra = _FAMILIES[task.api]
    # behind Anthropic's address zeroclaw writes the `/v1` itself
    address = str(task.base_url).removesuffix("/v1") if family == "anthropic" else task.base_url
    provider = {**config.pop("provider"), "uri": address, "api_key": "placeholder", "model": task.model, **extra}
    profile = config.pop("profile")
    if task.context_window:
        profile["max_context_tokens"] = task.context_window
    config["providers"] = {"models": {family: {_PROVIDER: provider}}}
    config["runtime_profiles"] = {ALIAS: profile}
    return config, f"{family}.{_PROVIDER}"


def _risk_profile(variables: Sequence[str]) -> dict[str, Any]:
    """A profile that allows everything without asking, with the tools that stay inside the case."""
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

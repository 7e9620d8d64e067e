"""hermes's config: what a file in `claw_configs/hermes/` may set, and what the suite sets over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from adapters.base import BadOptionError, Task
from adapters.configs import reading
from adapters.own import set_over

PROVIDER = "gateway"
API_MODES = {"chat": "chat_completions", "responses": "codex_responses", "messages": "anthropic_messages"}
"""hermes's names of the wire formats."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Model(_Settings):
    """`model`."""

    max_tokens: int | None = None
    """Most tokens of a reply; None is the provider's own limit."""
    context_length: int = 200_000
    """Tokens; said here because hermes would otherwise look it up on the network."""


class Agent(_Settings):
    """`agent`."""

    reasoning_effort: Literal["", "none", "minimal", "low", "medium", "high", "xhigh"] = ""
    api_max_retries: int = 3
    """How often a failed request is tried again."""


class Terminal(_Settings):
    """`terminal`."""

    timeout: int = 180
    """Seconds that a command may take where the model names no timeout."""


class Compression(_Settings):
    """`compression`: older messages are summarized when the context fills up."""

    enabled: bool = True
    threshold: float = 0.5
    """Of the context length."""


class HermesSettings(_Settings):
    """A whole file."""

    model: Model = Field(default_factory=Model)
    agent: Agent = Field(default_factory=Agent)
    terminal: Terminal = Field(default_factory=Terminal)
    compression: Compression = Field(default_factory=Compression)


def read_settings(file: Path) -> HermesSettings:
    """The settings in a file.

    Raises:
        BadOptionError: it is not YAML, or sets something that is not a setting.
    """
    content = _load(file)
    with reading(file):
        return HermesSettings.model_validate({} if content is None else content)


def _load(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_bytes())
    except yaml.YAMLError as error:
        raise BadOptionError(f"{file} is not YAML") from error


def own_config(file: Path, task: Task, shell_init_files: list[str]) -> dict[str, Any]:
    """The user's own config, with what a case fixes set over it: all but where the model is.

    Args:
        file: A config of hermes' own.
        task: How many rounds, and which model, if it says.
        shell_init_files: As for `render_config`.

    Raises:
        BadOptionError: it is not YAML, or no object.
    """
    own = _load(file)
    if not isinstance(own, dict):
        raise BadOptionError(f"{file} is no object")
    if isinstance(own.get("model"), str):
        own["model"] = {"default": own["model"]}
    model = {"model": {"default": task.model}} if task.model else {}
    return set_over(own, {**_fixed(task, shell_init_files), **model})


def render_config(settings: HermesSettings, task: Task, shell_init_files: list[str]) -> dict[str, Any]:
    """The config for one task, as the object that goes into its config file.

    Args:
        settings: What a file set.
        task: Where the model is, which one, how many rounds.
        shell_init_files: What the terminal tool's shell sources when it starts.
    """
    chosen = settings.model_dump()
    window = task.context_window or settings.model.context_length
    provider: dict[str, Any] = {
        "name": PROVIDER,
        "base_url": task.base_url,
        "api_key": "placeholder",
        "api_mode": API_MODES[task.api],
        "model": task.model,
        "discover_models": False,
        "models": {task.model: {"context_length": window}},
    }
    model = {"default": task.model, "provider": f"custom:{PROVIDER}", "context_length": window}
    if settings.model.max_tokens is not None:
        model["max_tokens"] = settings.model.max_tokens
    chosen |= {"model": model, "custom_providers": [provider]}
    return set_over(chosen, _fixed(task, shell_init_files))


def _fixed(task: Task, shell_init_files: list[str]) -> dict[str, Any]:
    """What is the same for every case, whoever answers."""
    return {
        "agent": {"max_turns": task.max_turns},
        "terminal": {
            "backend": "local",
            "cwd": task.workdir,
            # in a container hermes gives its shell a HOME of its own, without what the image's toolchains
            # keep in theirs
            "home_mode": "real",
            "shell_init_files": shell_init_files,
        },
        "approvals": {"mode": "off"},
        # nothing is kept from one session for the next
        "memory": {"memory_enabled": False, "user_profile_enabled": False},
        "skills": {"creation_nudge_interval": 0},
        "curator": {"enabled": False},
        # tirith is a scanner that hermes would download; so are its optional packages
        "security": {"tirith_enabled": False, "allow_lazy_installs": False},
    }

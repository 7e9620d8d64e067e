"""hermes's config: what a file in `claw_configs/hermes/` may set, and what the suite sets itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from adapters.base import Task
from adapters.config_files import Settings, load_object, read_settings
from adapters.user_config import set_over

_PROVIDER = "gateway"
_API_MODES = {"chat": "chat_completions", "responses": "codex_responses", "messages": "anthropic_messages"}
"""hermes's names for the wire formats."""


class Model(Settings):
    """`model`."""

    max_tokens: int | None = None
    """Most tokens of a reply; None means the provider's own limit."""
    context_length: int = 200_000
    """Tokens; set here because hermes would otherwise look it up on the network."""


class Agent(Settings):
    """`agent`."""

    reasoning_effort: Literal["", "none", "minimal", "low", "medium", "high", "xhigh"] = ""
    api_max_retries: int = 3
    """How often a failed request is retried."""


class Terminal(Settings):
    """`terminal`."""

    timeout: int = 180
    """Seconds that a command may take if the model gives no timeout."""


class Compression(Settings):
    """`compression`: older messages are summarized when the context fills up."""

    enabled: bool = True
    threshold: float = 0.5
    """As a share of the context length."""


class HermesSettings(Settings):
    """A whole file."""

    model: Model = Field(default_factory=Model)
    agent: Agent = Field(default_factory=Agent)
    terminal: Terminal = Field(default_factory=Terminal)
    compression: Compression = Field(default_factory=Compression)


def make_config(file: Path, task: Task, shell_init_files: list[str]) -> bytes:
    """The content of hermes's config file for one task.

    Args:
        file: the settings; with the gateway off, a config of hermes's own.
        task: the model and its address, the number of rounds.
        shell_init_files: what the terminal tool's shell sources when it starts.

    Raises:
        BadOptionError: the file is not YAML, or sets something that is not a setting.
    """
    config = _own(file, task) if task.base_url is None else _rendered(file, task)
    fixed = {
        "agent": {"max_turns": task.max_turns},
        "terminal": {
            "backend": "local",
            "cwd": task.workdir,
            # in a container hermes gives its shell a HOME of its own, without what the image's toolchains keep
            # there
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
    return yaml.safe_dump(set_over(config, fixed), sort_keys=False).encode()


def _own(file: Path, task: Task) -> dict[str, Any]:
    """The user's own config, with the task's model if it names one."""
    own = load_object(file)
    if isinstance(own.get("model"), str):
        own["model"] = {"default": own["model"]}
    return set_over(own, {"model": {"default": task.model}} if task.model else {})


def _rendered(file: Path, task: Task) -> dict[str, Any]:
    settings = read_settings(file, HermesSettings)
    window = task.context_window or settings.model.context_length
    provider: dict[str, Any] = {
        "name": _PROVIDER,
        "base_url": task.base_url,
        "api_key": "placeholder",
        "api_mode": _API_MODES[task.api],
        "model": task.model,
        "discover_models": False,
        "models": {task.model: {"context_length": window}},
    }
    model = {"default": task.model, "provider": f"custom:{_PROVIDER}", "context_length": window}
    if settings.model.max_tokens is not None:
        model["max_tokens"] = settings.model.max_tokens
    return {**settings.model_dump(), "model": model, "custom_providers": [provider]}

"""Model providers: who they are, how they are reached, and where their key is. No key is in here, or in its files.

They are declared in `claw_configs/providers.yaml`, a mapping from a provider's name to a `Provider`'s fields. A
user's own `providers.local.yaml` beside it is read after it; a provider that it declares replaces the one of the
same name as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from gateway.headers import CREDENTIALS
from gateway.models import Api
from gateway.transforms import Transforms

LOCAL_SUFFIX = ".local"
"""`providers.yaml` has its user's own `providers.local.yaml` beside it."""
PLACEHOLDERS = (
    "your",
    "changeme",
    "change-me",
    "placeholder",
    "replace",
    "example",
    "dummy",
    "todo",
    "xxx",
    "<",
    "$",
)
"""What the beginning of a key that nobody has filled in looks like, after a common prefix as `sk-`."""
DEFAULT_WINDOW = "default"
"""The key of `Provider.context_window` that stands for every model that it doesn't name."""


class ProviderConfigError(ValueError):
    """A provider is not declared as it must be, or its key can't be used; the message says what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RateLimit(_Strict):
    """What the provider lets an account ask for; kept here, so that no claw meets it. None: no limit."""

    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)


class Prices(_Strict):
    """US dollars per million tokens, of the four classes of `TokenCounts`; None is unknown, never 0."""

    input: Decimal | None = Field(default=None, ge=0)
    cache_read: Decimal | None = Field(default=None, ge=0)
    cache_write: Decimal | None = Field(default=None, ge=0)
    output: Decimal | None = Field(default=None, ge=0)


class Provider(_Strict):
    """One provider, as it is declared."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """What stands before the slash in `--model <provider>/<model>`."""
    base_url: str
    """What comes before `/chat/completions`, `/responses` and `/messages`."""
    apis: tuple[Api, ...] = Field(default=("chat",), min_length=1)
    """The wire formats that it answers, best first."""
    auth: Literal["bearer", "x-api-key"] = "bearer"
    """The header that carries the key."""
    key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable, on the host, that holds the key."""
    key_file: Path | None = None
    """A file, on the host, that holds the key and nothing else; `~` is the user's home."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent along with every request; a claw's own headers of these names are not."""
    transforms: tuple[str, ...] = ()
    """The names of the changes that its requests and replies need (`gateway.transforms`), in order."""
    rate_limit: RateLimit = RateLimit()
    prices: dict[str, Prices] = Field(default_factory=dict)
    """By model; these win over every table."""
    context_window: dict[str, int] = Field(default_factory=dict)
    """Tokens, by model; `default` is for all others."""
    price_provider: str | None = None
    """Its id in genai-prices; None: that of the provider there which has its base URL, if any."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds without a byte after which it counts as hung."""
    retries: int = Field(default=6, ge=0)
    """How often a request is sent once more after a rate limit or an overload."""

    @field_validator("base_url")
    @classmethod
    def _is_a_base(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an http(s) address")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError("an address must hold no query, fragment or credentials")
        _ = parts.port  # raises ValueError for one that is none
        return url.rstrip("/")

    @field_validator("transforms")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        Transforms(names)
        return names

    @field_validator("headers")
    @classmethod
    def _hold_no_credentials(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (name + value).isprintable():
                raise ValueError("a header is one line of text")
            if name.lower() in CREDENTIALS:
                raise ValueError(f"the header {name} is not declared here: the key comes from key_env or key_file")
        return headers

    @field_validator("context_window")
    @classmethod
    def _are_windows(cls, windows: dict[str, int]) -> dict[str, int]:
        if any(window <= 0 for window in windows.values()):
            raise ValueError("a context window is a number of tokens above 0")
        return windows

    @model_validator(mode="after")
    def _has_one_key(self) -> Self:
        if self.key_env and self.key_file:
            raise ValueError("key_env and key_file are two places for one key: keep one")
        return self

    def window_of(self, model: str) -> int | None:
        """The context window of a model, in tokens; None where none is declared."""
        return self.context_window.get(model, self.context_window.get(DEFAULT_WINDOW))


def load_providers(path: Path) -> dict[str, Provider]:
    """Read the declared providers, with the user's own ones beside them.

    Args:
        path: of `providers.yaml`.

    Raises:
        ProviderConfigError: a file can't be read, or declares what is no provider; the message has file and field.
    """
    local = path.with_name(path.stem + LOCAL_SUFFIX + path.suffix)
    declared = _declared(path)
    if local.exists():
        declared |= _declared(local)
    return declared


def _declared(path: Path) -> dict[str, Provider]:
    try:
        content: Any = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProviderConfigError(f"{path} can't be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ProviderConfigError(f"{path} is no mapping from names to providers")
    found = {}
    for name, fields in content.items():
        if not isinstance(fields, Mapping):
            raise ProviderConfigError(f"{path}: {name} is no mapping")
        try:
            found[str(name)] = Provider.model_validate({"name": str(name), **fields})
        except ValidationError as error:
            raise ProviderConfigError(f"{path}: {_told(str(name), error)}") from error
    return found


def _told(name: str, error: ValidationError) -> str:
    """The first mistake, without the value: someone may have put a key where its variable's name belongs."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join([name, *(str(part) for part in first["loc"])])
    return f"{where}: {first['msg']}"


def provider_of(model: str, providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    """The provider that `--model` names, and its model, whose name may hold slashes.

    Raises:
        ProviderConfigError: no such provider is declared, or no model is named; the message lists the providers.
    """
    name, _, rest = model.partition("/")
    known = ", ".join(sorted(providers)) or "none"
    if name not in providers:
        raise ProviderConfigError(f"{model!r} names no provider that is declared; known are: {known}")
    if not rest or rest != rest.strip():
        raise ProviderConfigError(f"{model!r} names no model of {name}: write {name}/<model>")
    return providers[name], rest


def read_key(provider: Provider, environment: Mapping[str, str] = os.environ) -> SecretStr | None:
    """The provider's key, or None for one that is declared without.

    Raises:
        ProviderConfigError: the key is missing, empty, no single word, or was never filled in. Its text is in no
            message.
    """
    if provider.key_env:
        place = f"the environment variable {provider.key_env}"
        text = environment.get(provider.key_env)
    elif provider.key_file:
        place = f"the file {provider.key_file}"
        try:
            text = provider.key_file.expanduser().read_text("utf-8")
        except FileNotFoundError:
            text = None
        except (OSError, UnicodeDecodeError) as error:
            raise ProviderConfigError(f"the key of {provider.name} can't be read from {place}: {error}") from error
    else:
        return None
    needed = f"{provider.name} needs its key in {place}"
    if text is None:
        raise ProviderConfigError(f"{needed}, which is not there")
    key = text.strip()
    if not key:
        raise ProviderConfigError(f"{needed}, which is empty")
    if not key.isascii() or not key.isprintable() or any(char.isspace() for char in key):
        raise ProviderConfigError(f"{needed}: what is there is no key, as it holds spaces or odd characters")
    if _is_placeholder(key):
        raise ProviderConfigError(f"{needed}, which still holds a placeholder")
    return SecretStr(key)


def _is_placeholder(key: str) -> bool:
    word = key.lower().removeprefix("sk-").removeprefix("or-v1-").removeprefix("ant-").lstrip("-_[{")
    return word.startswith(PLACEHOLDERS) or len(set(word)) <= 1

"""Model providers: how they are reached, and where their keys are. The files that declare them hold no keys.

They are declared in `claw_configs/providers.yaml`, a mapping from a provider's name to the fields of `Provider`. The
user's own `providers.local.yaml` beside it is read after it; a provider declared there replaces the one of the same
name as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator

from common.errors import ClawbenchError
from gateway.case_models import Api, Strict
from gateway.headers import CREDENTIALS
from gateway.transforms import Transforms

LOCAL_SUFFIX = ".local"
"""The user's own file beside `providers.yaml` is `providers.local.yaml`."""
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
"""How a placeholder begins, after a common prefix such as `sk-`."""
DEFAULT_WINDOW = "default"
"""The key of `Provider.context_window` for every model that is not named there."""


class ProviderConfigError(ClawbenchError, ValueError):
    """A provider's declaration or prices are wrong, or its key cannot be used; the message says what to do."""


class RateLimit(Strict):
    """What the provider allows an account; enforced here, so that no claw meets it. None: no limit."""

    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)


class Prices(Strict):
    """US dollars per million tokens, of the classes of `TokenCounts`; None is unknown, never 0."""

    input: Decimal | None = Field(default=None, ge=0)
    cache_read: Decimal | None = Field(default=None, ge=0)
    cache_write: Decimal | None = Field(default=None, ge=0)
    cache_write_1h: Decimal | None = Field(default=None, ge=0)
    """Of the tokens that are kept for an hour."""
    output: Decimal | None = Field(default=None, ge=0)


class Provider(Strict):
    """One provider, as declared."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The part before the slash in `--model <provider>/<model>`."""
    base_url: str
    """The URL before `/chat/completions`, `/responses` and `/messages`."""
    apis: tuple[Api, ...] = Field(default=("chat",), min_length=1)
    """The wire formats that it speaks, best first."""
    auth: Literal["bearer", "x-api-key"] = "bearer"
    """The header that carries the key."""
    key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable, on the host, that holds the key."""
    key_file: Path | None = None
    """A file, on the host, that holds only the key; `~` is the user's home."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request, in place of a claw's own headers of these names."""
    transforms: tuple[str, ...] = ()
    """The names of the transforms that its requests need (`gateway.transforms`), in order."""
    rate_limit: RateLimit = RateLimit()
    prices: dict[str, Prices] = Field(default_factory=dict)
    """By model; they take precedence over every table."""
    context_window: dict[str, int] = Field(default_factory=dict)
    """Tokens, by model; `default` is for all other models."""
    price_provider: str | None = None
    """Its id in genai-prices; None: it is found there by its base URL."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds without a byte after which it counts as hung."""
    retries: int = Field(default=6, ge=0)
    """How often a request is sent again after a rate limit or an overload."""

    @field_validator("base_url")
    @classmethod
    def _is_a_base(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an http(s) URL")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError("a URL must not hold a query, a fragment or credentials")
        _ = parts.port  # raises ValueError if it is not a number
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
                raise ValueError(f"the header {name} cannot be declared: the key comes from key_env or key_file")
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
            raise ValueError("key_env and key_file are both set: keep one")
        return self

    def window_of(self, model: str) -> int | None:
        """The context window of a model, in tokens; None if none is declared."""
        return self.context_window.get(model, self.context_window.get(DEFAULT_WINDOW))


def load_providers(path: Path) -> dict[str, Provider]:
    """Read the declared providers, including the user's own.

    Args:
        path: of `providers.yaml`.

    Raises:
        ProviderConfigError: a file cannot be read or is wrong; the message names the file and the field.
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
        raise ProviderConfigError(f"{path} is not a mapping from names to providers")
    found = {}
    for name, fields in content.items():
        if not isinstance(fields, Mapping):
            raise ProviderConfigError(f"{path}: {name} is not a mapping")
        try:
            found[str(name)] = Provider.model_validate({"name": str(name), **fields})
        except ValidationError as error:
            raise ProviderConfigError(f"{path}: {_told(str(name), error)}") from error
    return found


def _told(name: str, error: ValidationError) -> str:
    """The first mistake, without the value: it may be a key in place of its variable's name."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join([name, *(str(part) for part in first["loc"])])
    return f"{where}: {first['msg']}"


def provider_of(model: str, providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    """The provider that `--model` names, and its model, whose name may contain slashes.

    Raises:
        ProviderConfigError: no such provider is declared, or no model is named; the message lists the providers.
    """
    name, _, rest = model.partition("/")
    known = ", ".join(sorted(providers)) or "none"
    if name not in providers:
        raise ProviderConfigError(f"{model!r} names no declared provider; known are: {known}")
    if not rest or rest != rest.strip():
        raise ProviderConfigError(f"{model!r} names no model of {name}: write {name}/<model>")
    return providers[name], rest


def read_key(provider: Provider, environment: Mapping[str, str] = os.environ) -> SecretStr | None:
    """The provider's key; None if it needs none.

    Raises:
        ProviderConfigError: the key is missing, empty, not a single word, or a placeholder. No message holds its
            text.
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
        raise ProviderConfigError(f"{needed}: the text there is not a key, as it holds spaces or odd characters")
    if _is_placeholder(key):
        raise ProviderConfigError(f"{needed}, which still holds a placeholder")
    return SecretStr(key)


def _is_placeholder(key: str) -> bool:
    word = key.lower().removeprefix("sk-").removeprefix("or-v1-").removeprefix("ant-").lstrip("-_[{")
    return word.startswith(PLACEHOLDERS) or len(set(word)) <= 1

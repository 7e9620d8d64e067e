"""The headers that pass between a claw and a provider. Both directions have a list: all others are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from multidict import CIMultiDict

CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}
)
"""Headers that carry a key: a claw's own are placeholders at best, and never leave the host."""

_REQUEST = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "anthropic-version",
        "content-type",
        "user-agent",
    }
)
_REQUEST_PREFIXES = ("openai-", "x-stainless-")

_REPLY = frozenset(
    {
        "cache-control",
        "content-language",
        "content-type",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    }
)
_REPLY_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-", "openai-", "x-generation-")

_QUERY = frozenset({"beta"})
"""URL parameters that pass: Anthropic's clients ask for beta features this way."""


def for_provider(
    headers: Mapping[str, str], *, auth: str, key: str | None, declared: Mapping[str, str]
) -> CIMultiDict[str]:
    """The headers of a claw's request as they go to the provider.

    Args:
        headers: of the claw's request.
        auth: `bearer` or `x-api-key`.
        key: the provider's; None: it needs none.
        declared: headers from the provider's declaration; they replace the claw's.
    """
    passed = CIMultiDict(pair for pair in headers.items() if _is_listed(pair[0], _REQUEST, _REQUEST_PREFIXES))
    # a compressed reply can be neither metered nor searched for keys
    passed["Accept-Encoding"] = "identity"
    for name, value in declared.items():
        passed[name] = value
    if key is not None:
        if auth == "bearer":
            passed["Authorization"] = f"Bearer {key}"
        else:
            passed["X-Api-Key"] = key
    return passed


def for_claw(headers: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    """The headers of a provider's reply as they go to the claw."""
    return CIMultiDict(pair for pair in headers if _is_listed(pair[0], _REPLY, _REPLY_PREFIXES))


def query_for_provider(query: Mapping[str, str]) -> dict[str, str]:
    """The URL parameters that go to the provider; none of them carries a key."""
    return {name: value for name, value in query.items() if name in _QUERY}


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether a request's or a reply's body is compressed."""
    return headers.get("Content-Encoding", "").strip().lower() not in ("", "identity")


def _is_listed(name: str, names: frozenset[str], prefixes: tuple[str, ...]) -> bool:
    lower = name.lower()
    return lower not in CREDENTIALS and (lower in names or lower.startswith(prefixes))

"""Which headers pass between a claw and a provider. Both ways they are listed: what is not named stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from multidict import CIMultiDict

CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}
)
"""What carries a key: a claw's own are a placeholder at best, and never leave the host."""

_REQUEST = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "anthropic-version",
        "content-encoding",
        "content-type",
        "user-agent",
    }
)
_REQUEST_PREFIXES = ("openai-", "x-stainless-")
_UNDERSTOOD = ("gzip", "x-gzip", "deflate", "br", "zstd", "identity")
"""The encodings of a reply that can be read here; others are not offered to the provider."""

_REPLY = frozenset(
    {
        "cache-control",
        "content-encoding",
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
"""Parameters of a request's address that pass: Anthropic's clients ask for its beta features so."""


def for_provider(
    headers: Mapping[str, str], *, auth: str, key: str | None, declared: Mapping[str, str]
) -> CIMultiDict[str]:
    """The headers of a claw's request as they go to the provider.

    Args:
        headers: of the claw's request.
        auth: `bearer` or `x-api-key`.
        key: the provider's; None: it needs none.
        declared: what the provider's declaration adds, or sets in place of the claw's.
    """
    passed: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if _is_listed(name, _REQUEST, _REQUEST_PREFIXES):
            passed.add(name, value)
        elif name.lower() == "accept-encoding":
            passed.add(name, _understood(value))
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
    """The parameters of a request's address that go to the provider; a key is in none of them."""
    return {name: value for name, value in query.items() if name in _QUERY}


def _is_listed(name: str, names: frozenset[str], prefixes: tuple[str, ...]) -> bool:
    lower = name.lower()
    return lower not in CREDENTIALS and (lower in names or lower.startswith(prefixes))


def _understood(accepted: str) -> str:
    """An Accept-Encoding without what can't be read here; unchanged where all of it can."""
    offers = [offer.strip() for offer in accepted.split(",")]
    kept = [offer for offer in offers if offer.partition(";")[0].strip().lower() in _UNDERSTOOD]
    return accepted if len(kept) == len(offers) else ", ".join(kept) or "identity"

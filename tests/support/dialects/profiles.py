"""The providers: how each tells usage, keeps a connection alive, words an error, and what it insists on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gateway.case_models import Api
from support.dialects import charges
from support.dialects.charges import AutomaticCache, MarkedCache, Measure, NoCache, UsageShape


@dataclass(frozen=True)
class Dialect:
    """One provider's way of speaking."""

    name: str
    apis: tuple[Api, ...]
    usage: UsageShape
    cache: Callable[[], AutomaticCache | MarkedCache | NoCache]
    comment: bytes = b""
    """The SSE comment that keeps a stream alive, whole; Anthropic sends `ping` events instead."""
    idle: bytes = b""
    """What keeps a reply alive that does not stream: DeepSeek sends empty lines before the JSON."""
    thoughts: str = ""
    """The key under which a chat message has the model's reasoning; empty: it is not shown."""
    insists: bool = False
    """Whether reasoning must be sent back with the tool calls that it led to."""
    usage_unasked: bool = False
    """Whether a chat stream tells usage without `stream_options.include_usage`."""
    prices: tuple[Decimal, Decimal, Decimal, Decimal] | None = None
    """USD per million tokens: input, cache read, cache write, output; for providers that tell the cost."""

    def measure(self) -> Measure:
        """A fresh cache's counting."""
        return self.cache().measure

    def cost(self, tokens: tuple[int, int, int, int]) -> Decimal | None:
        if self.prices is None:
            return None
        return sum((n * price for n, price in zip(tokens, self.prices, strict=True)), Decimal(0)) / 1_000_000

    def error(self, status: int, message: str, api: Api) -> dict[str, Any]:
        """An error's body."""
        if api == "messages":
            kind = _ANTHROPIC_KINDS.get(status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_0"}
        if self.name == "openrouter":
            return {"error": {"code": status, "message": message}, "user_id": "user_0"}
        if self.name == "vllm":
            return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}
        kind, code = _OPENAI_KINDS.get(status, ("server_error", None))
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


_ANTHROPIC_KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_OPENAI_KINDS: Mapping[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "overloaded"),
}

OPENAI = Dialect("openai", ("chat", "responses"), charges.openai_usage, AutomaticCache)
ANTHROPIC = Dialect("anthropic", ("messages",), charges.anthropic_usage, MarkedCache)
OPENROUTER = Dialect(
    "openrouter",
    ("chat", "responses", "messages"),
    charges.openrouter_usage,
    AutomaticCache,
    comment=b": OPENROUTER PROCESSING\n\n",
    thoughts="reasoning",
    usage_unasked=True,
    prices=(Decimal("0.5"), Decimal("0.05"), Decimal("0.625"), Decimal("1.5")),
)
DEEPSEEK = Dialect(
    "deepseek",
    ("chat",),
    charges.deepseek_usage,
    AutomaticCache,
    comment=b": keep-alive\n\n",
    idle=b"\n",
    thoughts="reasoning_content",
    insists=True,
)
DASHSCOPE = Dialect("dashscope", ("chat",), charges.dashscope_usage, MarkedCache)
VLLM = Dialect("vllm", ("chat",), charges.plain_usage, NoCache)

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (OPENAI, ANTHROPIC, OPENROUTER, DEEPSEEK, DASHSCOPE, VLLM)
}

"""What a provider refuses, and with which status: as its documents say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from gateway.case_models import Api
from support.dialects.delivery import Trouble

if TYPE_CHECKING:
    from support.dialects.profiles import Dialect
    from support.dialects.received import Received

PATHS: Mapping[str, Api] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
MODELS_PATH = "/v1/models"
THOUGHTS = "I think about caf\u00e9s, \u65e5\u672c\u8a9e and what was asked. "


def refusal(dialect: Dialect, received: Received, *, key: str, models: Collection[str]) -> Trouble | None:
    """Why a request is not answered; None: it is."""
    bearer = (received.header("Authorization") or "").removeprefix("Bearer ")
    # Anthropic takes either header; its own client sends X-Api-Key up to version 1 and Authorization from 2 on.
    own = received.header("X-Api-Key") if dialect.name == "anthropic" else None
    if {given for given in (bearer, own) if given} != {key}:
        return Trouble(401, "Incorrect API key provided.")
    if received.path == MODELS_PATH:
        return None
    api = PATHS.get(received.path)
    if received.method != "POST" or api not in dialect.apis:
        return Trouble(404, f"Invalid URL ({received.method} {received.path})")
    body = received.json
    if body.get("model") not in models:
        return Trouble(404, "The model does not exist or you do not have access to it.")
    return _anthropic(dialect, received) if api == "messages" else _deepseek(dialect, body)


def _anthropic(dialect: Dialect, received: Received) -> Trouble | None:
    if dialect.name == "anthropic" and not received.header("anthropic-version"):
        return Trouble(400, "anthropic-version: header is required")
    if not isinstance(received.json.get("max_tokens"), int):
        return Trouble(400, "max_tokens: Field required")
    if received.header("anthropic-version") == "2026-10-21" and (
        sampling := [name for name in ("temperature", "top_p", "top_k") if name in received.json]
    ):
        return Trouble(400, f"{sampling[0]}: Extra inputs are not permitted")
    return None


def _deepseek(dialect: Dialect, body: Mapping[str, Any]) -> Trouble | None:
    """Its guide to the thinking mode: reasoning that led to tool calls comes back whole, or it is a 400."""
    if not dialect.insists or not thinks(body):
        return None
    for index, message in enumerate(body.get("messages") or []):
        if message.get("tool_calls") and message.get("reasoning_content") != THOUGHTS:
            about = f"messages[{index}]"
            return Trouble(400, f"The reasoning_content in the thinking mode must be passed back ({about}).")
    return None


def thinks(body: Mapping[str, Any]) -> bool:
    """Whether a request is answered with reasoning: DeepSeek's thinking mode is on unless switched off."""
    thinking = body.get("thinking")
    return not (isinstance(thinking, Mapping) and thinking.get("type") == "disabled")

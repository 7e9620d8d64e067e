"""Errors that a provider sends with status 200, as the reply had begun."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.metering_replies import REPLIES, RESPONSE
from support.metering_world import chunk, events, read

from gateway.case_models import Api

STREAMS = [reply for reply in REPLIES if reply.streaming]

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
"""docs.claude.com/en/docs/build-with-claude/streaming#error-events"""


def openrouter_error(code: int | str) -> dict[str, Any]:
    """openrouter.ai/docs/api-reference/streaming#handling-errors-during-streaming"""
    return chunk({"content": ""}, "error", error={"code": code, "message": "Provider disconnected unexpectedly"})


@pytest.mark.parametrize(
    ("api", "error", "ending"),
    [
        ("messages", OVERLOADED, "rate_limited"),
        ("messages", {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, "rate_limited"),
        ("messages", {"type": "error", "error": {"type": "api_error", "message": "x"}}, "server_error"),
        ("chat", openrouter_error("server_error"), "server_error"),
        ("chat", openrouter_error(502), "server_error"),
        ("chat", openrouter_error(429), "rate_limited"),
        ("chat", {"error": {"type": "engine_overloaded_error", "message": "x"}}, "rate_limited"),
        ("chat", {"error": {"message": "x", "type": "tokens", "code": "rate_limit_exceeded"}}, "rate_limited"),
        ("chat", {"error": "went wrong"}, "server_error"),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "x"}, "rate_limited"),
        ("responses", {"type": "error", "code": "server_error", "message": "x", "param": None}, "server_error"),
        (
            "responses",
            {
                "type": "response.failed",
                "response": {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "x"}},
            },
            "server_error",
        ),
    ],
)
def test_an_error_inside_a_stream(api: Api, error: dict[str, Any], ending: str) -> None:
    start = next(reply for reply in STREAMS if reply.api == api).body.partition(b"\n\n")[0] + b"\n\n"
    for complete in (True, False):
        metered = read(api, start + events(error), complete=complete)
        assert metered.ending == ending
        assert metered.error


def test_an_error_event_of_an_unknown_shape_is_an_error() -> None:
    assert read("chat", b'event: error\ndata: {"message": "boom", "code": 529}\n\n').ending == "rate_limited"
    assert read("messages", b'event: error\ndata: {"detail": "boom"}\n\n').ending == "server_error"


@pytest.mark.parametrize(
    ("api", "body", "ending"),
    [
        # openrouter.ai/docs/api-reference/errors: status 200, as the model had begun
        ("chat", {"error": {"code": 502, "message": "down"}}, "server_error"),
        ("chat", {"error": {"code": 429, "message": "slow"}}, "rate_limited"),
        ("chat", {"choices": [{"error": {"code": 502, "message": "down"}, "message": {}}]}, "server_error"),
        ("messages", OVERLOADED, "rate_limited"),
        (
            "responses",
            {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "x"}},
            "server_error",
        ),
    ],
)
def test_an_error_in_place_of_a_reply(api: Api, body: dict[str, Any], ending: str) -> None:
    assert read(api, json.dumps(body).encode(), streaming=False).ending == ending

"""Replies as the providers document them, and what each is."""

from __future__ import annotations

import json
from decimal import Decimal

from gateway.case_models import TokenCounts
from gateway.metering.reader import Metered
from support.metering_world import CALL, Reply, chunk, completion, events

_OPENAI_CHAT = Reply(
    "OpenAI chat, stream with a late usage chunk: platform.openai.com/docs/api-reference/chat-streaming",
    "chat",
    True,
    events(
        chunk({"role": "assistant", "content": "", "refusal": None}, usage=None),
        chunk({"content": "Grüße, 世界 🦞"}, usage=None),
        chunk({"tool_calls": [CALL]}, usage=None),
        chunk({}, "tool_calls", usage=None),
        {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "model": "m-1",
            "choices": [],
            "usage": {
                "prompt_tokens": 2006,
                "completion_tokens": 300,
                "total_tokens": 2306,
                "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 256, "accepted_prediction_tokens": 0},
            },
        },
        done=True,
    ),
    Metered(
        "ok",
        TokenCounts(input=86, cache_read=1920, cache_write=None, output=300, reasoning=256),
        stop_reason="tool_calls",
        model="m-1",
    ),
)

_OPENROUTER = Reply(
    "OpenRouter, comments while it waits: openrouter.ai/docs/api-reference/streaming, "
    ".../use-cases/usage-accounting",
    "chat",
    True,
    b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
    + events(
        chunk({"role": "assistant", "content": "Hi"}),
        chunk({"content": ""}, "stop", native_finish_reason="end_turn"),
        chunk(
            {"role": "assistant", "content": ""},
            usage={
                "completion_tokens": 2,
                "completion_tokens_details": {"reasoning_tokens": 0},
                "cost": 0.95,
                "cost_details": {"upstream_inference_cost": 19},
                "prompt_tokens": 194,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 100, "audio_tokens": 0},
                "total_tokens": 196,
            },
        ),
        done=True,
    ),
    Metered(
        "ok",
        TokenCounts(input=94, cache_read=0, cache_write=100, output=2, reasoning=0),
        told_cost=Decimal("0.95"),
        stop_reason="stop",
        model="m-1",
    ),
)

_MOONSHOT = Reply(
    "Moonshot, usage within the last choice, no [DONE]: platform.moonshot.ai/docs/api/chat",
    "chat",
    True,
    events(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hello"}),
        {
            "id": "c-1",
            "model": "m-1",
            "choices": [
                {
                    "index": 0,
                    "delta": {},
                    "finish_reason": "stop",
                    "usage": {
                        "prompt_tokens": 19,
                        "completion_tokens": 13,
                        "total_tokens": 32,
                        "cached_tokens": 10,
                    },
                }
            ],
        },
        end="\r\n",
    ),
    Metered(
        "ok",
        TokenCounts(input=9, cache_read=10, cache_write=None, output=13),
        stop_reason="stop",
        model="m-1",
    ),
)

_MESSAGES_HEAD = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-1",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 472,
            "cache_creation_input_tokens": 556,
            "cache_read_input_tokens": 1800,
            "cache_creation": {"ephemeral_5m_input_tokens": 456, "ephemeral_1h_input_tokens": 100},
            "output_tokens": 2,
        },
    },
}

_ANTHROPIC = Reply(
    "Anthropic messages, stream with pings and a tool: docs.claude.com/en/docs/build-with-claude/streaming, "
    ".../prompt-caching",
    "messages",
    True,
    events(
        _MESSAGES_HEAD,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße 🦞"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"c": "ls"}'},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 89},
        },
        {"type": "message_stop"},
        named=True,
    ),
    Metered(
        "ok",
        TokenCounts(input=472, cache_read=1800, cache_write=556, output=89, cache_write_1h=100),
        stop_reason="tool_use",
        model="claude-1",
    ),
)

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "gpt-1",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": []},
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi there!", "annotations": []}],
        },
    ],
    "usage": {
        "input_tokens": 328,
        "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 20},
        "output_tokens": 52,
        "output_tokens_details": {"reasoning_tokens": 40},
        "total_tokens": 380,
    },
}

_RESPONSES_USAGE = TokenCounts(input=8, cache_read=300, cache_write=20, output=52, reasoning=40)

_RESPONSES = Reply(
    "OpenAI responses, stream: platform.openai.com/docs/api-reference/responses-streaming",
    "responses",
    True,
    events(
        {
            "type": "response.created",
            "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None},
        },
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hi there!"},
        {"type": "response.completed", "response": RESPONSE},
        named=True,
    ),
    Metered("ok", _RESPONSES_USAGE, stop_reason="completed", model="gpt-1"),
)

_RESPONSE = Reply(
    "OpenAI responses: platform.openai.com/docs/api-reference/responses/object",
    "responses",
    False,
    json.dumps(RESPONSE).encode(),
    Metered("ok", _RESPONSES_USAGE, stop_reason="completed", model="gpt-1"),
)

_DASHSCOPE = Reply(
    "DashScope, explicit cache: help.aliyun.com/zh/model-studio/context-cache",
    "chat",
    False,
    json.dumps(
        completion(
            {"content": "我是通义千问。"},
            usage={
                "prompt_tokens": 18628,
                "completion_tokens": 344,
                "total_tokens": 18972,
                "prompt_tokens_details": {
                    "cached_tokens": 0,
                    "cache_creation_input_tokens": 18613,
                    "cache_creation": {"ephemeral_5m_input_tokens": 18613},
                    "cache_type": "ephemeral",
                },
            },
        ),
        ensure_ascii=False,
    ).encode(),
    Metered(
        "ok",
        TokenCounts(input=15, cache_read=0, cache_write=18613, output=344),
        stop_reason="stop",
        model="m-1",
    ),
)

_VLLM = Reply(
    "vLLM without --enable-prompt-tokens-details: docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    "chat",
    False,
    json.dumps(
        completion(
            {"content": None, "tool_calls": [CALL], "reasoning_content": None},
            "tool_calls",
            usage={
                "prompt_tokens": 30,
                "total_tokens": 37,
                "completion_tokens": 7,
                "prompt_tokens_details": None,
            },
        )
    ).encode(),
    Metered(
        "ok",
        TokenCounts(input=30, cache_read=None, cache_write=None, output=7),
        stop_reason="tool_calls",
        model="m-1",
    ),
)

REPLIES = (
    _OPENAI_CHAT,
    _OPENROUTER,
    _MOONSHOT,
    _ANTHROPIC,
    _RESPONSES,
    _RESPONSE,
    _DASHSCOPE,
    _VLLM,
)

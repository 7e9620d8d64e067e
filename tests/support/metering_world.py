"""Making and reading replies of the three wire formats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gateway.case_models import Api
from gateway.metering.reader import Metered, ReplyReader


@dataclass(frozen=True)
class Reply:
    name: str
    """Whose, and the document that has the shape."""
    api: Api
    streaming: bool
    body: bytes
    metered: Metered


def events(*objects: dict[str, Any], named: bool = False, end: str = "\n", done: bool = False) -> bytes:
    lines = []
    for data in objects:
        if named:
            lines.append(f"event: {data['type']}")
        lines += [f"data: {json.dumps(data, ensure_ascii=False)}", ""]
    if done:
        lines += ["data: [DONE]", ""]
    return "".join(line + end for line in lines).encode()


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice], **more}


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion", "model": "m-1", "choices": [choice], **more}


def read(api: Api, body: bytes, *, streaming: bool = True, complete: bool = True) -> Metered:
    reader = ReplyReader(api, streaming=streaming)
    reader.feed(body)
    return reader.finish(complete=complete)


def cut(body: bytes, places: list[int]) -> list[bytes]:
    """The bytes in parts, some maybe empty."""
    ends = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "shell", "arguments": '{"c": "ls"}'}}

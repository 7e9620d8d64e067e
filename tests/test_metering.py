"""Whole replies through the reader: as documented, compressed, cut anywhere, broken off."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from metering_replies import REPLIES
from metering_world import Reply, chunk, completion, cut, events, read

from gateway.metering import reader
from gateway.metering.reader import Metered, ReplyReader
from gateway.models import Api


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def several(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda body: pack(body[: len(body) // 2]) + pack(body[len(body) // 2 :])


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", lambda body: body),
    "identity": ("identity", lambda body: body),
    "gzip": ("gzip", gzip.compress),
    "gzip members": ("x-GZIP", several(gzip.compress)),
    "gzip padded": ("gzip", lambda body: gzip.compress(body) + b"\0" * 9),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
    "zstd frames": ("zstd", several(zstandard.compress)),
    "two": ("gzip, br", lambda body: brotli.compress(gzip.compress(body))),
}


def follow(reply: Reply, encoding: str, parts: list[bytes]) -> tuple[Metered, bytes, list[dict[str, Any]]]:
    heard: list[dict[str, Any]] = []
    following = ReplyReader(reply.api, streaming=reply.streaming, encoding=encoding, listeners=[heard.append])
    decoded = b"".join([following.feed(part) for part in parts])
    return following.finish(complete=True), decoded, heard


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.name)
def test_a_documented_reply(reply: Reply, packing: str) -> None:
    encoding, pack = PACKERS[packing]
    body = pack(reply.body)
    plain = follow(reply, "identity", [reply.body])
    assert plain[0] == reply.metered
    assert follow(reply, encoding, [body]) == plain
    assert follow(reply, encoding, [body[place : place + 1] for place in range(len(body))]) == plain
    assert plain[1] == reply.body
    assert plain[2]


@given(
    reply=st.sampled_from(REPLIES),
    packing=st.sampled_from(sorted(PACKERS)),
    places=st.lists(st.integers(0, 5000), max_size=12),
)
def test_any_cut_gives_the_same(reply: Reply, packing: str, places: list[int]) -> None:
    encoding, pack = PACKERS[packing]
    body = pack(reply.body)
    assert follow(reply, encoding, cut(body, places)) == follow(reply, encoding, [body])


@given(
    reply=st.sampled_from(REPLIES),
    packing=st.sampled_from(sorted(PACKERS)),
    places=st.lists(st.integers(0, 5000), max_size=8),
    flips=st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 255)), max_size=3),
    end=st.integers(0, 5000),
    complete=st.booleans(),
)
def test_any_cut_of_a_damaged_reply_gives_the_same(
    *, reply: Reply, packing: str, places: list[int], flips: list[tuple[int, int]], end: int, complete: bool
) -> None:
    encoding, pack = PACKERS[packing]
    body = bytearray(pack(reply.body))
    for place, mask in flips:
        body[place % len(body)] ^= mask
    del body[end + 1 :]
    found = []
    for parts in (cut(bytes(body), places), [bytes(body)]):
        following = ReplyReader(reply.api, streaming=reply.streaming, encoding=encoding)
        for part in parts:
            following.feed(part)
        found.append(following.finish(complete=complete))
    assert found[0] == found[1]


@pytest.mark.parametrize("reply", [reply for reply in REPLIES if reply.streaming], ids=lambda reply: reply.name)
def test_a_stream_is_decoded_as_it_comes(reply: Reply) -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    following = ReplyReader(reply.api, streaming=True, encoding="gzip")
    for line in reply.body.splitlines(keepends=True):
        assert following.feed(packer.compress(line) + packer.flush(zlib.Z_SYNC_FLUSH)) == line
    following.feed(packer.flush())
    assert following.finish(complete=True) == reply.metered


@pytest.mark.parametrize("packing", ["gzip", "zlib", "raw deflate", "br", "zstd"])
def test_a_compressed_reply_that_is_cut_off_is_dropped(packing: str) -> None:
    encoding, pack = PACKERS[packing]
    body = pack(json.dumps(completion({"content": "Hi " * 500})).encode())
    assert read("chat", body, streaming=False, encoding=encoding).ending == "ok"
    assert read("chat", body[: len(body) // 2], streaming=False, encoding=encoding).ending == "dropped"
    assert read("chat", body[:1], streaming=False, encoding=encoding).ending == "dropped"


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "compress", "gzip, aes128gcm"])
def test_bytes_that_are_not_of_their_encoding_are_malformed_and_tell_nothing(encoding: str) -> None:
    metered = read("chat", REPLIES[0].body, encoding=encoding)
    assert metered == Metered("malformed", error=metered.error)
    assert metered.error


@pytest.mark.parametrize("packing", ["zlib", "br"])
def test_more_than_the_encoded_stream_is_malformed(packing: str) -> None:
    encoding, pack = PACKERS[packing]
    body = pack(REPLIES[0].body)
    for parts in ([body + b"junk"], [body, b"junk"], [body, b"j", b"unk"]):
        assert follow(REPLIES[0], encoding, parts)[0].ending == "malformed"


def test_a_long_stream_is_not_gathered() -> None:
    piece = events(chunk({"content": "x" * 16_000}))
    following = ReplyReader("chat", streaming=True)
    following.feed(piece)
    tracemalloc.start()
    try:
        for _ in range(100_000_000 // len(piece)):
            following.feed(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    following.feed(events(chunk({}, "stop"), done=True))
    assert following.finish(complete=True).ending == "ok"


def test_a_body_that_is_too_large_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(completion({"content": "x" * 2000})).encode()
    monkeypatch.setattr(reader, "MAX_BODY", 1000)
    metered = read("chat", body, streaming=False)
    assert (metered.ending, metered.usage) == ("malformed", None)
    monkeypatch.setattr(reader, "MAX_BODY", len(body))
    assert read("chat", body, streaming=False).ending == "ok"


def test_what_a_listener_raises_is_not_swallowed() -> None:
    def listen(_: dict[str, Any]) -> None:
        raise LookupError

    following = ReplyReader("chat", streaming=True, listeners=[listen])
    with pytest.raises(LookupError):
        following.feed(REPLIES[0].body)


SHAPE_NAMES = """
    type choices delta message content text tool_calls index finish_reason usage error code model response output
    item status incomplete_details reason x_groq prompt_tokens completion_tokens input_tokens output_tokens
    total_tokens cost prompt_tokens_details cached_tokens cache_creation
"""
NAMES = st.sampled_from(SHAPE_NAMES.split())
WORDS = st.sampled_from(
    ["error", "message_start", "response.completed", "message_delta", "text", "tool_use", "", "stop"]
)
ATOMS = st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.floats(), WORDS)
JSON = st.recursive(
    ATOMS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
APIS: list[Api] = ["chat", "responses", "messages"]


@given(api=st.sampled_from(APIS), objects=st.lists(st.dictionaries(NAMES, JSON, max_size=5), max_size=4))
def test_no_json_is_too_odd(api: Api, objects: list[dict[str, Any]]) -> None:
    streamed = read(api, "".join(f"data: {json.dumps(data)}\n\n" for data in objects).encode())
    bodies = [read(api, json.dumps(data).encode(), streaming=False) for data in objects]
    for metered in (streamed, *bodies):
        assert metered.ending in ("ok", "empty", "malformed", "dropped", "server_error", "rate_limited")
        assert metered.told_cost is None or metered.told_cost >= 0

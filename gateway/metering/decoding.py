"""Content encodings (RFC 9110, 8.4), undone step by step: each step's bytes are given out at once.

Known are gzip (RFC 1952, any number of members), deflate (RFC 1950, and the bare RFC 1951 that some servers send),
br (RFC 7932) and zstd (RFC 8878, any number of frames), alone or one over another.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import brotli
import zstandard


class BrokenEncodingError(ValueError):
    """The bytes are not of the encoding that they claim, or the encoding is not known."""


class Decoder(Protocol):
    """Undoes one encoding."""

    def feed(self, data: bytes) -> bytes:
        """What these bytes add to the content (raises BrokenEncodingError)."""

    def whole(self) -> bool:
        """Whether the encoded stream has come to its own end."""


class _Member(Protocol):
    """One of several compressed streams in a row, as zlib and zstandard offer it."""

    def decompress(self, data: bytes, /) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


class _Members:
    """Compressed streams one after the other."""

    def __init__(self, name: str, new: Callable[[], _Member], *, padding: bytes = b"") -> None:
        self._name = name
        self._new = new
        self._padding = padding
        self._member: _Member | None = None
        self._before = False

    def feed(self, data: bytes) -> bytes:
        parts = []
        while data:
            if self._member is None:
                if self._before and self._padding:
                    data = data.lstrip(self._padding)
                    if not data:
                        break
                self._member = self._new()
            try:
                parts.append(self._member.decompress(data))
            except (zlib.error, zstandard.ZstdError) as error:
                raise BrokenEncodingError(f"the body is not valid {self._name}") from error
            data = b""
            if self._member.eof:
                data, self._member, self._before = self._member.unused_data, None, True
        return b"".join(parts)

    def whole(self) -> bool:
        return self._member is None


class _Deflate:
    """Either form of deflate. The first four bits tell a zlib header (RFC 1950, 2.2): eight is its only method.

    Bare deflate could begin so only with a stored block whose unused bits are set (RFC 1951, 3.2.4), which nobody
    writes.
    """

    def __init__(self) -> None:
        self._members: _Members | None = None

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        if self._members is None:
            wbits = zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS
            self._members = _Members("deflate", lambda: zlib.decompressobj(wbits))
        return self._members.feed(data)

    def whole(self) -> bool:
        return self._members is None or self._members.whole()


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._fed = False

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        self._fed = True
        try:
            return bytes(self._stream.process(data))
        except brotli.error as error:
            raise BrokenEncodingError("the body is not valid br") from error

    def whole(self) -> bool:
        return not self._fed or bool(self._stream.is_finished())


class _Chain:
    """Encodings one over another; none is the identity."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes) -> bytes:
        for decoder in self._decoders:
            data = decoder.feed(data)
        return data

    def whole(self) -> bool:
        return all(decoder.whole() for decoder in self._decoders)


_DECODERS: dict[str, Callable[[], Decoder]] = {
    # some gzip writers fill the last block with zero bytes
    "gzip": lambda: _Members("gzip", lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), padding=b"\0"),
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": lambda: _Members("zstd", lambda: zstandard.ZstdDecompressor().decompressobj()),
}
_ALIASES = {"x-gzip": "gzip"}


def decoder_of(encoding: str) -> Decoder:
    """The decoder for a Content-Encoding header's value (raises BrokenEncodingError for an unknown one)."""
    names = [name.strip().lower() for name in encoding.split(",")]
    names = [_ALIASES.get(name, name) for name in names if name not in ("", "identity")]
    unknown = [name for name in names if name not in _DECODERS]
    if unknown:
        raise BrokenEncodingError(f"unknown content encoding {', '.join(unknown)}")
    # the header lists them in the order in which they were applied
    return _Chain([_DECODERS[name]() for name in reversed(names)])

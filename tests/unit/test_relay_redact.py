"""Keys are masked in any text, however it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.redact import KeyMask, forms, mask

KEYS = ("sk-aab", "aabaab", "key/with+signs")
texts = st.lists(
    st.one_of(
        st.sampled_from([*KEYS, "sk-aa", "aab", "a", "b", "key\\/with+signs", "key%2Fwith%2Bsigns"]),
        st.text("abks-", max_size=6),
    )
).map("".join)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    return [*pieces, data[start:]]


@given(texts, st.lists(st.integers(0, 5), max_size=30), st.sampled_from([KEYS, KEYS[:1], ()]))
def test_no_cut_lets_a_key_pass(text: str, sizes: list[int], keys: tuple[str, ...]) -> None:
    masked = KeyMask(keys)
    longest = max((len(form) for form in forms(keys)), default=1)
    out, given_so_far = b"", 0
    for piece in cut(text.encode(), sizes):
        out += masked.feed(piece)
        given_so_far += len(piece)
        assert given_so_far - len(out) < longest, "only what may begin a key is held back"
    out += masked.finish()
    assert len(out) == len(text)
    assert not any(form in out for form in forms(keys))
    changed = [index for index, (old, new) in enumerate(zip(text.encode(), out, strict=True)) if old != new]
    assert all(out[index] == ord("*") for index in changed)
    if not any(form.decode() in text for form in forms(keys)):
        assert out.decode() == text
        assert mask(text, keys) == text


@pytest.mark.parametrize("secret", ["", "abc"])
def test_short_secrets_are_not_masked(secret: str) -> None:
    assert mask("abcabc", [secret]) == "abcabc"

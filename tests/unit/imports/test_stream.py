"""Packed, broken off and damaged files."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable

import pytest
import zstandard

from zombiescope.imports.stream import Stream

TEXT = b"".join(b"line %d of some text\n" % at for at in range(200_000))


def unpacked(data: bytes) -> tuple[bytes, str | None, int]:
    seen: list[int] = []
    stream = Stream(io.BytesIO(data), seen.append)
    return b"".join(stream), stream.damage, sum(seen)


@pytest.mark.parametrize("data", [TEXT, TEXT[:10], b""])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_all_of_it_comes_out(data: bytes, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(data)
    assert unpacked(packed) == (data, None, len(packed))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_several_behind_each_other(pack: Callable[[bytes], bytes]) -> None:
    assert unpacked(pack(TEXT) + pack(b"more"))[:2] == (TEXT + b"more", None)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_what_is_broken_off_gives_what_it_has(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(TEXT)
    text, damage, _ = unpacked(packed[: len(packed) // 2])
    assert TEXT.startswith(text)
    assert damage == "the compressed stream ends early"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress])
def test_what_is_damaged_gives_what_comes_before(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(TEXT))
    at = len(packed) // 2
    packed[at : at + 50] = b"\xff" * 50
    text, damage, _ = unpacked(bytes(packed))
    assert damage == "the compressed stream is damaged"
    assert len(text) < len(TEXT)

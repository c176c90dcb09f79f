"""Bytes of a file on their way in: plain, gzip or zstd, or from standard input, recognised by their first bytes.

A compressed file that ends early or is damaged gives what could be unpacked; `damage` then says what is missing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
_UNPACKED_BYTES = 4 << 20
_ZSTD_PIECE_BYTES = 2048
"""Unpacked at once: four bytes of zstd can stand for 128 kB, so no more than 64 MB come of it."""
_ZSTD_WINDOW_BYTES = 1 << 27
"""What `zstd -d` itself takes without being told to take more."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

Progress = Callable[[int], None]


def is_packed(head: bytes) -> bool:
    return head.startswith((_GZIP, _ZSTD))


class Stream:
    """What is in a file, piece by piece. `progress` is called with how many more bytes of the file itself were read."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        """Raises OSError."""
        self._file = file
        self._progress = progress
        self.damage: str | None = None
        self._raw = self._read(HEAD_BYTES)
        self.packed = is_packed(self._raw)
        self._pieces = self._unpack()
        self._first = next(self._pieces, b"")
        while len(self._first) < HEAD_BYTES and (more := next(self._pieces, b"")):
            self._first += more

    @property
    def head(self) -> bytes:
        """The beginning, unpacked: at least HEAD_BYTES unless there is less."""
        return self._first

    def __iter__(self) -> Iterator[bytes]:
        """The rest, from the beginning; once. A fault of the disk becomes `damage`."""
        if self._first:
            yield self._first
        yield from self._pieces

    def _read(self, size: int) -> bytes:
        piece = self._file.read(size)
        while piece and len(piece) < HEAD_BYTES <= size and (more := self._file.read(size - len(piece))):
            piece += more
        self._progress(len(piece))
        return piece

    def _raw_pieces(self) -> Iterator[bytes]:
        piece, self._raw = self._raw, b""
        while piece:
            yield piece
            try:
                piece = self._read(CHUNK_BYTES)
            except OSError as error:
                self.damage = f"cannot be read on: {error.strerror}"
                return

    def _unpack(self) -> Iterator[bytes]:
        if self._raw.startswith(_GZIP):
            return self._gunzip()
        if self._raw.startswith(_ZSTD):
            return self._unzstd()
        return self._raw_pieces()

    def _gunzip(self) -> Iterator[bytes]:
        """A gzip file may be several, one after the other."""
        unpacker = zlib.decompressobj(wbits=31)
        for packed in self._raw_pieces():
            piece = packed
            while piece:
                if unpacker.eof:
                    if not piece.startswith(_GZIP[:1]):
                        return  # zeros, or whatever else a tape or a tool put after it
                    unpacker = zlib.decompressobj(wbits=31)
                try:
                    yield unpacker.decompress(piece, _UNPACKED_BYTES)
                except zlib.error:
                    self.damage = "the compressed stream is damaged"
                    return
                piece = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        if not unpacker.eof and self.damage is None:
            self.damage = "the compressed stream ends early"

    def _unzstd(self) -> Iterator[bytes]:
        import zstandard

        def new() -> zstandard.ZstdDecompressionObj:
            return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()

        unpacker = new()
        for packed in _cut(self._raw_pieces(), _ZSTD_PIECE_BYTES):
            piece = packed
            while piece:
                if unpacker.eof:
                    unpacker = new()
                try:
                    yield unpacker.decompress(piece)
                except zstandard.ZstdError:
                    self.damage = "the compressed stream is damaged"
                    return
                piece = unpacker.unused_data if unpacker.eof else b""
        if not unpacker.eof and self.damage is None:
            self.damage = "the compressed stream ends early"


def _cut(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), size):
            yield piece[start : start + size]


def text_of(stream: Stream, most_bytes: int) -> str:
    """All of a small file as text; what is beyond `most_bytes` is cut off and stands in `damage`."""
    pieces = []
    left = most_bytes
    for piece in stream:
        pieces.append(piece[:left])
        left -= len(piece)
        if left < 0:
            stream.damage = f"larger than {most_bytes >> 20} MB, the rest was left out"
            break
    return b"".join(pieces).decode("utf-8", "backslashreplace")

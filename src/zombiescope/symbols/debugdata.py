""".gnu_debugdata: the symbols that stripping would have removed, packed into the binary itself (Fedora and its kin).

The section is an xz stream of an ELF file that holds a .symtab and nothing else of use. It is unpacked in pieces
into a file, never into memory as a whole: the recorder has little of that. The stream is not believed: the length of
what comes out, its ratio to what went in and the memory that unpacking takes are bounded.
"""

from __future__ import annotations

import os

from zombiescope._native import ElfError

MAX_UNPACKED_BYTES = 64 << 20
MAX_RATIO = 200  # real tables come to 3 to 8; only made ones to thousands
MAX_MEMORY_BYTES = 80 << 20  # xz -9 needs 65 MB; its default, which everybody uses, 9 MB
PIECE_BYTES = 1 << 16


def unpack(
    fd: int,
    section: tuple[int, int],
    out_fd: int,
    *,
    max_bytes: int = MAX_UNPACKED_BYTES,
    max_memory_bytes: int = MAX_MEMORY_BYTES,
) -> int:
    """Write what the section (offset, size) holds to out_fd; its length. ElfError when it is damaged or too much."""
    import lzma

    stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=max_memory_bytes)
    at, left = section
    most = min(max_bytes, MAX_RATIO * left + PIECE_BYTES)
    total = 0
    try:
        while not stream.eof:
            packed = b""
            if stream.needs_input:
                packed = os.pread(fd, min(PIECE_BYTES, left), at)
                if not packed:
                    raise ElfError("its .gnu_debugdata ends early")
                at += len(packed)
                left -= len(packed)
            piece = stream.decompress(packed, PIECE_BYTES)
            total += len(piece)
            if total > most:
                raise ElfError("its .gnu_debugdata unpacks to more than can be real")
            _write(out_fd, piece)
    except lzma.LZMAError:
        raise ElfError("its .gnu_debugdata is damaged") from None
    return total


def _write(fd: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(fd, piece) :]

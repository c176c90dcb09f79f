"""Damaged ELF files, fed to the target of fuzzing with lies where they hurt: ElfError, or a table to ask anything."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.targets.symbols import EDGES, elf, exercise

# Left alone by default so that the suite stays quick; ZOMBIESCOPE_FUZZ=100000 searches longer.
EXAMPLES = int(os.environ.get("ZOMBIESCOPE_FUZZ", "1500"))

SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_DYNSYM = 2, 3, 7, 11


def interesting(image: bytes) -> list[int]:
    """Offsets in the header, program and section headers, notes, symbols and names."""
    wide = image[4] == 2
    phoff, shoff = struct.unpack_from("<QQ" if wide else "<II", image, 32 if wide else 28)
    phentsize, phnum, shentsize, shnum = struct.unpack_from("<4H", image, 54 if wide else 42)
    spans = [range(16, 64), range(phoff, phoff + phnum * phentsize), range(shoff, shoff + shnum * shentsize)]
    for header in range(shoff, shoff + shnum * shentsize, shentsize):
        kind = struct.unpack_from("<I", image, header + 4)[0]
        offset, size = struct.unpack_from("<QQ" if wide else "<II", image, header + (24 if wide else 16))
        if kind in (SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_DYNSYM):
            spans.append(range(offset, offset + size))
    return [at for span in spans for at in span if at < len(image)]


@pytest.fixture(scope="module")
def seeds(program: Path, narrow: Path) -> list[bytes]:
    return [program.read_bytes(), narrow.read_bytes()]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_fields_that_lie(seeds: list[bytes], data: st.DataObject) -> None:
    image = bytearray(data.draw(st.sampled_from(seeds)))
    spots = interesting(bytes(image))
    for _ in range(data.draw(st.integers(1, 6))):
        at = spots[data.draw(st.integers(0, len(spots) - 1))]
        width = data.draw(st.sampled_from((1, 2, 4, 8)))
        value = data.draw(st.one_of(st.sampled_from(EDGES), st.integers(0, (1 << 64) - 1)))
        image[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    elf(bytes(image))


@settings(max_examples=EXAMPLES // 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=512), wide=st.booleans())
def test_noise_behind_a_good_magic(body: bytes, wide: bool) -> None:
    exercise(b"\x7fELF" + (b"\x02" if wide else b"\x01") + b"\x01\x01" + bytes(9) + b"\x03\x00" + body)

"""The vDSO: code that the kernel maps into every process, without a file.

Its image is read once from our own memory (/proc/self/mem, at the [vdso] range of /proc/self/maps) and is an
ELF file with a .dynsym. The kernel maps the same image into all 64-bit processes of the machine; 32-bit ones
get another, recognised by its size and its place below 4 GB. Where /proc/self/mem is closed, frames in it are
named [vdso].
"""

from __future__ import annotations

import os
from contextlib import suppress

from zombiescope._native import ElfError, SymbolTable
from zombiescope.symbols.maps import Mapping, parse

FOUR_GB = 1 << 32
MAX_IMAGE_BYTES = 1 << 20


class Vdso:
    """The names of the vDSO's functions."""

    def __init__(self, proc: str = "/proc") -> None:
        self._mapping, self.image = _own_image(proc)
        """Its bytes, as an ELF file; None where they cannot be read."""
        self._table: SymbolTable | None = None
        if self.image is not None:
            with suppress(ElfError):
                self._table = SymbolTable(self.image)

    @property
    def table(self) -> SymbolTable | None:
        """The image of this kernel, which has a build id."""
        return self._table

    def name(self, mapping: Mapping, ip: int) -> str | None:
        """The function of the vDSO at ip, if this is the image that we know."""
        table = self._table
        if table is None or not self.is_own(mapping):
            return None
        index = table.find_offset(ip - mapping.start)
        name = table.name(index) if index >= 0 else None
        return None if name is None else name.decode("utf-8", "replace")

    def is_own(self, mapping: Mapping) -> bool:
        """Whether this mapping is of the image that we know."""
        own = self._mapping
        if own is None or mapping.path != "[vdso]" or (mapping.start < FOUR_GB) != (own.start < FOUR_GB):
            return False
        return mapping.end - mapping.start == own.end - own.start


def _own_image(proc: str) -> tuple[Mapping | None, bytes | None]:
    try:
        with open(f"{proc}/self/maps", "rb") as text:
            own = next((mapping for mapping in parse(text.read()) if mapping.path == "[vdso]"), None)
        if own is None or own.end - own.start > MAX_IMAGE_BYTES:
            return None, None
        fd = os.open(f"{proc}/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return own, os.pread(fd, own.end - own.start, own.start)
        finally:
            os.close(fd)
    except OSError:
        return None, None

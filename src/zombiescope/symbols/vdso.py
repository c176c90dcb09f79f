"""The vDSO: code that the kernel maps into every process, without a file.

Its image is read once from our own memory (/proc/self/mem, at the [vdso] range of /proc/self/maps) and is an
ELF file with a .dynsym. The kernel maps the same image into all 64-bit processes of the machine; 32-bit ones
get another, recognised by its size and its place below 4 GB. Where /proc/self/mem is closed, frames in it are
named [vdso].
"""

from __future__ import annotations

import os

from zombiescope._native import ElfError, SymbolTable
from zombiescope.symbols.maps import Mapping, parse

FOUR_GB = 1 << 32
MAX_IMAGE_BYTES = 1 << 20


class Vdso:
    """The names of the vDSO's functions."""

    def __init__(self, proc: str = "/proc") -> None:
        self._mapping, self._table = _own_image(proc)

    @property
    def table(self) -> SymbolTable | None:
        """The image of this kernel, which has a build id."""
        return self._table

    def name(self, mapping: Mapping, ip: int) -> str | None:
        """The function of the vDSO at ip, if this is the image that we know."""
        own, table = self._mapping, self._table
        if own is None or table is None or mapping.path != "[vdso]":
            return None
        if mapping.end - mapping.start != own.end - own.start or (mapping.start < FOUR_GB) != (own.start < FOUR_GB):
            return None
        index = table.find_offset(ip - mapping.start)
        name = table.name(index) if index >= 0 else None
        return None if name is None else name.decode("utf-8", "replace")


def _own_image(proc: str) -> tuple[Mapping | None, SymbolTable | None]:
    try:
        with open(f"{proc}/self/maps", "rb") as text:
            own = next((mapping for mapping in parse(text.read()) if mapping.path == "[vdso]"), None)
        if own is None or own.end - own.start > MAX_IMAGE_BYTES:
            return None, None
        fd = os.open(f"{proc}/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return own, SymbolTable(os.pread(fd, own.end - own.start, own.start))
        finally:
            os.close(fd)
    except (OSError, ElfError):
        return None, None

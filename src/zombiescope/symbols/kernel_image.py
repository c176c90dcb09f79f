"""The kernel's symbols by the build id of the kernel: for recordings of another boot or another machine.

perf.data holds the build id of the kernel and the address of _text, not its symbols. `perf record` leaves a copy
of /proc/kallsyms in ~/.debug (readable addresses only if it ran with CAP_SYSLOG), `perf archive` packs it, and
debug packages of distributions install vmlinux.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zombiescope._native import ElfError, elf_build_id
from zombiescope.symbols import build_id_paths

NOTES = "/sys/kernel/notes"
MAX_NOTES_BYTES = 1 << 16
NT_GNU_BUILD_ID = 3


@dataclass(frozen=True, slots=True)
class KernelImage:
    """A file with the symbols of one kernel. kallsyms holds addresses of one boot, vmlinux those of the linker."""

    path: Path
    kind: Literal["kallsyms", "vmlinux"]

    @classmethod
    def find(
        cls,
        build_id: bytes,
        search: Sequence[str | Path] = (),
        debug_roots: Sequence[str | Path] = build_id_paths.DEBUG_ROOTS,
    ) -> KernelImage | None:
        """The symbols of the kernel with this build id; kallsyms first, for it knows modules too."""
        caches = [*search, build_id_paths.perf_cache()]
        for path in _kallsyms(build_id, caches):
            if _has_addresses(path):
                return cls(path, "kallsyms")
        candidates = [
            *build_id_paths.cached_by_perf(build_id, caches, "vmlinux"),
            *build_id_paths.cached_by_perf(build_id, caches, "elf"),
            *build_id_paths.separate(build_id, debug_roots),
        ]
        for path in candidates:
            if _is_build(path, build_id):
                return cls(path, "vmlinux")
        return None


def _kallsyms(build_id: bytes, caches: Sequence[str | Path]) -> Iterator[Path]:
    yield from build_id_paths.cached_by_perf(build_id, caches, "kallsyms")
    for cache in caches:
        yield Path(cache) / "[kernel.kallsyms]" / build_id.hex() / "kallsyms"


def _has_addresses(path: Path) -> bool:
    """Whether a copy of kallsyms was made by somebody who may see addresses: others get zeros."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    lines = head.split(b"\n")[:-1]
    return any(line.split(b" ", 1)[0].strip(b"0") for line in lines)


def _is_build(path: Path, build_id: bytes) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return build_id_paths.same_build(build_id, elf_build_id(fd))
    except ElfError:
        return False
    finally:
        os.close(fd)


def running_build_id(notes: str = NOTES) -> bytes | None:
    """The build id of the kernel that runs here, by /sys/kernel/notes; None where that cannot be read."""
    try:
        with open(notes, "rb") as file:
            data = file.read(MAX_NOTES_BYTES)
    except OSError:
        return None
    at = 0
    while len(data) - at >= 12:
        name_size, desc_size, kind = memoryview(data[at : at + 12]).cast("I")
        name_at = at + 12
        desc_at = name_at + (name_size + 3) // 4 * 4
        if desc_at + desc_size > len(data):
            return None
        if kind == NT_GNU_BUILD_ID and data[name_at : name_at + name_size] == b"GNU\0":
            return data[desc_at : desc_at + desc_size]
        at = desc_at + (desc_size + 3) // 4 * 4
    return None

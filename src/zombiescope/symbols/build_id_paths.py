"""Where the file with a given build id may be: the binary itself, or its symbols apart from it.

    <debug root>/.build-id/ab/cdef....debug            symbols apart, as distributions install them (/usr/lib/debug)
    <debug root>/<directory of the binary>/<link>      the same by .gnu_debuglink, and beside the binary, and in .debug/
    <perf cache>/.build-id/ab/cdef.../elf              perf's own cache (~/.debug), or a `perf archive` unpacked
    <perf cache>/.build-id/ab/cdef.../{vdso,debug}     the kernel's code in user space; what debuginfod gave
    <perf cache>/.build-id/ab/cdef.../kallsyms         the kernel's symbols at the time of the recording

Nothing here is believed for its name: whoever opens one of these compares the build id in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

DEBUG_ROOTS = ("/usr/lib/debug",)
MIN_BUILD_ID_BYTES = 4
MAX_BUILD_ID_BYTES = 64


def perf_cache() -> Path:
    """perf's cache of binaries by build id, of the user who runs this."""
    return Path(os.environ.get("HOME") or "/root") / ".debug"


def same_build(wanted: bytes, found: bytes | None) -> bool:
    """Whether two build ids are one; perf before 5.12 pads short ones with zeros to twenty bytes."""
    if not found:
        return False
    return wanted == found or (len(found) < len(wanted) == 20 and wanted == found.ljust(20, b"\0"))


def _parts(build_id: bytes) -> Iterator[tuple[str, str]]:
    if not MIN_BUILD_ID_BYTES <= len(build_id) <= MAX_BUILD_ID_BYTES:
        return
    text = build_id.hex()
    yield text[:2], text[2:]
    short = build_id.rstrip(b"\0")
    if len(build_id) == 20 and 8 <= len(short) <= 16:
        # Eight and sixteen bytes are what linkers make besides twenty; a zero of their own may end them.
        length = 8 if len(short) <= 8 else 16
        yield text[:2], build_id[:length].hex()[2:]


def separate(build_id: bytes, debug_roots: Sequence[str | Path] = DEBUG_ROOTS) -> Iterator[Path]:
    """Files with symbols only, for the binary of this build id."""
    for root in debug_roots:
        for first, rest in _parts(build_id):
            yield Path(root) / ".build-id" / first / f"{rest}.debug"


def linked(binary: str, link: str, debug_roots: Sequence[str | Path] = DEBUG_ROOTS) -> Iterator[Path]:
    """Files with symbols only, by the name that .gnu_debuglink of a binary gives; it is a name without a directory."""
    if not link or "/" in link or link in (".", ".."):
        return
    directory = Path(binary).parent
    yield directory / link
    yield directory / ".debug" / link
    for root in debug_roots:
        yield Path(root) / str(directory).lstrip("/") / link


def cached_by_perf(build_id: bytes, caches: Sequence[str | Path], name: str = "elf") -> Iterator[Path]:
    """A file of perf's cache; `name` is elf, vdso, debug or kallsyms. perf before 4.7 linked to the file itself."""
    for cache in caches:
        for first, rest in _parts(build_id):
            entry = Path(cache) / ".build-id" / first / rest
            yield entry / name
            if name == "elf":
                yield entry

"""Names for the kernel addresses of a recording, from a kallsyms that is of the kernel which ran.

perf.data holds none. Believed, in this order:

    1. the file that the caller names
    2. kallsyms in perf's cache (~/.debug) or in an unpacked `perf archive`, under the kernel's build id
    3. /proc/kallsyms, if the recording is of this very kernel: the same build id (/sys/kernel/notes), or, where the
       recording has none, the same host name, release and address of the kernel's text

A kernel that randomises its addresses is elsewhere after each boot. The recording says where _text was, so the
kernel's own functions are found with kallsyms of any boot; modules move on their own, and are found only if nothing
moved.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zombiescope._native import KernelSymbols
from zombiescope.symbols import build_id_paths

ALL = (0, (1 << 64) - 1)
_PIECE_BYTES = 1 << 16
_HEAD_BYTES = 1 << 18
_MODULE_FILE = re.compile(r"\.ko(\.\w+)?$")


@dataclass(slots=True)
class RecordedKernel:
    """What a recording says of its kernel."""

    host: str | None = None
    release: str | None = None
    build_id: bytes | None = None
    text_start: int = 0
    text_bytes: int = 0
    reference: str = ""
    """_text or _stext; its address is `reference_at`, 0 when it was hidden."""
    reference_at: int = 0


@dataclass(frozen=True, slots=True)
class ShiftedKernel:
    """Symbols and where they hold: recorded address = address in `symbols` + shift."""

    symbols: KernelSymbols
    shift: int
    span: tuple[int, int]
    is_here: bool
    """It is the kernel that runs here."""


class KernelNames:
    """Reads a kallsyms once, however many files are of its kernel."""

    def __init__(self, kallsyms: Path | None, symbol_dirs: Sequence[Path]) -> None:
        self._kallsyms = kallsyms
        self._caches = [*symbol_dirs, build_id_paths.perf_cache()]
        self._read: dict[Path, tuple[KernelSymbols, dict[str, int]] | None] = {}
        self.complaint: str | None = None
        """Why the file that the caller named was not used."""

    def find(self, recorded: RecordedKernel) -> ShiftedKernel | None:
        """The symbols of a recording's kernel, or None."""
        here = self.is_here(recorded)
        if self._kallsyms is not None:
            kernel = self._try(self._kallsyms, recorded, here)
            if kernel is None:
                self.complaint = f"{self._kallsyms} holds no addresses of functions (copy /proc/kallsyms as root)"
            return kernel
        if recorded.build_id:
            for path in build_id_paths.cached_by_perf(recorded.build_id, self._caches, "kallsyms"):
                # Path.is_file raises where a folder may not be entered.
                kernel = self._try(path, recorded, here) if os.path.isfile(path) else None  # noqa: PTH113
                if kernel is not None:
                    return kernel
        return self._try(Path("/proc/kallsyms"), recorded, here) if here else None

    def is_here(self, recorded: RecordedKernel) -> bool:
        """Whether the recording is of the kernel that runs here."""
        if recorded.build_id:
            return build_id_paths.same_build(recorded.build_id, running_build_id())
        here = os.uname()
        if (recorded.host, recorded.release) != (here.nodename, here.release) or not recorded.reference_at:
            return False
        loaded = self._load(Path("/proc/kallsyms"))
        return loaded is not None and loaded[1].get(recorded.reference) == recorded.reference_at

    def _try(self, path: Path, recorded: RecordedKernel, here: bool) -> ShiftedKernel | None:
        loaded = self._load(path)
        if loaded is None:
            return None
        symbols, references = loaded
        known_at = references.get(recorded.reference)
        if not recorded.reference_at or known_at is None or known_at == recorded.reference_at:
            return ShiftedKernel(symbols, 0, ALL, here)
        start = recorded.reference_at
        end = min(recorded.text_start + recorded.text_bytes, ALL[1])
        return ShiftedKernel(symbols, (start - known_at) % (1 << 64), (start, max(start, end)), here)

    def _load(self, path: Path) -> tuple[KernelSymbols, dict[str, int]] | None:
        if path not in self._read:
            self._read[path] = _read_kallsyms(path)
        return self._read[path]


def _read_kallsyms(path: Path) -> tuple[KernelSymbols, dict[str, int]] | None:
    symbols = KernelSymbols()
    head = b""
    try:
        with path.open("rb", buffering=0) as file:
            # /proc gives a page at a time, whatever is asked for.
            while piece := file.read(_PIECE_BYTES):
                symbols.feed(piece)
                if len(head) < _HEAD_BYTES:
                    head += piece
    except OSError:
        return None
    symbols.feed(b"\n")
    symbols.finish()
    return None if symbols.hidden else (symbols, _references(head))


def _references(text: bytes) -> dict[str, int]:
    """Where _text and _stext are; they stand near the front."""
    found = {}
    for name in (b"_text", b"_stext"):
        at = text.find(b" " + name + b"\n")
        start = text.rfind(b"\n", 0, max(at, 0)) + 1
        address = text[start : max(at, 0)].partition(b" ")[0]
        if len(address) in (8, 16) and not address.strip(b"0123456789abcdef"):
            found[name.decode()] = int(address, 16)
    return found


def running_build_id(path: str = "/sys/kernel/notes") -> bytes | None:
    """The build id of the kernel that runs here."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    at = 0
    while at + 12 <= len(data):
        name_bytes, bytes_, kind = struct.unpack_from("<III", data, at)
        name_at = at + 12
        at = name_at + (name_bytes + 3 & ~3)
        if kind == 3 and data[name_at : name_at + 4] == b"GNU\0":
            return data[at : at + bytes_]
        at += bytes_ + 3 & ~3
    return None


def module_name(path: str) -> str:
    """The name that kallsyms gives a module: [ext4], or the name of its file."""
    if path.startswith("["):
        return path.strip("[]")
    return _MODULE_FILE.sub("", path.rpartition("/")[2]).replace("-", "_")

"""Names of C++ and Rust functions as their authors wrote them; other names as they are.

Recordings hold names as the linker knows them: they are made readable here, when they are shown. Most names are not
mangled and cost a comparison; others 20 to 30 microseconds once, then the cache answers.
"""

from __future__ import annotations

from functools import lru_cache

from zombiescope.symbols import itanium, rust_names
from zombiescope.symbols.itanium_codes import NotMangledError

MAX_NAMES = 1 << 16
MAX_MANGLED = 4096


def demangle(name: str) -> str:
    """The readable form of a linker's name, or the name itself."""
    if not name.startswith("_") or len(name) > MAX_MANGLED:
        return name
    return _demangled(name) if name.startswith(("_Z", "_R")) else name


@lru_cache(maxsize=MAX_NAMES)
def _demangled(name: str) -> str:
    try:
        if name.startswith("_R"):
            return rust_names.demangle_v0(name)
        try:
            return rust_names.demangle_legacy(name)
        except rust_names.NotRustError:
            return itanium.demangle(name)
    except (rust_names.NotRustError, NotMangledError):
        return name

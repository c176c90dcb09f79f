"""Names of functions in as many columns as there are, so that two functions never look alike.

Templates of C++ agree in their first hundred characters and differ deep inside, so a name that is cut at its end says
nothing. It is shortened from the inside: arguments of templates become `<…>`, the innermost first, until it fits; then
what stands before the function's own name. Whatever was left out is told apart by a tag of four letters, the same
wherever the name is shown:

    at::native::(anonymous namespace)::vectorized_loop2d<…>~k3f0

All other names are cut at their end. The page does the same (ui/src/format/function-name.ts); a
list of names is tested against both.
"""

from __future__ import annotations

import re
from functools import lru_cache

TAGGED_FROM = 24
"""Columns from which on there is room for a tag."""
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_OPERATOR = re.compile(r"operator(?:->\*|<=>|<<=|>>=|->|<<|>>|<=|>=|<|>)")
_INNERMOST = re.compile(r"<([^<>]+)>")
_HIDDEN = {"<": "\x01", ">": "\x02"}
_SHOWN = {value: key for key, value in _HIDDEN.items()}
_HIDE, _SHOW = str.maketrans(_HIDDEN), str.maketrans(_SHOWN)
_LEFT_OUT = "\x03"
_MAX_NAMES = 1 << 14


def fitted(name: str, width: int) -> str:
    """The name in at most `width` columns."""
    if len(name) <= width:
        return name
    if width < 2:
        return "…"[:width]
    if not _is_nested(name) or width < TAGGED_FROM:
        return name[: width - 1] + "…"
    return _from_the_inside(name, width)


def _is_nested(name: str) -> bool:
    """Whether it has namespaces or templates, as C++ writes them; Rust's `<T as Trait>::f` and `impl` are others."""
    return ("::" in name or "<" in name) and not name.startswith("<") and " as " not in name and "impl " not in name


@lru_cache(maxsize=_MAX_NAMES)
def _from_the_inside(name: str, width: int) -> str:
    room = width - 5
    text = _OPERATOR.sub(lambda found: found[0].translate(_HIDE), name.replace("->", "-\x02"))
    while len(text) > room and (inner := _longest(text)) is not None:
        text = text[: inner.start()] + _LEFT_OUT + text[inner.end() :]
    return f"{_cut(text.replace(_LEFT_OUT, '<…>'), room).translate(_SHOW)}~{tag(name)}"


def _longest(text: str) -> re.Match[str] | None:
    """Of the innermost arguments those that take most room; of equal ones the last."""
    return max(_INNERMOST.finditer(text), key=lambda found: (found.end() - found.start(), found.start()), default=None)


def _cut(text: str, room: int) -> str:
    """Without what stands before the function's own name, or without the beginning of that."""
    if len(text) <= room:
        return text
    own = min(len(text) - max(text.rfind("::"), 0), room - 2)
    head = room - 1 - own
    return f"{text[:head]}…{text[len(text) - own :]}" if head > 0 else f"…{text[-(room - 1) :]}"


def tag(name: str) -> str:
    """Four letters: FNV-1a of the whole name."""
    value = 0x811C9DC5
    for byte in name.encode("utf-8", "replace"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    value ^= value >> 15
    return "".join(_LETTERS[value >> shift & 31] for shift in (15, 10, 5, 0))

"""What the resolvers answer: a frame of a user stack."""

from __future__ import annotations

from typing import Literal, NamedTuple

FrameKind = Literal["user", "vdso", "jit", "unknown"]


class Frame(NamedTuple):
    """One frame of a user stack, as it is stored."""

    name: str
    module: str
    kind: FrameKind


def printable(text: str) -> str:
    """Files may be made by anybody: no control character of a name reaches a terminal or a report."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)

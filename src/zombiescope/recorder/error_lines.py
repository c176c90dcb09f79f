"""What a child writes to its standard error: tracebacks are kept for the reason they end in, the rest is passed on.

A traceback begins with "Traceback (most recent call last):" and ends with the first line that is not indented, which
names the exception. A crash in C is told by faulthandler: "Fatal Python error: Segmentation fault", then the stack, the
innermost function first. People see one line with the reason; ZOMBIESCOPE_DEBUG=1 shows everything."""

from __future__ import annotations

import os
import re

MOST_LINE = 4096
_MOST_REASON = 300
_BEGINS = ("Traceback (most recent call last)", "Fatal Python error: ")
_CHAINED = ("During handling of", "The above exception was")
_BETWEEN = (
    "Current thread", "Thread 0x", "Extension modules", "Stack (most", "<no Python frame>", "Python runtime state",
)  # fmt: skip
_PLACE = re.compile(r'\s+File "([^"]+)", line (\d+)(?:,? in (.+))?')


class ErrorLines:
    def __init__(self) -> None:
        self._rest = b""
        self._kind = ""
        """Of the report that is being read: "traceback", "fatal" or none."""
        self._place = ""
        self.reason: str | None = None
        """What the last report ended in, with its place."""
        self.last = ""
        """The last line that was for people."""

    def feed(self, data: bytes) -> list[str]:
        """Lines that are for people."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-MOST_LINE:]
        texts = [line[:MOST_LINE].decode("utf-8", "replace") for line in lines]
        told = [text for text in texts if not self._belongs_to_a_report(text)]
        self.last = told[-1] if told else self.last
        return texts if os.environ.get("ZOMBIESCOPE_DEBUG") else told

    def take_reason(self) -> str | None:
        reason, self.reason = self.reason, None
        return reason

    def _belongs_to_a_report(self, text: str) -> bool:
        if text.startswith(_BEGINS):
            self._begin(text)
            return True
        if not text.strip() or text.startswith(_CHAINED):
            return True
        if not self._kind:
            return False
        if found := _PLACE.match(text):
            self._note_place(os.path.basename(found[1]), found[2], found[3])  # noqa: PTH119
            return True
        if text[0] == " " or text.startswith(_BETWEEN):
            return True
        if self._kind == "fatal":
            self._kind = ""
            return False
        self._kind = ""
        self.reason = _cut(text, self._place)
        return True

    def _begin(self, text: str) -> None:
        self._place = ""
        self._kind = "traceback" if text.startswith(_BEGINS[0]) else "fatal"
        if self._kind == "fatal":
            self.reason = _cut(text.removeprefix(_BEGINS[1]), "")

    def _note_place(self, file: str, line: str, function: str | None) -> None:
        """A traceback ends in its innermost function, faulthandler begins with it."""
        place = f"{file}:{line}" + (f" in {function}" if self._kind == "fatal" and function else "")
        if self._kind == "fatal" and not self._place and self.reason is not None:
            self.reason = _cut(self.reason, place)
        if self._kind == "traceback" or not self._place:
            self._place = place


def _cut(text: str, place: str) -> str:
    said = " ".join(text.split())[:_MOST_REASON]
    return f"{said} ({place})" if place else said

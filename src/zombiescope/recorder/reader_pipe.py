"""A reader's end of the two pipes between it and the recorder (piped_process.py is the other): lines of JSON, in both
directions.

What is read may be cut anywhere: a line without an end waits for the rest of it, up to MOST_INPUT bytes, and one that
is no JSON is passed over. A reader ends when its input does, and sends a beat when it has nothing to say.
"""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from typing import Any, Protocol

from zombiescope.base import json as _json
from zombiescope.base.helper import BEAT_S
from zombiescope.kernel.procfile import read_file

MOST_INPUT = 1 << 16
BEAT = {"beat": True}


class Reader(Protocol):
    def follow(self, said: Any) -> None:
        """What the recorder said: whom to look at from now on."""

    def turn(self, now_s: float) -> dict[str, Any] | None:
        """Does what is due; what is to be said, if anything is."""

    def wait_s(self, now_s: float) -> float:
        """How long there is nothing to do."""


def run(reader: Reader) -> None:
    """Until nobody listens any more."""
    told, buffer, beat_s = select.poll(), b"", 0.0
    told.register(0, select.POLLIN)
    while True:
        message = reader.turn(time.monotonic())
        if message is None and time.monotonic() >= beat_s:
            message = BEAT
        if message is not None:
            say(message)
            beat_s = time.monotonic() + BEAT_S
        if told.poll(min(reader.wait_s(time.monotonic()), BEAT_S) * 1000):
            piece = os.read(0, MOST_INPUT)
            if not piece:
                return
            said, buffer = lines(buffer + piece)
            for each in said:
                reader.follow(each)


def say(message: dict[str, Any]) -> None:
    """One line, whole, however often the pipe is full. Raises BrokenPipeError."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def lines(buffer: bytes) -> tuple[list[Any], bytes]:
    """The documents of whole lines, and the line that has no end yet."""
    *whole, rest = buffer.split(b"\n")
    found = []
    for line in whole:
        with suppress(ValueError):
            found.append(_json.loads(line))
    return found, rest[-MOST_INPUT:]


def rss_bytes() -> int:
    """Of this process alone: getrusage() knows the peak of the one that started it."""
    fields = (read_file("/proc/self/statm") or b"").split()
    return int(fields[1]) * os.sysconf("SC_PAGESIZE") if len(fields) > 1 else 0

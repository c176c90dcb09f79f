"""Marks from outside: a training script says "epoch 12" and it stands on the time axis.

A datagram socket in the runtime directory that everybody may write to. A datagram is a JSON object with `text` and,
if the sender knows better than we do, `at_us`; or with `steps`, which makes a row of `steps`. The kernel tells who sent
it. A user who talks too much is cut off by a budget of his own, all together by another; steps have budgets apart from
those of marks. Descriptors that come with a datagram are closed."""

from __future__ import annotations

import os
import socket
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.store import schema
from zombiescope.store.event import Event

MAX_TEXT = 500
MAX_A_SECOND = 100
MAX_OF_A_USER = 20
MAX_STEPS_A_SECOND = 512
MAX_STEPS_OF_A_USER = 256
"""Messages; one of a process a second."""
MOST_DURATIONS = 32
MAX_PHASE = 40
NEAR_US = 60_000_000
"""A sender in another container may have an odd clock; what it says belongs near the moment it was sent."""
LONGEST_US = 86_400_000_000
_INT = struct.Struct("i")
_CREDENTIALS = struct.Struct("iII")


class MarkSocket:
    """Receives marks; `refused` counts those over the budget or not understood."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refused = 0
        with suppress(FileNotFoundError):
            path.unlink()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(path))
        path.chmod(0o666)
        self._budget = MAX_A_SECOND
        self._of_user: Counter[object] = Counter()
        self._steps_of_user: Counter[object] = Counter()
        self._steps: list[tuple[Any, ...]] = []

    def fileno(self) -> int:
        return self._socket.fileno()

    def second(self) -> None:
        """A new second, a new budget."""
        self._budget = MAX_A_SECOND
        self._of_user.clear()
        self._steps_of_user.clear()

    def read(self, now_us: int) -> list[Event]:
        """Marks that have arrived."""
        events = []
        for _ in range(MAX_A_SECOND):
            try:
                # Room for the credentials alone: descriptors that do not fit are closed by the kernel.
                data, ancillary, _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size))
            except OSError:
                break
            _close_descriptors(ancillary)
            event = self._take(data, ancillary, now_us)
            if event is not None:
                events.append(event)
        return events

    def _take(self, data: bytes, ancillary: list[tuple[int, int, bytes]], now_us: int) -> Event | None:
        """One datagram: a mark, or steps."""
        said = _said(data)
        if "steps" in said:
            self.refused += not self._take_steps(said["steps"], ancillary, now_us)
            return None
        event = self._mark(said, ancillary, now_us) if self._budget > 0 else None
        if event is None:
            self.refused += 1
        else:
            self._budget -= 1
        return event

    def take_steps(self) -> list[tuple[Any, ...]]:
        """Rows of `steps` that have arrived."""
        taken, self._steps = self._steps, []
        return taken

    def _take_steps(self, said: Any, ancillary: list[tuple[int, int, bytes]], now_us: int) -> bool:
        """Whether it was understood, and within the budget."""
        sender = _sender(ancillary)
        user = sender.get("uid")
        self._steps_of_user[user] += 1
        if self._steps_of_user[user] > MAX_STEPS_OF_A_USER or len(self._steps) >= MAX_STEPS_A_SECOND:
            return False
        row = _steps_row(said, sender, now_us)
        if isinstance(row, tuple):
            self._steps.append(row)
        return row is not None

    def _mark(self, said: dict[str, Any], ancillary: list[tuple[int, int, bytes]], now_us: int) -> Event | None:
        try:
            # Half of a surrogate pair is valid JSON and no Unicode: it could not be written.
            text = str(said["text"])[:MAX_TEXT].encode(errors="replace").decode()
        except (ValueError, KeyError, TypeError):
            return None
        sender = _sender(ancillary)
        self._of_user[sender.get("uid")] += 1
        if self._of_user[sender.get("uid")] > MAX_OF_A_USER:
            return None
        at = said.get("at_us")
        time_us = at if isinstance(at, int) and abs(at - now_us) < NEAR_US else now_us
        return Event(time_us, "mark", "mark", "info", text, sender)

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            self.path.unlink()


def _said(data: bytes) -> dict[str, Any]:
    try:
        said = _json.loads(data)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _steps_row(said: Any, sender: dict[str, int | str], now_us: int) -> tuple[Any, ...] | bool | None:
    """A row of `steps`; True for a sender that asks whether anybody is here, None for what has no shape."""
    if not isinstance(said, dict):
        return None
    left_out, took_us = _number(said.get("left_out")) or 0, said.get("took_us")
    if took_us is None:
        return True
    if not isinstance(took_us, list) or not 0 < len(took_us) <= MOST_DURATIONS:
        return None
    durations = [_number(each, LONGEST_US) for each in took_us]
    if None in durations:
        return None
    at, phase = said.get("at_us"), said.get("phase")
    ended_us = now_us - sum(each or 0 for each in durations)
    at_us = at if isinstance(at, int) and abs(at - ended_us) < NEAR_US else ended_us
    text = phase[:MAX_PHASE].encode(errors="replace").decode() if isinstance(phase, str) else None
    known = {"time": at_us, "pid": sender.get("pid"), "rank": _number(said.get("rank")), "phase": text,
             "first": _number(said.get("first")), "took_us": tuple(durations), "left_out": left_out}  # fmt: skip
    return tuple(known[name] for name in schema.STEPS.names)


def _number(value: object, most: int = 1 << 53) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most else None


def _close_descriptors(ancillary: list[tuple[int, int, bytes]]) -> None:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            for (number,) in _INT.iter_unpack(data[: len(data) // _INT.size * _INT.size]):
                with suppress(OSError):
                    os.close(number)


def _sender(ancillary: list[tuple[int, int, bytes]]) -> dict[str, int | str]:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            pid, uid, _ = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
            found: dict[str, int | str] = {"pid": pid, "uid": uid}
            with suppress(OSError):
                found["comm"] = os.fsdecode(Path(f"/proc/{pid}/comm").read_bytes().strip())
            return found
    return {}

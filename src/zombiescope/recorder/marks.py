"""Marks from outside: a training script says "epoch 12" and it stands on the time axis.

A datagram socket in the runtime directory that everybody may write to. A datagram is a JSON object with `text` and,
if the sender knows better than we do, `at_us`. The kernel tells who sent it. A user who talks too much is cut off by a
budget of his own, all together by another. Descriptors that come with a datagram are closed."""

from __future__ import annotations

import os
import socket
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.store.event import Event

MAX_TEXT = 500
MAX_A_SECOND = 100
MAX_OF_A_USER = 20
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

    def fileno(self) -> int:
        return self._socket.fileno()

    def second(self) -> None:
        """A new second, a new budget."""
        self._budget = MAX_A_SECOND
        self._of_user.clear()

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
            event = self._mark(data, ancillary, now_us) if self._budget > 0 else None
            if event is None:
                self.refused += 1
            else:
                self._budget -= 1
                events.append(event)
        return events

    def _mark(self, data: bytes, ancillary: list[tuple[int, int, bytes]], now_us: int) -> Event | None:
        try:
            said = _json.loads(data)
            # Half of a surrogate pair is valid JSON and no Unicode: it could not be written.
            text = str(said["text"])[:MAX_TEXT].encode(errors="replace").decode()
        except (ValueError, KeyError, TypeError):
            return None
        sender = _sender(ancillary)
        self._of_user[sender.get("uid")] += 1
        if self._of_user[sender.get("uid")] > MAX_OF_A_USER:
            return None
        at = said.get("at_us")
        # A sender in another container may have an odd clock; a mark belongs near the moment it was sent.
        time_us = at if isinstance(at, int) and abs(at - now_us) < 60_000_000 else now_us
        return Event(time_us, "mark", "mark", "info", text, sender)

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            self.path.unlink()


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

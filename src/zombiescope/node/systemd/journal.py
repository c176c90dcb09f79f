"""The kernel log from the journal: the last resort, where neither /dev/kmsg nor syslog(2) may be read.

``journalctl -k -f -o json -n 0`` runs as a child, one JSON object a line. Membership in the group
systemd-journal (or adm) is enough, no capability. Fields: MESSAGE, PRIORITY, SYSLOG_FACILITY,
_SOURCE_MONOTONIC_TIMESTAMP (the stamp of the record in microseconds, on the clock of /dev/kmsg). The child
costs about 10 MB and nothing while nothing is logged. It ends by itself when its pipe breaks, so it does
not outlive a recorder that was killed.

A journal that rate-limits or that is not persisted loses records without saying so: a gap cannot be counted
here.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError
from zombiescope.base.text import number
from zombiescope.kernel.kmsg import KmsgRecord

COMMAND = ("journalctl", "--dmesg", "--follow", "--output=json", "--lines=0", "--no-pager", "--quiet")

_READ_BYTES = 65536
_LINE_MAX_BYTES = 1 << 20
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0


def has_system_journal(root: str = "/") -> bool:
    """Whether there is a journal of the system that we may read; journalctl itself would wait for one in silence."""
    places = (Path(root, place) for place in ("var/log/journal", "run/log/journal"))
    return any(os.access(file, os.R_OK) for place in places for file in place.glob("*/system*.journal"))


def parse(line: bytes) -> KmsgRecord | None:
    """One line of ``journalctl -o json``; None for what is no record of the kernel log."""
    try:
        entry = _json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or entry.get("_TRANSPORT", "kernel") != "kernel":
        return None
    text = _text(entry.get("MESSAGE"))
    if text is None:
        return None
    return KmsgRecord(
        level=_number(entry.get("PRIORITY")),
        facility=_number(entry.get("SYSLOG_FACILITY")),
        seq=None,
        time_us=_number(entry.get("_SOURCE_MONOTONIC_TIMESTAMP")),
        text=text,
    )


def _text(message: object) -> str | None:
    """journalctl writes a message that is not UTF-8 as a list of its bytes."""
    if isinstance(message, list):
        try:
            return bytes(message).decode("utf-8", "backslashreplace")
        except (TypeError, ValueError):
            return None
    return message if isinstance(message, str) else None


def _number(value: object) -> int | None:
    return number(value) if isinstance(value, str) else None


class JournalFollower:
    """Runs the child and restarts it, with growing pauses, when it ends.

    `fileno` changes when the child is restarted and is -1 while there is none; `read` never blocks, and
    starts the child again when its pause is over. `failure` says why there is none, and what fixes it."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = tuple(command)
        self._child: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._retry_s = _FIRST_RETRY_S
        self._not_before_s = 0.0
        self.failure: UserError | None = None
        self._start()

    def fileno(self) -> int:
        if self._child is None or self._child.stdout is None:
            return -1
        return self._child.stdout.fileno()

    def read(self, limit_bytes: int = 1 << 20) -> tuple[list[KmsgRecord], int]:
        """The records that have arrived, and 0: what the journal lost it does not report."""
        if self._child is None and time.monotonic() >= self._not_before_s:
            self._start()
        lines = self._read_lines(limit_bytes)
        if lines:
            self._retry_s = _FIRST_RETRY_S
        return [record for record in map(parse, lines) if record is not None], 0

    def close(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdout is not None:
            child.stdout.close()
        child.kill()
        child.wait()

    def _start(self) -> None:
        try:
            self._child = subprocess.Popen(  # noqa: S603 - a fixed command, no shell
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            self._fail(f"cannot run {self._command[0]}: {error.strerror}", "install systemd, or grant CAP_SYSLOG")
            return
        os.set_blocking(self.fileno(), False)
        self.failure = None

    def _read_lines(self, limit_bytes: int) -> list[bytes]:
        lines: list[bytes] = []
        taken = 0
        while self._child is not None and taken < limit_bytes:
            try:
                chunk = os.read(self.fileno(), _READ_BYTES)
            except BlockingIOError:
                break
            if not chunk:
                self._ended()
                break
            taken += len(chunk)
            *whole, self._pending = (self._pending + chunk).split(b"\n")
            lines += whole
            if len(self._pending) > _LINE_MAX_BYTES:
                self._pending = b""
        return lines

    def _ended(self) -> None:
        self._pending = b""
        self.close()
        self._fail(
            f"{self._command[0]} ended",
            "is systemd-journald running, and may this user read the journal (group systemd-journal)?",
        )

    def _fail(self, what: str, fix: str) -> None:
        self._child = None
        self.failure = UserError(what, fix)
        self._not_before_s = time.monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, _LAST_RETRY_S)

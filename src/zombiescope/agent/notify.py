"""What systemd is told (sd_notify): ready, reloading, stopping, and that we are alive. Nothing without systemd."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress


class Notifier:
    """`address` is $NOTIFY_SOCKET. Never raises, never waits."""

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        self._address = None if not address else "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s = watchdog_s
        """systemd wants to hear of us within this time."""
        self._next_alive_s = 0.0

    @classmethod
    def from_environment(cls) -> Notifier:
        """Takes the variables away: no child of ours speaks for us."""
        address, usec = os.environ.pop("NOTIFY_SOCKET", None), os.environ.pop("WATCHDOG_USEC", "")
        pid = os.environ.pop("WATCHDOG_PID", "")
        ours = usec.isdecimal() and pid in ("", str(os.getpid()))
        return cls(address, int(usec) / 1e6 if ours and int(usec) else None)

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        self._send(f"STATUS={status}")

    def reloading(self) -> None:
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1", "STATUS=stopping")

    def alive(self) -> None:
        """As often as needed, however often it is called."""
        now_s = time.monotonic()
        if self.watchdog_s is not None and now_s >= self._next_alive_s:
            self._next_alive_s = now_s + self.watchdog_s / 4
            self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as made:
            made.setblocking(False)
            made.sendto("\n".join(line.replace("\n", " ") for line in lines).encode(), self._address)

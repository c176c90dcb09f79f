"""A person's shell in a machine: this terminal, byte for byte, joined to the machine's second console (hvc0)."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import sys
import termios
import threading
import tty
from collections.abc import Iterator

from zombiescope.lab.node import LabNode

_FOR_EVER_S = 30 * 86_400.0
_SHELL = (
    "stty -F /dev/hvc0 rows {rows} cols {columns};exec setsid --ctty --wait /bin/bash -l < /dev/hvc0 > /dev/hvc0 2>&1"
)


def attach(node: LabNode) -> int:
    """Give the person a root shell in the node; answers its exit code when it ends."""
    size = shutil.get_terminal_size()
    script = _SHELL.format(rows=size.lines, columns=size.columns)
    environment = {"TERM": os.environ.get("TERM", "linux"), "PS1": "\\u@\\h:\\w# "}
    ended: list[int] = []

    def shell() -> None:
        done = node.run("/bin/sh", "-c", script, limit_s=_FOR_EVER_S, environment=environment)
        ended.append(done.exit or 0)

    worker = threading.Thread(target=shell, daemon=True)
    with _raw(sys.stdin.fileno()):
        worker.start()
        while worker.is_alive():
            _pass_on(node.terminal)
        _pass_on(node.terminal)
    return ended[0] if ended else 1


def _pass_on(console: socket.socket) -> None:
    keyboard = sys.stdin.fileno()
    for ready in select.select([keyboard, console], [], [], 0.1)[0]:
        if ready is console:
            os.write(sys.stdout.fileno(), console.recv(1 << 16))
        else:
            console.sendall(os.read(keyboard, 1 << 12))


@contextlib.contextmanager
def _raw(terminal: int) -> Iterator[None]:
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)

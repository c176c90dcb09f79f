"""Runs inside the machine, as root: commands come in over a virtio-serial port, their output goes back.

One JSON object a line. In: {"id", "argv", "stdin" (base64), "limit_s", "cwd", "env"}. Out: {"id", "stdout"} and
{"id", "stderr"} (base64) as they come, then {"id", "exit"} or {"id", "exit": null, "why"}. {"hello": ...} when
the agent starts. Copied into the image as it stands, so it uses the standard library and nothing of ours.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any

PORT = "/dev/virtio-ports/zombiescope.agent"
_CHUNK = 1 << 16
_LINGER_S = 3.0


class Port:
    """The guest's end of the channel."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._lines = os.fdopen(os.dup(fd), "rb")

    def send(self, frame: dict[str, Any]) -> None:
        data = json.dumps(frame).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]

    def receive(self) -> dict[str, Any] | None:
        line = self._lines.readline()
        return json.loads(line) if line.strip() else None

    def close(self) -> None:
        self._lines.close()


def pump(port: Port, number: int, name: str, stream: IO[bytes]) -> None:
    """Pass on what a command writes until it closes."""
    with stream:
        while chunk := os.read(stream.fileno(), _CHUNK):
            port.send({"id": number, name: base64.b64encode(chunk).decode()})


def feed(stream: IO[bytes], data: bytes) -> None:
    """Give a command its input; it need not want it."""
    with contextlib.suppress(BrokenPipeError), stream:
        stream.write(data)


def run(port: Port, request: dict[str, Any]) -> None:
    """Run one command to its end and report how it ended."""
    number = request["id"]
    try:
        child = start(request)
    except OSError as error:
        port.send({"id": number, "exit": 127, "why": str(error)})
        return
    assert child.stdin
    assert child.stdout
    assert child.stderr
    output = [
        threading.Thread(target=pump, args=(port, number, name, stream), daemon=True)
        for name, stream in (("stdout", child.stdout), ("stderr", child.stderr))
    ]
    data = base64.b64decode(request.get("stdin", ""))
    for thread in (*output, threading.Thread(target=feed, args=(child.stdin, data), daemon=True)):
        thread.start()
    late = wait(child, request.get("limit_s"))
    # A daemon left behind may hold the pipe open for ever; the command itself has ended.
    for thread in output:
        thread.join(_LINGER_S)
    result = {"exit": None, "why": "limit reached"} if late else {"exit": child.returncode, "why": None}
    port.send({"id": number, **result})


def start(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **request.get("env", {})}
    return subprocess.Popen(  # noqa: S603  running what we are told is what this is for
        request["argv"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=request.get("cwd") or "/root",
        env=environment,
    )


def wait(child: subprocess.Popen[bytes], limit_s: float | None) -> bool:
    """True when the limit came first; then the whole session was killed."""
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return True
    return False


def main() -> None:
    port = Port(os.open(PORT, os.O_RDWR))
    port.send({"hello": {"python": sys.version.split()[0], "kernel": os.uname().release}})
    while True:
        request = port.receive()
        if request is None:
            time.sleep(0.1)  # nobody at the other end: reading gives nothing, at once
        else:
            run(port, request)


if __name__ == "__main__":
    main()

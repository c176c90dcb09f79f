"""The host's end of the virtio-serial channel: commands into the machine, their output back, without a network.

The protocol is described in guest_agent.py. One command at a time; every command has a limit, kept by the agent,
and a second one here for when the machine itself stands still. Software emulation is slow, so limits are generous.
"""

from __future__ import annotations

import base64
import contextlib
import json
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.lab.failure import LabError

_GRACE_S = 30.0
"""How long after its limit a command may take to be killed and reported before the machine counts as stuck."""

Watcher = Callable[[str, bytes], None]
"""Called with "stdout" or "stderr" and what came, while the command runs."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command in the machine ended. `exit` is None when it reached its limit and was killed."""

    argv: tuple[str, ...]
    exit: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    why: str | None = None

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    def check(self) -> Done:
        """Itself if the command succeeded, else an error with the end of what it said."""
        if self.exit == 0:
            return self
        said = " | ".join((self.stderr or self.stdout).decode(errors="replace").strip().splitlines()[-4:])
        how = "timed out" if self.exit is None else f"exited with {self.exit}"
        raise LabError(f"in the machine, `{' '.join(self.argv)}` {how}: {said or self.why or 'it printed nothing'}")


class Channel:
    """Requests and replies over one socket, whose other end is a port of the machine."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()
        self._number = 0
        self.hello: dict[str, Any] | None = None

    def wait_for_agent(self, limit_s: float, alive: Callable[[], None]) -> dict[str, Any]:
        """Wait until the agent greets. `alive` raises when waiting has become pointless."""
        for frame in self._frames(time.monotonic() + limit_s, alive):
            if "hello" in frame:
                self.hello = frame["hello"]
                return frame["hello"]  # type: ignore[no-any-return]  # JSON
        raise LabError(f"the machine did not come up within {limit_s:.0f} s")

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        limit_s: float = 60.0,
        environment: Mapping[str, str] | None = None,
        watch: Watcher | None = None,
        alive: Callable[[], None] = lambda: None,
    ) -> Done:
        """Run a command in the machine to its end."""
        self._number += 1
        request = {
            "id": self._number, "argv": list(argv), "stdin": base64.b64encode(stdin).decode(), "limit_s": limit_s,
            "env": dict(environment or {}),
        }  # fmt: skip
        begun = time.monotonic()
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        output: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        for frame in self._frames(begun + limit_s + _GRACE_S, alive):
            if frame.get("id") != self._number:
                continue
            for name in output.keys() & frame.keys():
                chunk = base64.b64decode(frame[name])
                output[name].append(chunk)
                if watch is not None:
                    watch(name, chunk)
            if "exit" in frame:
                texts = (b"".join(output["stdout"]), b"".join(output["stderr"]))
                return Done(tuple(argv), frame["exit"], *texts, time.monotonic() - begun, frame.get("why"))
        raise LabError(f"the machine hangs: no answer to `{' '.join(argv)}` in {limit_s + _GRACE_S:.0f} s")

    def _frames(self, deadline: float, alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
        while (left := deadline - time.monotonic()) > 0:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                with contextlib.suppress(ValueError):  # a line cut by an agent that was restarted
                    yield json.loads(line)
                continue
            alive()
            if select.select([self._socket], [], [], min(left, 0.5))[0]:
                chunk = self._socket.recv(1 << 16)
                if not chunk:
                    alive()
                    raise LabError("the machine closed its channel")
                self._buffer += chunk

    def close(self) -> None:
        self._socket.close()

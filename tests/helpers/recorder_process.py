"""A real recorder in a process of its own, for tests that need one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zombiescope.store import log

DEADLINE_S = 30.0


class RecorderProcess:
    """Started on construction; `stop` ends it in order and gives its result."""

    def __init__(
        self, directory: Path, *, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None, **config: Any
    ) -> None:
        settings = {"dir": str(directory), "node": "here", "json": True, **config}
        self.node_dir = directory / "node=here"
        runtime = next(place for place in directory.parents if place.is_dir()) / "runtime"
        runtime.mkdir(exist_ok=True)
        runtime.chmod(0o1777)  # as /tmp: nobody removes what is another's
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "zombiescope.recorder", json.dumps(settings)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(runtime), **(env or {})},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def segments(self) -> list[Path]:
        return sorted(self.node_dir.glob("log/*.seg"))

    def frames(self) -> int:
        """Frames on disk now, over all segments."""
        count = 0
        for path in self.segments():
            try:
                with open(path, "rb") as file:
                    count += sum(1 for _ in log.SegmentReader(file).frames())
            except (log.DamagedError, FileNotFoundError):
                continue  # just being made, or just retired
        return count

    def wait_for_frames(self, count: int) -> None:
        """Returns when so many more seconds are on disk."""
        wanted = self.frames() + count
        end = time.monotonic() + DEADLINE_S + count
        while self.frames() < wanted:
            if self._process.poll() is not None:
                raise AssertionError(f"the recorder ended: {self._process.communicate()}")
            if time.monotonic() > end:
                raise AssertionError(f"no {wanted} frames within {DEADLINE_S} s")
            time.sleep(0.05)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) once it has ended."""
        out, err = self._process.communicate(timeout=DEADLINE_S)
        return self._process.returncode, out, err

    def stop(self) -> dict[str, Any]:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        code, out, err = self.wait()
        assert code == 0, err
        result: dict[str, Any] = json.loads(out)
        return result

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=DEADLINE_S)


@contextmanager
def recording(directory: Path, **options: Any) -> Iterator[RecorderProcess]:
    """A recorder that is running and writing inside the block, and gone after it."""
    process = RecorderProcess(directory, **options)
    try:
        process.wait_for_frames(2)
        yield process
    finally:
        process.kill()

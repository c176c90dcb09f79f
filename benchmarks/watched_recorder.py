"""A recorder that also tells how large its own tables are: what no /proc file says.

    python -m benchmarks.watched_recorder SIZES_FILE '<json of the recorder>'

Every container that can be reached from the recorder through attributes of our own classes is measured, by name, once a
minute, in a thread. Nothing is listed by hand, so a table that is added tomorrow is watched as well. Beside them stands
what the memory is made of: pages of files and others, what malloc holds and what of that is in use, Python's blocks."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.recorder import __main__ as program
from zombiescope.recorder.config import parse
from zombiescope.recorder.recorder import Recorder

EVERY_S = 60.0
DEEPEST = 6
_SIZED = (dict, list, set, deque, bytearray)


def sizes(thing: object) -> dict[str, int]:
    """Attribute path -> how many are in it."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    waiting: deque[tuple[str, object, int]] = deque([("", thing, 0)])
    while waiting:
        path, one, depth = waiting.popleft()
        for name, value in _attributes(one):
            if id(value) in seen or depth > DEEPEST:
                continue
            seen.add(id(value))
            where = f"{path}.{name}" if path else name
            if isinstance(value, _SIZED):
                found[where] = len(value)
            elif _is_ours(value):
                waiting.append((where, value, depth + 1))
    return found


def _attributes(one: object) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(one, "__dict__", {}).items())
    for kind in type(one).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(one, name):
                yield name, getattr(one, name)


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith("zombiescope.") and not isinstance(value, type)


class _Malloc(ctypes.Structure):
    """struct mallinfo2 of glibc 2.33."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
        )
    )  # fmt: skip


def memory() -> dict[str, int]:
    """Bytes, but `blocks`: how many small objects Python has."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    kinds: tuple[str, ...] = ("RssAnon", "RssFile", "RssShmem")
    found = {name: int(status[name].split()[0]) << 10 for name in kinds if name in status}
    found["blocks"] = sys.getallocatedblocks()
    asked = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if asked is None:
        return found
    asked.restype = _Malloc
    heap = asked()
    return found | {"heap_in_use": heap.uordblks, "heap_free": heap.fordblks, "mapped_by_malloc": heap.hblkhd}


def _append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line)


class WatchedRecorder(Recorder):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        threading.Thread(target=self._watch, daemon=True, name="sizes").start()

    def _watch(self) -> None:
        started = time.monotonic()
        while True:
            said = {"at_s": round(time.monotonic() - started, 1), "sizes": sizes(self), "memory": memory()}
            with suppress(OSError):  # a disk that is full costs a reading
                _append(Path(sys.argv[1]), json.dumps(said) + "\n")
            time.sleep(EVERY_S)


if __name__ == "__main__":
    program.Recorder = WatchedRecorder  # type: ignore[attr-defined]
    code = program.record(parse(sys.argv[2]))
    sys.stdout.flush()
    os._exit(code)

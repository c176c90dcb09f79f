"""The seconds around an incident: twenty of them on four cores, one of which the kernel holds for six.

A window is encoded once for each fault and moment and becomes the files of every node that has it: a segment, and the
Parquet part that the real compaction makes of it.
"""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.fleets.faults import LEAK, WORK, Fault
from zombiescope.store import schema
from zombiescope.store.compact import compact
from zombiescope.store.log import SegmentEncoder, encode_rows

SECOND_US = 1_000_000
SECONDS, CORES, HZ = 20, 4, 49
STUCK = range(7, 13)
_MODES = ("user_ms", "system_ms", "idle_ms")

Files = dict[str, bytes]
"""By their names in the node's directory."""


@cache
def segment(start_us: int, boot: str, fault: Fault | None, seed: int = 0) -> bytes:
    """One window. `fault` None: the node was well, and somebody froze it to compare."""
    rng = random.Random(seed)
    made = _Rows(start_us)
    for second in range(SECONDS):
        wall_us = start_us + (second + 1) * SECOND_US
        stuck = 1 if fault is not None and second in STUCK else None
        made.second(rng, wall_us, fault, stuck)
    header = {
        "format": schema.FORMAT, "boot": boot, "hz": HZ, "event": "cpu-clock", "seq": 0, "interval_us": SECOND_US,
        "recorder_started_us": start_us, "started_us": start_us,
    }  # fmt: skip
    encoder = SegmentEncoder(header)
    wall_us = start_us + SECONDS * SECOND_US
    blocks = [encode_rows(schema.BY_NAME[name], rows, wall_us) for name, rows in made.tables.items()]
    body = [
        encoder.frame(start_us + SECOND_US, SECOND_US * 1000, []),
        encoder.frame(wall_us, SECONDS * SECOND_US * 1000, blocks),
    ]
    return b"".join((encoder.preamble, *body, encoder.frame(wall_us, SECONDS * SECOND_US * 1000, [], closes=True)))


@cache
def parquet(start_us: int, boot: str, fault: Fault | None, seed: int = 0) -> Files:
    """The same as the part that compaction makes of it."""
    with tempfile.TemporaryDirectory() as place:
        node_dir = Path(place)
        (node_dir / "log").mkdir()
        (node_dir / "log" / f"{start_us:016d}.seg").write_bytes(segment(start_us, boot, fault, seed))
        compact(node_dir)
        found = (path for path in node_dir.rglob("date=*/*") if path.is_file())
        return {str(path.relative_to(node_dir)): path.read_bytes() for path in found}


class _Rows:
    def __init__(self, start_us: int) -> None:
        self.start_us = start_us
        self.tables: dict[str, list[tuple[Any, ...]]] = {}
        self._ids: dict[str, dict[Any, int]] = {}

    def second(self, rng: random.Random, wall_us: int, fault: Fault | None, stuck: int | None) -> None:
        for cpu in range(CORES):
            held = cpu == stuck
            busy = 0 if held else rng.randrange(300, 600)
            self._core(wall_us, cpu, user=busy, system=1000 if held else 40)
            for sample in range(HZ if held else HZ * busy // 1000):
                at_us = wall_us - SECOND_US + sample * SECOND_US // HZ
                self._sample(at_us, cpu, *self._running(rng, fault if held else None))
        if stuck is not None and fault is not None and wall_us - SECOND_US == self.start_us + STUCK[-1] * SECOND_US:
            self._said(wall_us, fault)

    def _running(self, rng: random.Random, fault: Fault | None) -> tuple[int, int]:
        if fault is None:
            user, kernel = rng.choice(WORK)
            return self._task(100, "python3", "ray-worker.service"), self._stack(user, kernel)
        depth = len(fault.frames) - rng.choice((0, 0, 0, 1))
        return self._task(200, fault.hog, fault.culprit), self._stack(("_start", fault.hog), fault.frames[:depth])

    def _said(self, wall_us: int, fault: Fault) -> None:
        if fault.event is not None:
            kind, text, fields = fault.event
            self._add("events", time=wall_us, kind=kind, source="kmsg", severity="critical", text=text, fields=fields)
        self._add("events", time=wall_us, kind="unit_restart", source="systemd", severity="warning",
                  text=f"{fault.culprit} was restarted", fields=json.dumps({"unit": fault.culprit}))  # fmt: skip
        if fault.zombies_per_hour:
            self._add("leaks", time=wall_us, path=LEAK, dying=20_000, created=21_000, removed=20_500, released=500,
                      exact=1, comm="ecs-agent", pid=1, unit=fault.culprit)  # fmt: skip

    def _core(self, wall_us: int, cpu: int, **used: int) -> None:
        zeros = dict.fromkeys(schema.CORES.names, 0)
        modes = {f"{mode}_ms": amount for mode, amount in used.items()}
        idle = max(0, 1000 - sum(used.values()))
        self._add("cores", **{**zeros, **modes, "idle_ms": idle, "time": wall_us, "interval_us": SECOND_US, "cpu": cpu})

    def _sample(self, at_us: int, cpu: int, task: int, stack: int) -> None:
        self._add("samples", time=at_us, cpu=cpu, task=task, stack=stack)

    def _stack(self, user: tuple[str, ...], kernel: tuple[str, ...]) -> int:
        named = [(name, "python3", "user") for name in user] + [(name, "[kernel]", "kernel") for name in kernel]
        frames = tuple(self._id("frames", "frame", key, name=key[0], module=key[1], kind=key[2]) for key in named)
        return self._id("stacks", "stack", frames, frames=frames)

    def _task(self, pid: int, comm: str, unit: str) -> int:
        return self._id("tasks", "task", (pid, comm), pid=pid, tid=pid, comm=comm, unit=unit)

    def _id(self, table: str, column: str, key: Any, **values: Any) -> int:
        known = self._ids.setdefault(table, {})
        if key not in known:
            known[key] = len(known)
            self._add(table, **{column: known[key]}, **values)
        return known[key]

    def _add(self, table: str, **values: Any) -> None:
        self.tables.setdefault(table, []).append(tuple(values.get(name) for name in schema.BY_NAME[table].names))

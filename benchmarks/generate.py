"""A recording of a large node, made up: 96 cores at 97 Hz for twelve hours, 30 % busy, are 121 million samples.

    python -m benchmarks.generate [--hours 12] [--cpus 96] [--remove]

Samples are drawn from world.py. Cores have tasks that stay on them for a while, work comes in bursts and at the start
of each second, once one core hangs in the kernel for eight seconds, and every ten minutes another one for two. A unit
crashes every eleven seconds. The rows go through the same PartMerger that compaction uses, a quarter of an hour at a
time, so files, encodings and summaries are the real ones. Beside `samples`, its dictionaries and `cores` there are as
many counters, events and censuses as a recorder writes; the other tables are small.

The result is kept in $XDG_CACHE_HOME/zombiescope/bench (default ~/.cache) and used again; --remove deletes it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import world
from benchmarks.world import PROGRAMS, Ints, World
from zombiescope.store import columns, layout, schema
from zombiescope.store.layout import Manifest, Span
from zombiescope.store.merge import PartMerger
from zombiescope.store.part import Damage

START_US = 1_775_001_600_000_000
"""2026-04-01 00:00:00 UTC."""
SECOND_US = 1_000_000
PART_S = 900
HZ = 97
BUSY = 0.30
BOOT = "b3a1f0c2-5d7e-4b90-8a46-1c2d3e4f5a6b"
NODE = "large"
SLOTS = 10
"""A core keeps its task for a tenth of a second or several of them."""
STACKS_PER_PART = 50_000
STUCK_S = 8
SHORT_S, SHORT_EVERY_S = 2, 600
RESTART_S = 11
COUNTERS = 60
VERSION = 2
"""Raised when what is generated changes, so that an old one is made again."""


@dataclass(frozen=True, slots=True)
class Plan:
    hours: float = 12
    cpus: int = 96

    @property
    def seconds(self) -> int:
        return round(self.hours * 3600)

    @property
    def parts(self) -> int:
        return -(-self.seconds // PART_S)

    @property
    def stuck_us(self) -> int:
        """When the core that hangs begins to."""
        return START_US + self.seconds * 3 // 5 * SECOND_US + 250_000

    @property
    def stuck_cpu(self) -> int:
        return self.cpus * 2 // 5

    def hangs(self) -> list[tuple[int, int, int]]:
        """(core, from, to) of every time that a core hangs."""
        short = [
            (START_US + second * SECOND_US, second // SHORT_EVERY_S * 13 % self.cpus)
            for second in range(SHORT_EVERY_S // 2, self.seconds, SHORT_EVERY_S)
        ]
        long = (self.stuck_cpu, self.stuck_us, self.stuck_us + STUCK_S * SECOND_US)
        return [long, *((cpu, at_us, at_us + SHORT_S * SECOND_US) for at_us, cpu in short)]


def cached(plan: Plan) -> Path:
    """The recording's directory; made when it is not there."""
    place = cache() / f"{plan.cpus}cpus-{plan.hours:g}h-v{VERSION}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        _make(plan, place)
        (place / "complete").touch()
    return place


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zombiescope" / "bench"


def _make(plan: Plan, place: Path) -> None:
    node_dir = place / f"{layout.NODE_FOLDER}{NODE}"
    (node_dir / "log").mkdir(parents=True)
    who = {
        "format": schema.FORMAT, "node": NODE, "boot": BOOT, "hz": HZ, "event": "cpu-clock", "kernel": "5.4.0-1024-aws",
        "machine": "x86_64", "os": "made up", "timezone": "UTC", "interval_s": 1.0, "started_us": START_US,
        "cpus": {"online": list(range(plan.cpus)), "possible": plan.cpus}, "labels": {}, "missing": [],
    }  # fmt: skip
    (node_dir / "node.json").write_text(json.dumps(who))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, samples in enumerate(pool.map(partial(_write_part, plan, node_dir), range(plan.parts))):
            sys.stderr.write(f"\rpart {number + 1} of {plan.parts}, {samples:,} samples ")
    sys.stderr.write("\n")


_worlds: list[World] = []


def _write_part(plan: Plan, node_dir: Path, number: int) -> int:
    """One quarter of an hour; answers how many samples it has."""
    if not _worlds:
        _worlds.append(world.make())
    source = _Drawn(plan, _worlds[0], number)
    folder = node_dir / layout.date_folder(source.start_us)
    folder.mkdir(exist_ok=True)
    merger = PartMerger(f"{NODE}-{source.start_us}", lambda table: folder / f"{table}-{source.start_us:016d}.tmp")
    merger.add(source)
    facts, ids = merger.finish()
    span = Span(source.start_us, source.end_us, START_US, BOOT, number, number, *(
        (at - START_US) * 1000 for at in (source.start_us, source.end_us)))  # fmt: skip
    manifest = Manifest(merger.part, source.start_us, source.end_us, BOOT, (), facts, ids, (span,))
    for table in facts:
        (folder / f"{table}-{source.start_us:016d}.tmp").rename(node_dir / manifest.file(table))
    layout.write_synced(node_dir / manifest.name, manifest.to_json())
    return facts["samples"].rows


class _Drawn:
    """One part as PartMerger wants it."""

    name = "drawn"
    boot = BOOT

    def __init__(self, plan: Plan, node: World, number: int) -> None:
        self.damage: list[Damage] = []
        self._plan, self._world = plan, node
        self._rng = np.random.default_rng([plan.cpus, number])
        self.start_us = START_US + number * PART_S * SECOND_US
        self._seconds = min(PART_S, plan.seconds - number * PART_S)
        self.end_us = self.start_us + self._seconds * SECOND_US
        self._active = _active_stacks(node, number)
        self._tables = {schema.SAMPLES.name: self._samples(), **self._dictionaries()}
        self._tables[schema.CORES.name] = self._cores()
        self._tables |= self._beside()

    def touches(self, table: schema.Table, _start_us: int | None, _end_us: int | None) -> bool:
        return table.name in self._tables

    def rows(
        self, table: schema.Table, _start_us: int | None, _end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        return self._tables.get(table.name, columns.empty(table, wanted))

    def count(self, table: schema.Table) -> int:
        return len(self.rows(table, None, None, None))

    def ids(self) -> dict[str, int]:
        tasks = len(self._world.task_program)
        return {"stack": len(self._used), "frame": len(self._world.names), "task": tasks, "series": COUNTERS}

    def spans(self) -> tuple[Span, ...]:
        return ()

    # --- samples ----------------------------------------------------------------------------------------------------

    def _samples(self) -> pa.Table:
        rng, plan = self._rng, self._plan
        moments = self._seconds * HZ
        phase = np.sort(np.random.default_rng(5).integers(0, SECOND_US // HZ, plan.cpus))
        cpu_at = np.random.default_rng(6).permutation(plan.cpus)
        ticks = np.arange(moments, dtype=np.int64) * SECOND_US // HZ
        slot = ticks * SLOTS // SECOND_US
        chance, task_at = self._slots(int(slot[-1]) + 1)
        busy = rng.random((moments, plan.cpus), np.float32) < chance[slot][:, cpu_at]
        stuck = self._stuck(ticks)
        busy |= stuck[:, cpu_at]
        at, place = np.nonzero(busy)
        jitter = rng.integers(0, 30, len(at))
        time_us = self.start_us + ticks[at] + phase[place] + jitter
        cpu = cpu_at[place]
        task = task_at[slot[at], cpu]
        hangs = stuck[at, cpu]
        task[hangs] = self._walker
        stack = self._stacks(self._world.task_program[task])
        stack[hangs] = self._world.stuck
        self._used, local = np.unique(stack, return_inverse=True)
        self._counted = np.bincount((time_us - self.start_us) // SECOND_US * plan.cpus + cpu,
                                    minlength=(self._seconds + 1) * plan.cpus)  # fmt: skip
        inside = time_us < self.end_us
        none = np.zeros(int(inside.sum()), bool)
        values: dict[str, tuple[Ints, npt.NDArray[np.bool_] | None]] = {
            "time": (time_us[inside], None), "cpu": (cpu[inside], None), "task": (task[inside], None),
            "stack": (local[inside], None), "period": (time_us[inside], none), "series": (cpu[inside], none),
        }  # fmt: skip
        return _table(schema.SAMPLES, values)

    def _slots(self, slots: int) -> tuple[npt.NDArray[np.float32], Ints]:
        """How busy each core is in each tenth of a second, and which task it runs."""
        rng, cpus = self._rng, self._plan.cpus
        base = np.random.default_rng(7).beta(1.2, 2.2, cpus)
        burst = rng.random((slots // 30 + 2, cpus)) < 0.25
        chance = base[None, :] * (0.6 + 1.6 * np.repeat(burst, 30, axis=0)[:slots])
        chance[np.arange(slots) % SLOTS == 0] += 0.25  # timers and collectors run when a second begins
        chance *= BUSY / chance.mean()
        for _ in range(3):  # what is cut off at 1 is given to the others
            chance = np.minimum(chance, 1)
            chance *= BUSY / chance.mean()
        shares = np.array([program.share for program in PROGRAMS])
        tasks_of = np.cumsum([0, *(program.threads for program in PROGRAMS)])
        runs = rng.random((slots // 3 + 1, cpus))
        program = np.searchsorted(np.cumsum(shares / shares.sum()), runs).clip(max=len(PROGRAMS) - 1)
        threads = np.array([program.threads for program in PROGRAMS])[program]
        # A core runs the same thread of a program most of the time.
        own = (np.arange(cpus)[None, :] * 7 + (rng.random(program.shape) < 0.15) * 13) % threads
        task = np.repeat(tasks_of[program] + own, 3, axis=0)[:slots]
        return np.minimum(chance, 1).astype(np.float32), task

    def _stuck(self, ticks: Ints) -> npt.NDArray[np.bool_]:
        """[tick, core]"""
        at = self.start_us + ticks
        stuck = np.zeros((len(ticks), self._plan.cpus), bool)
        for cpu, from_us, to_us in self._plan.hangs():
            stuck[:, cpu] |= (at >= from_us) & (at < to_us)
        return stuck

    def _stacks(self, program: Ints) -> Ints:
        """A heavy head and a long tail for each program."""
        stack = np.empty(len(program), np.int64)
        for number in range(len(PROGRAMS)):
            mine = np.flatnonzero(program == number)
            active = self._active[number]
            stack[mine] = active[(len(active) * self._rng.random(len(mine)) ** 4).astype(np.int64)]
        return stack

    @property
    def _walker(self) -> int:
        """A thread of kubelet, as the first one that a core ever hung with."""
        names = [program.comm for program in PROGRAMS]
        return sum(program.threads for program in PROGRAMS[: names.index("kubelet")])

    # --- the other tables -------------------------------------------------------------------------------------------

    def _dictionaries(self) -> dict[str, pa.Table]:
        node = self._world
        lengths = node.lengths[self._used]
        frames = node.frames[self._used]
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        flat = columns.ints_array(frames[frames >= 0].astype(np.int64), None, pa.int32())
        ids = columns.ints_array(np.arange(len(lengths)), None, pa.int32())
        stacks = pa.Table.from_arrays(
            [ids, columns.lists_array(offsets, flat)], schema=columns.arrow_schema(schema.STACKS)
        )
        named = list(zip(range(len(node.names)), node.names, node.modules, node.kinds, strict=True))
        who = [
            (number, *(row.get(name) for name in schema.TASKS.names[1:]))
            for number, row in enumerate(world.tasks(node))
        ]
        return {"stacks": stacks, "frames": _rows(schema.FRAMES, named), "tasks": _rows(schema.TASKS, who)}

    def _cores(self) -> pa.Table:
        cpus, seconds = self._plan.cpus, self._seconds
        rows = seconds * cpus
        got = self._counted[:rows]
        busy_ms = got * 1000 // HZ
        hung = self._stuck(np.arange(seconds, dtype=np.int64) * SECOND_US + SECOND_US // 2).reshape(-1)
        values: dict[str, tuple[Ints, npt.NDArray[np.bool_] | None]] = {
            name: (np.zeros(rows, np.int64), None) for name in schema.CORES.names
        }
        noise = self._rng.integers(0, 60, rows)
        values |= {
            "time": (self.start_us + (1 + np.repeat(np.arange(seconds), cpus)) * SECOND_US, None),
            "interval_us": (np.full(rows, SECOND_US), None),
            "cpu": (np.tile(np.arange(cpus), seconds), None),
            "user_ms": (np.where(hung, 0, busy_ms * 6 // 10), None),
            "system_ms": (np.where(hung, busy_ms, busy_ms * 4 // 10), None),
            "idle_ms": (1000 - busy_ms, None),
            "samples": (got, None),
            "idle_samples": (HZ - got, None),
            "expected_samples": (np.full(rows, HZ), None),
            "max_gap_us": (10_309 + noise, None),
            "softirq_timer": (200 + noise, None),
            "softirq_sched": (90 + noise // 2, None),
            "softnet_processed": (noise * 17, None),
            "ksoftirqd_delay_us": (noise * 3, None),
        }
        return _table(schema.CORES, values)

    def _beside(self) -> dict[str, pa.Table]:
        """What a recorder writes beside samples, row for row as often."""
        seconds = range(1, self._seconds + 1)
        at = [self.start_us + second * SECOND_US for second in seconds]
        first = (self.start_us - START_US) // SECOND_US
        series = [(number, "vmstat", f"counter{number}", None, "counter") for number in range(COUNTERS)]
        counters = [(at_us, number, 1000 + number) for at_us in at for number in range(COUNTERS)]
        census = [(at_us, "v1", 60_000 + first + second, 240, 59_760 + first + second, second, second, 0, 0)
                  for second, at_us in zip(seconds, at, strict=True)]  # fmt: skip
        restarts = [
            (at_us, "unit_restart", "systemd", "warning", "ecs.service was started again",
             json.dumps({"unit": "ecs.service", "delta": 1}))
            for second, at_us in zip(seconds, at, strict=True) if (first + second) % RESTART_S == 0
        ]  # fmt: skip
        leaks = [(at_us, "/ecs/*", 59_000 + first + second, second, second, 0, 1, "ecs-agent", 811, *(None,) * 5)
                 for second, at_us in zip(seconds, at, strict=True) if second % 10 == 0]  # fmt: skip
        tables: dict[str, Sequence[tuple[object, ...]]] = {
            "series": series,
            "counters": counters,
            "census": census,
            "events": restarts,
            "leaks": leaks,
        }
        return {name: _rows(schema.BY_NAME[name], rows) for name, rows in tables.items() if rows}


def _active_stacks(node: World, number: int) -> list[Ints]:
    """The stacks of each program that a part can sample, the hottest first: some always, the others by chance."""
    rng = np.random.default_rng([17, number])
    active = []
    for program in range(len(PROGRAMS)):
        first, behind = node.of_program(program)
        wanted = min(behind - first, (behind - first) * STACKS_PER_PART // len(node.lengths) + 50)
        always = wanted // 5
        others = first + always + rng.choice(behind - first - always, wanted - always, replace=False)
        active.append(np.concatenate([np.arange(first, first + always), others]))
    return active


def _table(table: schema.Table, values: dict[str, tuple[Ints, npt.NDArray[np.bool_] | None]]) -> pa.Table:
    target = columns.arrow_schema(table)
    return pa.Table.from_arrays(
        [columns.ints_array(*values[field.name], field.type) for field in target], schema=target
    )


def _rows(table: schema.Table, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    arrays = [
        columns.arrow_array(column.kind, columns.arrow_type(column), [(list(values), len(rows))])
        for column, values in zip(table.columns, zip(*rows, strict=True), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=columns.arrow_schema(table))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=12)
    parser.add_argument("--cpus", type=int, default=96)
    parser.add_argument("--remove", action="store_true", help="delete every recording that was made, and nothing else")
    options = parser.parse_args()
    if options.remove:
        shutil.rmtree(cache(), ignore_errors=True)
        return 0
    started = time.monotonic()
    print(cached(Plan(options.hours, options.cpus)))
    sys.stderr.write(f"{time.monotonic() - started:.0f} s\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

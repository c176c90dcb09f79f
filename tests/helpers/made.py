"""The maker of synthetic recordings: rows by the names of their columns on one axis of time, through the real encoder.

A `Node` holds what happened: tasks and their units, stacks, samples, cores, counters, events, census, leaks. What is
not said was not recorded. Its ids are those of one segment; `take` gives the rows that are new, for segments of many
frames, and `write_segment` makes a segment of them. The nodes that tests look at (recordings, scenes, samples below)
say what happens, and are built of this.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zombiescope.store import schema
from zombiescope.store.log import SegmentEncoder, encode_rows
from zombiescope.store.reader import Recording, open_recording

START_US = 1_760_000_000_000_000
"""2025-10-09 08:53:20 UTC."""
BOOT = "5b9a1a3e-7d0c-4c7a-9d35-0d8a4e1f2b60"
SECOND = 1_000_000
HZ = 99

_GPU_COUNTERS = (
    "ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed",
    "nvlink_errors", "nvlink_recoveries", "pcie_replays", "pcie_errors", "recovery_action",
)  # fmt: skip

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass
class Node:
    tables: Rows = field(default_factory=dict)
    _ids: dict[str, dict[Hashable, int]] = field(default_factory=dict)

    def add(self, table: str, **values: Any) -> None:
        """A row; columns that are not named have no value."""
        names = schema.BY_NAME[table].names
        assert not values.keys() - set(names), f"{table} has no {values.keys() - set(names)}"
        self.tables.setdefault(table, []).append(tuple(values.get(name) for name in names))

    def take(self) -> Rows:
        """The rows since the last call. Ids stay known."""
        taken = dict(self.tables)
        self.tables.clear()
        return taken

    # --- dictionaries: each gives the id -----------------------------------------------------------------------------

    def frame(self, name: str, kind: str = "kernel", module: str | None = None) -> int:
        return self._id("frames", "frame", (name, module, kind), name=name, module=module, kind=kind)

    def stack(self, frames: Sequence[int]) -> int:
        return self._id("stacks", "stack", tuple(frames), frames=tuple(frames))

    def task(self, pid: int, comm: str, *, tid: int | None = None, **known: Any) -> int:
        who = {"pid": pid, "tid": pid if tid is None else tid, "comm": comm, **known}
        return self._id("tasks", "task", tuple(who.items()), **who)

    def series(self, source: str, name: str, key: str | None = None, kind: str = "counter") -> int:
        return self._id("series", "series", (source, name, key), source=source, name=name, key=key, kind=kind)

    def _id(self, table: str, column: str, identity: Hashable, /, **values: Any) -> int:
        known = self._ids.setdefault(table, {})
        if identity not in known:
            known[identity] = len(known)
            self.add(table, **{column: known[identity]}, **values)
        return known[identity]

    # --- what happens, at a time in microseconds ---------------------------------------------------------------------

    def sample(self, at_us: int, cpu: int | None, task: int | None, stack: int | None) -> None:
        self.add("samples", time=at_us, cpu=cpu, task=task, stack=stack)

    def core(self, at_us: int, cpu: int, **figures: int | None) -> None:
        """The interval that ends there: milliseconds by mode, other columns by their names; what is left was idle."""
        row: dict[str, int | None] = {**dict.fromkeys(schema.CORES.names, 0), "interval_us": SECOND}
        row |= {f"{name}_ms" if name in schema.CPU_MODES else name: value for name, value in figures.items()}
        used = sum(row[f"{mode}_ms"] or 0 for mode in schema.CPU_MODES)
        if "idle" not in figures:
            row["idle_ms"] = max(0, (row["interval_us"] or 0) // 1000 - used)
        self.add("cores", **{**row, "time": at_us, "cpu": cpu})

    def count(self, at_us: int, series: int, value: int) -> None:
        self.add("counters", time=at_us, series=series, value=value)

    def interrupt(self, at_us: int, series: int, cpu: int, count: int) -> None:
        self.add("interrupts", time=at_us, series=series, cpu=cpu, count=count)

    def happen(self, at_us: int, kind: str, source: str, severity: str, text: str, **fields: Any) -> None:
        """An event."""
        what = {"kind": kind, "source": source, "severity": severity, "text": text}
        self.add("events", time=at_us, **what, fields=json.dumps(fields))

    def census(
        self, at_us: int, live: int, dying: int, *, created: int = 0, removed: int = 0, released: int = 0
    ) -> None:
        known = {"created": created, "removed": removed, "released": released, "lost": 0}
        self.add("census", time=at_us, hierarchy="v1", total=live + dying, live=live, dying=dying, **known)

    def leak(self, at_us: int, path: str, dying: int, *, created: int, removed: int, **creator: Any) -> None:
        counts = {"dying": dying, "created": created, "removed": removed, "released": 0, "exact": 1}
        self.add("leaks", time=at_us, path=path, **counts, **creator)

    def python(
        self, at_us: int, *, task_tid: int, frames: Sequence[int], lines: Sequence[int], until_us: int | None = None,
        looks: int = 1, comm: str | None = None, state: str | None = "R", pid: int | None = None,
    ) -> None:  # fmt: skip
        """What a thread was doing in Python: looks in a row that saw the same."""
        who = {"pid": task_tid if pid is None else pid, "tid": task_tid, "comm": comm, "state": state}
        stack = self.stack(frames)
        until_us = at_us if until_us is None else until_us
        self.add("python", time=at_us, until=until_us, looks=looks, **who, stack=stack, lines=tuple(lines))

    def container(self, at_us: int, id: str, **known: Any) -> None:  # noqa: A002 - as the column is called
        """A container, as the recorder learnt of it: name, image, pod, namespace, requester ..."""
        self.add("containers", time=at_us, id=id, **known)

    # --- GPUs --------------------------------------------------------------------------------------------------------

    def gpu(self, at_us: int, gpu: int = 0, *, state: str = "ok", **known: Any) -> None:
        """A GPU of an 8-GPU node that is well; counters are what the driver counts, from its beginning."""
        row = {
            "uuid": f"GPU-{gpu:08x}-0000-4000-8000-000000000000", "name": "NVIDIA H200",
            "pci": f"0000:{gpu + 1:02x}:00.0", "memory_bytes": 150_754_820_096, "driver": "570.86.15", "mig": 0,
            "power_limit_w": 700, "clock_sm_max_mhz": 1980, **dict.fromkeys(_GPU_COUNTERS, 0),
        }  # fmt: skip
        self.add("gpus", **{**row, "time": at_us, "gpu": gpu, "state": state, **known})

    def gpu_second(self, at_us: int, gpu: int = 0, utilisation: int | None = None, **figures: Any) -> None:
        """The second that ends there. Five samples of the same value unless they are given; other columns by name."""
        samples = None if utilisation is None else (utilisation,) * 5
        row = {"utilisation": utilisation, "utilisation_samples": samples, **figures}
        self.add("gpu_seconds", **{**row, "time": at_us, "gpu": gpu})

    def gpu_process(self, at_us: int, gpu: int, pid: int, comm: str, *, ended: bool = False, **known: Any) -> None:
        self.add("gpu_processes", time=at_us, gpu=gpu, pid=pid, comm=comm, ended=int(ended), **known)

    def wait(self, at_us: int, since_us: int, comm: str, pid: int, **known: Any) -> None:
        """A task found waiting at a look: kind, resource, wchan, frames, moves, alike, daemon ..."""
        who = {"pid": pid, "tid": pid, "comm": comm, "state": "D", "alike": 1, "kernel_thread": 0}
        self.add("waiting", time=at_us, since=since_us, **{**who, **known})

    def disk(self, at_us: int, device: str, *, in_flight: int = 0, **added: int) -> None:
        """A disk in the second that ends there; what is not named did not move."""
        names = ("reads", "writes", "others", "read_bytes", "written_bytes", "busy_ms", "weighted_ms")
        counts = {**dict.fromkeys(names, 0), **added}
        self.add("disks", time=at_us, interval_us=SECOND, device=device, in_flight=in_flight, **counts)

    def mount(self, at_us: int, kind: str, source: str, point: str, **known: Any) -> None:
        """A mount that somebody else serves, as it was found at a look."""
        self.add("mounts", time=at_us, kind=kind, source=source, point=point, **known)


# --- written ---------------------------------------------------------------------------------------------------------


def write_segment(
    directory: Path | str,
    tables: Rows,
    *,
    node: str = "lab",
    start_us: int = START_US,
    kernel: str = "5.4.0-1024-aws",
    boot: str = BOOT,
    seq: int = 0,
) -> Path:
    """A recording (or one more segment of it) of exactly these rows, for tests that need no whole machine.

    Rows go into the frame of the second in which their time lies; rows without a time into the first. Columns that a
    row leaves out at its end have no value.
    """
    node_dir = Path(directory) / f"node={node}"
    (node_dir / "log").mkdir(parents=True, exist_ok=True)
    header: dict[str, Any] = {
        "format": schema.FORMAT, "node": node, "boot": boot, "hz": HZ, "event": "cpu-clock", "seq": seq,
        "interval_us": SECOND, "recorder_started_us": START_US, "started_us": start_us,
    }  # fmt: skip
    describe(node_dir, header, kernel, 2)
    frames: dict[int, Rows] = {}
    for name, rows in tables.items():
        timed = schema.BY_NAME[name].time_column is not None
        width = len(schema.BY_NAME[name].names)
        for short in rows:
            row = (*short, *(None,) * (width - len(short)))
            second = max(0, (row[0] - start_us - 1) // SECOND) if timed else 0
            frames.setdefault(second, {}).setdefault(name, []).append(row)
    encoder = SegmentEncoder(header)
    path = node_dir / "log" / f"{start_us:016d}.seg"
    with path.open("wb") as file:
        file.write(encoder.preamble)
        for second, blocks in sorted(frames.items()):
            wall_us = start_us + (second + 1) * SECOND
            encoded = [encode_rows(schema.BY_NAME[name], rows, wall_us) for name, rows in blocks.items()]
            file.write(encoder.frame(wall_us, (second + 1) * SECOND * 1000, encoded))
    return path


def describe(node_dir: Path, header: dict[str, Any], kernel: str, cpus: int) -> None:
    """node.json beside the segments."""
    who = {
        **{key: header[key] for key in ("format", "node", "boot", "hz", "event")},
        "kernel": kernel, "machine": "x86_64", "os": "Ubuntu 20.04.6 LTS", "timezone": "Europe/Berlin",
        "cpus": {"online": list(range(cpus)), "possible": cpus}, "user_hz": 100,
        "interval_s": header["interval_us"] / SECOND, "started_us": header["recorder_started_us"],
        "labels": {"zone": "us-east-1a"},
        "missing": [{"source": "systemd", "why": "no D-Bus socket", "grant": "mount /run/dbus"}],
    }  # fmt: skip
    (node_dir / "node.json").write_text(json.dumps(who))


# --- exactly the samples that a test names ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    pid: int = 7
    tid: int = 7
    comm: str = "python3"
    unit: str | None = None
    container: str | None = None


@dataclass(frozen=True)
class Sample:
    """`stack` is written as "main;work;[k]do_syscall_64", outermost first; [k] is the kernel."""

    at_us: int
    stack: str | None
    cpu: int = 0
    task: Task | None = Task()


def write(directory: Path, samples: Sequence[Sample], *, start_us: int = START_US, seq: int = 0) -> Path:
    """One more segment with these samples; times are from its start, rows stay in the order given."""
    node = Node()
    for sample in samples:
        stack = None if sample.stack is None else node.stack([_frame(node, name) for name in sample.stack.split(";")])
        task = None if sample.task is None else node.task(**vars(sample.task))
        node.sample(start_us + sample.at_us, sample.cpu, task, stack)
    write_segment(directory, node.tables, start_us=start_us, seq=seq)
    return directory


def _frame(node: Node, name: str) -> int:
    if name.startswith("[k]"):
        return node.frame(name.removeprefix("[k]"), "kernel", "[kernel]")
    return node.frame(name, "user", "/usr/lib/libwork.so")


def opened(directory: Path, *samples: Sample) -> Recording:
    return open_recording(write(directory, samples))

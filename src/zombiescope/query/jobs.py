"""Distributed jobs and their ranks over a window: the table `ranks`, and the steps that programs reported.

A job is who has the same kind, the same id, the same user and, in Kubernetes, the same namespace; ranks without an id
are one job if they are in the same pod or have the same parent. A process can claim any rank: one that two processes of
a job have at the same time is not believed, and neither of them is judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from zombiescope.base.time import HOUR_US
from zombiescope.store import columns
from zombiescope.store.container_names import NAMELESS, ContainerName, read
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Rank:
    """A process of a job; `to_us` None: it was still there."""

    pid: int
    start_ticks: int | None
    rank: int | None
    world_size: int | None
    local_rank: int | None
    comm: str | None
    cgroup: str | None
    unit: str | None
    container: str | None
    pod: str | None
    from_us: int
    to_us: int | None
    named: ContainerName = NAMELESS

    def overlaps(self, from_us: int, to_us: int) -> bool:
        return self.from_us < to_us and (self.to_us is None or self.to_us > from_us)

    @property
    def text(self) -> str:
        return f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    """As people name it: slurm/4711.0, Job/train of a namespace, torchrun/RUN."""
    kind: str
    ranks: tuple[Rank, ...]
    """By rank; those without one last."""

    @property
    def twice(self) -> frozenset[int]:
        """Ranks that several living processes claim."""
        claims = Counter(one.rank for one in self.ranks if one.rank is not None and one.to_us is None)
        return frozenset(rank for rank, many in claims.items() if many > 1)

    @property
    def world_size(self) -> int | None:
        sizes = Counter(one.world_size for one in self.ranks if one.world_size is not None)
        return sizes.most_common(1)[0][0] if sizes else None

    def is_called(self, name: str) -> bool:
        """Whether a person means it: the id, its part behind the slash, or a pod of it."""
        pods = {path for one in self.ranks for path in (one.named.pod_path, one.pod) if path}
        return name in (self.id, self.id.partition("/")[2]) or name in pods


def jobs(recording: Recording, start_us: int, end_us: int) -> list[Job]:
    """Those with a process in the window, by id."""
    rows: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in columns.records(recording.table("ranks", start_us - HOUR_US, end_us)):
        if row["pid"] is not None:
            rows[row["pid"], row["start_ticks"]].append(row)
    if not rows:
        return []
    boxes = {same[-1]["container"] for same in rows.values() if same[-1]["container"]}
    names = read(recording, start_us, end_us, boxes) if boxes else None
    grouped: defaultdict[tuple[str, str, Any], list[Rank]] = defaultdict(list)
    for same in rows.values():
        one = _rank(sorted(same, key=lambda row: row["time"]), names)
        if one.overlaps(start_us, end_us):
            kind, name = _called(same[-1], one)
            grouped[kind, name, same[-1]["uid"]].append(one)
    found = [
        Job(f"{kind}/{name}", kind, tuple(sorted(ranks, key=_order))) for (kind, name, _), ranks in grouped.items()
    ]
    return sorted(found, key=lambda job: job.id)


def _order(one: Rank) -> tuple[bool, int, int]:
    return one.rank is None, one.rank or 0, one.pid


def _rank(rows: list[dict[str, Any]], names: Any) -> Rank:
    first, last = rows[0], rows[-1]
    named = NAMELESS if names is None else names.of(last["container"], last["pod"])
    known = {name: last[name] for name in ("pid", "start_ticks", "rank", "world_size", "local_rank", "comm", "cgroup",
                                           "unit", "container", "pod")}  # fmt: skip
    return Rank(**known, from_us=first["time"], to_us=last["time"] if last["ended"] else None, named=named)


def _called(row: dict[str, Any], one: Rank) -> tuple[str, str]:
    kind = row["kind"] or "torch"
    owner = one.named.owner
    if owner and kind != "slurm":
        return "kubernetes", f"{one.named.namespace or 'default'}/{owner}"
    if row["job"]:
        return kind, row["job"] if one.named.namespace is None else f"{one.named.namespace}/{row['job']}"
    return kind, one.pod or one.container or f"children of {row['ppid']}"


@dataclass(frozen=True, slots=True)
class Step:
    """A training step that a program reported; it ended when the next one was reported."""

    pid: int
    rank: int | None
    number: int | None
    phase: str | None
    at_us: int
    took_us: int


def steps(recording: Recording, start_us: int, end_us: int) -> list[Step]:
    """In the order of time, of every program."""
    found = []
    for row in columns.records(recording.table("steps", start_us - 10_000_000, end_us)):
        at_us, number = row["time"], row["first"]
        for place, took_us in enumerate(row["took_us"] or ()):
            if start_us <= at_us < end_us and row["pid"] is not None:
                each = None if number is None else number + place
                found.append(Step(row["pid"], row["rank"], each, row["phase"], at_us, took_us))
            at_us += took_us
    return sorted(found, key=lambda step: step.at_us)

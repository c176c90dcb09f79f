"""Tasks that wait in the kernel, and the mounts that somebody else serves, as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.store import columns
from zombiescope.store.hangs import hangs
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """One task at one look. None is what could not be read."""

    at_us: int
    since_us: int
    pid: int | None
    tid: int | None
    comm: str
    cgroup: str | None
    state: str | None
    wchan: str | None
    frames: tuple[str, ...]
    """Of its kernel stack, outermost first."""
    kind: str | None
    resource: str | None
    moves: bool | None
    alike: int
    """How many waited for the same thing."""
    kernel_thread: bool
    daemon: str | None
    bytes_per_s: int | None = None

    @property
    def seconds(self) -> float:
        return (self.at_us - self.since_us) / 1e6

    @property
    def hangs(self) -> bool:
        return hangs(self.kind, self.seconds, self.moves, kernel_thread=self.kernel_thread)


@dataclass(frozen=True, slots=True)
class Served:
    """A mount at one look; or a loop device (kind "loop", its name in `point`) whose file is on such a mount."""

    at_us: int
    kind: str
    source: str
    point: str
    device: str | None
    waiting: int | None
    answered: int | None
    resent: int | None


def waiting(recording: Recording, start_us: int, end_us: int) -> list[WaitingTask]:
    rows = columns.records(recording.table("waiting", start_us, end_us))
    return [
        WaitingTask(
            at_us=row["time"],
            since_us=row["time"] if row["since"] is None else row["since"],
            pid=row["pid"],
            tid=row["tid"],
            comm=row["comm"] or "?",
            cgroup=row["cgroup"],
            state=row["state"],
            wchan=row["wchan"],
            frames=tuple((row["frames"] or "").split(";")) if row["frames"] else (),
            kind=row["kind"],
            resource=row["resource"],
            moves=None if row["moves"] is None else bool(row["moves"]),
            alike=row["alike"] or 1,
            kernel_thread=bool(row["kernel_thread"]),
            daemon=row["daemon"],
            bytes_per_s=row["bytes_per_s"],
        )
        for row in rows
    ]


def served(recording: Recording, start_us: int, end_us: int) -> list[Served]:
    rows = columns.records(recording.table("mounts", start_us, end_us))
    names = ("device", "waiting", "answered", "resent")
    return [
        Served(row["time"], row["kind"] or "", row["source"] or "", row["point"] or "", *(row[name] for name in names))
        for row in rows
    ]

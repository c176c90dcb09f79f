"""Containers of a recording: who they are, whose pod, who asked for them, and how they ended."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.recording import columns
from zombiescope.recording.reader import Recording


@dataclass(frozen=True, slots=True)
class Container:
    """The last that was recorded of one id; None is what nobody said."""

    id: str
    name: str | None = None
    image: str | None = None
    runtime: str | None = None
    namespace: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    cgroup: str | None = None
    started_us: int | None = None
    exited_us: int | None = None
    code: int | None = None
    runs: int | None = None
    """How often its cgroup was made while the recorder watched."""
    restarts: int | None = None
    """As the runtime counts them."""
    restart_policy: str | None = None
    requester: str | None = None
    """Who ran the client that asked for it."""
    requester_pid: int | None = None
    requester_unit: str | None = None
    requester_command: str | None = None
    at_us: int = 0


_RENAMED = {"started": "started_us", "exited": "exited_us", "time": "at_us"}


def containers(recording: Recording, start_us: int | None, end_us: int | None) -> dict[str, Container]:
    """By id, as they were last known in a span; every segment says those that are there again."""
    rows = columns.records(recording.table("containers", start_us, end_us))
    known = [{_RENAMED.get(name, name): value for name, value in row.items() if name != "part"} for row in rows]
    return {row["id"]: Container(**row) for row in known if row["id"]}

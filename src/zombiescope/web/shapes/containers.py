"""The containers of a window."""

from __future__ import annotations

from typing import Literal, TypedDict

from zombiescope.web.shapes.common import Window


class Requester(TypedDict):
    """The process that asked a runtime for a container; `how` it is known: "command line" or "socket"."""

    comm: str | None
    pid: int | None
    unit: str | None
    command: str | None
    container: str | None
    how: str | None


class Container(TypedDict):
    id: str
    name: str | None
    image: str | None
    runtime: str | None
    namespace: str | None
    pod: str | None
    pod_uid: str | None
    owner: str | None
    cgroup: str | None
    started: float | None
    exited: float | None
    code: int | None
    alive: bool
    runs: int | None
    restarts: int | None
    restart_policy: str | None
    starts: int
    requester: Requester


class ContainerFamily(TypedDict):
    """Containers that are one thing to a person; `starts` counts in the window."""

    name: str
    kind: Literal["pod", "name", "image", "unknown"]
    namespace: str | None
    image: str | None
    ids: int
    starts: int
    restarts: int | None
    alive: int
    exited: int
    failed: int
    succeeded: int
    last_code: int | None
    per_hour: float | None
    longest_s: float | None
    requester: Requester
    restart_policy: str | None
    loop: Literal["in place", "failing", "quick"] | None
    text: str | None


class Containers(Window):
    total: int
    alive: int
    left_out: int
    families: list[ContainerFamily]
    containers: list[Container]

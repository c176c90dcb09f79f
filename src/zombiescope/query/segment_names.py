"""What the ids of the segment being followed stand for, kept up to date frame by frame; nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from zombiescope.store import schema
from zombiescope.store.container_names import ContainerName, ContainerNames
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.stacks import NamedFrame

TASK_COLUMNS = ("task", "pid", "tid", "comm", "unit", "container", "cgroup", "pod")
_BOX_COLUMNS = ("id", "name", "image", "pod", "namespace", "owner")


@dataclass(frozen=True, slots=True)
class NamedTask:
    pid: int | None
    tid: int | None
    comm: str | None
    unit: str | None
    container: str | None
    cgroup: str | None
    pod: str | None
    """Its uid."""


@dataclass(slots=True)
class SegmentNames:
    """Ids of one segment. A later row replaces an earlier one; the end of a segment forgets them all."""

    stacks: dict[int, Sequence[int]] = field(default_factory=dict)
    frames: dict[int, NamedFrame] = field(default_factory=dict)
    tasks: dict[int, NamedTask] = field(default_factory=dict)
    boxes: dict[str, ContainerName] = field(default_factory=dict)

    def update(self, frame: LogFrame) -> None:
        for block in frame.blocks:
            if block.table is schema.STACKS:
                self.stacks.update(_pairs(block, "stack", "frames"))
            elif block.table is schema.FRAMES:
                rows = zip(*(block.column(name) for name in schema.FRAMES.names), strict=True)
                self.frames.update({frame: NamedFrame(name or "?", kind or "unknown") for frame, name, _, kind in rows})
            elif block.table is schema.TASKS:
                tasks = zip(*(block.column(name) for name in TASK_COLUMNS), strict=True)
                self.tasks.update({task: NamedTask(*rest) for task, *rest in tasks})
            elif block.table is schema.CONTAINERS:
                boxes = zip(*(block.column(name) for name in _BOX_COLUMNS), strict=True)
                self.boxes.update({identity: ContainerName(*known) for identity, *known in boxes if identity})

    def forget(self) -> None:
        self.stacks.clear()
        self.frames.clear()
        self.tasks.clear()
        self.boxes.clear()

    @property
    def containers(self) -> ContainerNames:
        return ContainerNames(self.boxes, {})

    def stack(self, stack: int | None) -> list[NamedFrame]:
        """The frames of a stack, outermost first; empty when it is not known."""
        ids = self.stacks.get(stack, ()) if stack is not None else ()
        return [self.frames.get(frame, NamedFrame("?", "unknown")) for frame in ids]


def _pairs(block: Block, key: str, value: str) -> zip[tuple[int, Sequence[int]]]:
    return zip(block.column(key), block.column(value), strict=True)

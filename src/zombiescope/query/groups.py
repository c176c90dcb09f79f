"""Whose a sample is: the tasks of a window in groups by owner, unit, pod, container, image, process, thread or name.

One rule for the root level of a flame graph, the table of who ran, tracks over time and exports, so that the same name
means the same samples in all of them. A later row of the same task knows more and replaces the earlier one. Samples of
a task that nobody named are a group of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zombiescope.query import programs
from zombiescope.query.levels import Level
from zombiescope.query.selection import ImportFacts, Selection
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store import columns, container_names
from zombiescope.store.columns import Ints
from zombiescope.store.container_names import NO_NAMES, ContainerName, ContainerNames

NOBODY: dict[str, str] = {
    "owner": "not known", "unit": "no unit", "pod": "no pod", "container": "no container", "image": "no image",
    "program": "not known", "process": "not known", "thread": "not known", "comm": "?",
}  # fmt: skip
_COLUMNS = ("task", "pid", "tid", "comm", "exe", "cmdline", "unit", "container", "pod")
_OF_KERNEL = re.compile(r"([a-z_]+)/[\du].*")
"""kworker/u8:3, ksoftirqd/7: one program on many cores."""
_OF_CONTAINER: dict[str, Callable[[ContainerName], str | None]] = {
    "container": lambda known: known.label,
    "pod": lambda known: known.pod_path,
    "image": lambda known: known.image,
}


@dataclass(frozen=True, slots=True)
class Group:
    """What all of its tasks have in common; None where they differ, or where it is not known."""

    name: str
    comm: str | None = None
    pid: int | None = None
    tid: int | None = None
    unit: str | None = None
    container: str | None = None
    """By its name and its pod's, where they are known."""
    pod: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """`of_task[task]` is the number of the task's group; the last place is for tasks that are not known."""

    of_task: Ints
    all: tuple[Group, ...]

    def of(self, tasks: Ints) -> Ints:
        known = (tasks >= 0) & (tasks < len(self.of_task) - 1)
        return self.of_task[np.where(known, tasks, len(self.of_task) - 1)]


def groups(selection: Selection, by: Level) -> Groups:
    """The groups of a window's tasks; number 0 is nobody's."""
    rows = {row["task"]: row for row in columns.records(selection.recording.table("tasks", *selection.span, _COLUMNS))}
    rows.pop(None, None)
    boxes = {row["container"] for row in rows.values() if row["container"]}
    boxed = container_names.read(selection.recording, *selection.span, boxes) if boxes else NO_NAMES
    leaders = _leaders(rows.values())
    scripts = programs.of_tasks((row["pid"], row["cmdline"]) for row in rows.values()) if by == "program" else {}
    numbers: dict[Hashable, int] = {None: 0}
    made = [Group(NOBODY[by])]
    of_task = np.zeros(max((task for task in rows if task >= 0), default=-1) + 2, np.int64)
    for task, row in rows.items():
        key, group = _program(row, leaders, scripts) if by == "program" else _group(by, row, boxed, leaders)
        number = numbers.setdefault(key, len(made))
        if number == len(made):
            made.append(group)
        elif number:
            made[number] = _shared(made[number], group)
        if task >= 0:
            of_task[task] = number
    return Groups(of_task, tuple(made))


def _leaders(rows: Any) -> dict[int, str]:
    """What each process is called: as its first thread is, else by its program, else as any thread."""
    names: dict[int, tuple[int, str]] = {}
    for row in rows:
        pid, comm, program = row["pid"], row["comm"], (row["exe"] or "").rpartition("/")[2]
        if pid is None or not (comm or program):
            continue
        rank, name = (2, comm) if comm and row["tid"] in (pid, None) else (1, program) if program else (0, comm)
        if rank >= names.get(pid, (-1, ""))[0]:
            names[pid] = rank, name
    return {pid: name for pid, (_, name) in names.items()}


def _group(by: Level, row: dict[str, Any], boxed: ContainerNames, leaders: dict[int, str]) -> tuple[Hashable, Group]:
    """What distinguishes the group of a task, and the group as far as this task knows it."""
    known = boxed.of(row["container"], row["pod"])
    facts = {
        "comm": row["comm"],
        "pid": row["pid"],
        "tid": row["tid"],
        "unit": row["unit"],
        "container": known.label or row["container"],
        "pod": known.pod_path or row["pod"],
        "image": known.image,
    }
    if by in ("process", "thread"):
        number = row["pid"] if by == "process" else row["tid"]
        comm = leaders.get(number) if by == "process" else row["comm"]
        facts["comm"] = comm
        return number, Group(f"{comm or '?'} [{number}]" if number is not None else NOBODY[by], **facts)
    name = _name(by, row, boxed, known)
    return name, Group(name or NOBODY[by], **facts)


def _program(
    row: dict[str, Any], leaders: dict[int, str], scripts: dict[int, programs.Program]
) -> tuple[Hashable, Group]:
    script = scripts.get(row["pid"])
    comm = leaders.get(row["pid"]) or row["comm"]
    name = (script.name if script else None) or (_OF_KERNEL.sub(r"\1", comm) if comm else None)
    group = Group(
        name or NOBODY["program"],
        comm=comm,
        pid=row["pid"],
        unit=row["unit"],
        container=row["container"],
        pod=row["pod"],
    )
    return name, group


def _name(by: Level, row: dict[str, Any], boxed: ContainerNames, known: ContainerName) -> str | None:
    if by == "comm":
        return str(row["comm"]) if row["comm"] else None
    if by == "unit":
        return row["unit"] or None
    if by == "owner":
        found = boxed.owner(row["unit"], row["container"], row["pod"])
        return found[0] if found else row["comm"]
    fallback = {"container": row["container"], "pod": row["pod"]}.get(by)
    return _OF_CONTAINER[by](known) or fallback


def _shared(first: Group, second: Group) -> Group:
    """What both say."""
    facts = {
        name: getattr(first, name) if getattr(first, name) == getattr(second, name) else None
        for name in ("comm", "pid", "tid", "unit", "container", "pod", "image")
    }
    return Group(first.name, **facts)


# --- trees of groups --------------------------------------------------------------------------------------------------
# Stacks with their owner below them: the unit, container, pod, image, process or thread that was sampled is the root.
#
# In an inverted graph it stays the root: each owner has a graph of its own that begins where the time was spent.
#
# Samples are counted by task and stack, so this reads them all; summaries count stacks alone.

KIND = "owner"


def grouped(selection: Selection, by: Level, *, invert: bool = False) -> tuple[Stacks, Ints]:
    """The stacks that occur, each once for every group, and how often. `invert`: the group is the innermost frame, for
    whoever folds from there, and leaves that only look hot are left out already."""
    known = selection.stacks.without_skid() if invert else selection.stacks
    found = groups(selection, by)
    pairs, counts = _counted(selection, known, found)
    return _joined(known, [group.name for group in found.all], pairs, innermost=invert), np.append(counts, 0)


def _counted(selection: Selection, known: Stacks, found: Groups) -> tuple[Ints, Ints]:
    """Pairs of group and stack, and how many samples each has."""
    weighted = ImportFacts.of(selection.recording).weighted
    sums: dict[int, int] = {}
    for task, stack, period in selection.columns("task", "stack", "period"):
        pair, row = np.unique(found.of(task) * known.count + known.rows_of(stack), return_inverse=True)
        added = np.bincount(row, period if weighted else None, len(pair)).astype(np.int64)
        for key, count in zip(pair.tolist(), added.tolist(), strict=True):
            sums[key] = sums.get(key, 0) + count
    pairs = np.array(sorted(sums), np.int64)
    return pairs, np.array([sums[key] for key in pairs.tolist()], np.int64)


def _joined(known: Stacks, names: list[str], pairs: Ints, *, innermost: bool) -> Stacks:
    """A group's frame at one end of each stack; the stack of samples that have none stays last."""
    group, row = np.divmod(pairs, known.count)
    plain = known.only(row)
    lengths = plain.ends - plain.starts
    lengths[:-1] += 1
    ends = np.cumsum(lengths)
    flat = np.empty(int(ends[-1]), np.int32)
    first = ends - lengths
    is_group = np.zeros(len(flat), bool)
    is_group[ends[:-1] - 1 if innermost else first[:-1]] = True
    flat[is_group] = len(known.functions) + group
    flat[~is_group] = plain.flat
    return Stacks((*known.functions, *(Function(name, None, KIND) for name in names)), flat, first, ends)

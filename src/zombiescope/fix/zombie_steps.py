"""Steps that release zombie cgroups on this node, by what keeps them: files in memory are named, page cache reclaimed.

Files that nobody has open are a step for each directory; one that somebody has open is a step of its own and names who.
Neither is done unless directory or file is named with --force-unit: --yes is no consent to losing data. What lies in
/run or /dev, but for directories named shm, belongs to the running system and is only shown. Files without a name go
when the processes that hold them end.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from zombiescope.base.text import printable
from zombiescope.fix.actions.reclaim import ReclaimZombies
from zombiescope.fix.actions.tmpfs import RemoveTmpfsFiles
from zombiescope.fix.pins import Pin, Pins, find_pins
from zombiescope.fix.reclaim import Parent, parent_at, refusal, surviving_parent
from zombiescope.fix.reclaim_cost import cost
from zombiescope.fix.step import ActionFailedError, Step, bounded, quoted
from zombiescope.kernel import cgroup_census, cgroup_dying
from zombiescope.kernel.cgroup import Hierarchy, directory, hierarchies, of_controller

MOST_FILES = 5_000
"""Of one step: the log keeps their names."""
MOST_STEPS = 10
_RISK = "whatever runs below it reads its files from disk again, and may be slow for a while"
_VERIFY = "zombiescope cgroups"
_KEPT_OTHERWISE = (
    "nothing is released: those that died at {} hold no page cache and no files in memory now, so they are gone "
    "already, or kernel memory (sockets, dentries) keeps them until the processes that use it exit"
)
_SYSTEM = ("/run/", "/dev/", "/sys/", "/proc/")
_SHARED_MEMORY = "/shm/"
"""Where programs put memory that they share: /dev/shm, and where containerd keeps that of its pods below /run."""


def steps(paths: Sequence[str], ending: Collection[str] = ()) -> Iterator[Step]:
    """For the cgroups that died at these paths of the incident's own evidence; without any nothing is released, for
    whatever the machine shows now may be the cache of somebody who has nothing to do with it."""
    hierarchy = of_controller("memory", hierarchies())
    if hierarchy is None:
        return
    if not paths:
        yield _no_evidence(hierarchy)
    parents = named_survivors(hierarchy, paths, ending)
    if paths and not parents:
        yield Step("advice:zombies.kept", "advice", printable(_KEPT_OTHERWISE.format(", ".join(paths[:3]))))
    for parent in parents:
        yield from parent_steps(parent)


def _no_evidence(hierarchy: Hierarchy) -> Step:
    """What a person may look at."""
    found = [f"{parent.path}: {_told(parent)}" for parent in candidate_survivors(hierarchy)]
    return Step(
        "advice:zombies.where", "advice",
        "nothing is released: where these cgroups were was not recorded (the ledger sees those that are removed while "
        "it runs). Keep the recorder running and plan again. Until then, these places may be examined, none of which "
        "is known to have to do with it",
        touches=bounded(found),
    )  # fmt: skip


def _told(parent: Parent) -> str:
    held = parent.held
    if held is None:
        return "what is held below it is unknown"
    return f"{held.file_bytes:,} bytes of page cache and {held.shmem_bytes:,} of tmpfs that no directory below it has"


def _bounded_steps(made: list[Step], parent: Parent) -> Iterator[Step]:
    yield from made[:MOST_STEPS]
    if len(made) > MOST_STEPS:
        more = len(made) - MOST_STEPS
        yield _advice(parent, "more", f"{more:,} more places keep removed cgroups below {parent.path}; run this again")


def parent_steps(parent: Parent) -> Iterator[Step]:
    """For the removed cgroups below one surviving parent."""
    if parent.held is not None and parent.held.shmem_bytes:
        pins = find_pins(os.stat(parent.directory).st_ino)  # noqa: PTH116  cgroup paths are text
        yield from _bounded_steps(list(_pin_steps(parent, pins)), parent)
    if (why := refusal(parent)) is not None:
        yield Step(f"advice:zombies.reclaim:{parent.path}", "advice", printable(why))
        return
    with suppress(ActionFailedError):
        yield _reclaim(parent, ReclaimZombies(parent.path), cost(parent).why_named)


def _reclaim(parent: Parent, action: ReclaimZombies, why: str | None) -> Step:
    """`why`: it has to be named by a person."""
    return Step(
        id=f"{action.kind}:{parent.path}",
        kind="change",
        does=f"release the removed cgroups below {parent.path} that page cache keeps, by reclaiming from it",
        command=quoted(action.command()),
        touches=action.touches(),
        risk=f"{_RISK}; {why}" if why else _RISK,
        undo="nothing needs to be undone: the cache fills again as files are read",
        verify=_VERIFY,
        action=action,
        protects=parent.path if why else None,
    )


# --- files in memory -------------------------------------------------------------------------------------------------


def _pin_steps(parent: Parent, pins: Pins) -> Iterator[Step]:
    if pins.why_not is not None:
        yield _advice(parent, "why", f"files in memory keep removed cgroups below {parent.path}; {pins.why_not}")
        return
    free: dict[tuple[str, int], list[Pin]] = {}
    for pin in pins.pins:
        if pin.file is None:
            yield _nameless(parent, pin)
        elif _is_the_systems(pin.name):
            yield _advice(
                parent, pin.name, f"{_keeps(pin, parent)}; it belongs to the running system and is left alone"
            )
        elif pin.users:
            yield _used(parent, pin, pins)
        else:
            free.setdefault((pin.name.rpartition("/")[0], pin.file.uid), []).append(pin)
    for (place, uid), same in free.items():
        for start in range(0, len(same), MOST_FILES):
            yield _unused(parent, place, uid, same[start : start + MOST_FILES], pins)
    if parent.held is not None and (rest := parent.held.shmem_bytes - pins.size_bytes) > parent.held.shmem_bytes // 10:
        places = f"; not looked into: {', '.join(pins.left_out[:5])}" if pins.left_out else ""
        yield _advice(
            parent, "rest",
            f"{rest:,} bytes in memory below {parent.path} belong to no file that was found{places}; System V shared "
            "memory is listed by 'ipcs -m -p'",
        )  # fmt: skip


def _keeps(pin: Pin, parent: Parent) -> str:
    return f"{pin.name} ({pin.size_bytes:,} bytes) keeps removed cgroups below {parent.path}"


def _advice(parent: Parent, name: str, text: str) -> Step:
    return Step(f"advice:tmpfs:{printable(parent.path)}:{printable(name)[:120]}", "advice", printable(text))


def _nameless(parent: Parent, pin: Pin) -> Step:
    who = ", ".join(map(str, pin.users[:5])) or "a process that has exited since"
    return _advice(parent, pin.name, f"{_keeps(pin, parent)}; it has no name any more and goes when {who} ends")


def _used(parent: Parent, pin: Pin, pins: Pins) -> Step:
    assert pin.file is not None
    users = [f"{user} has it open" for user in pin.users]
    action = RemoveTmpfsFiles((pin.file,), tuple((user.pid, user.started_ticks) for user in pin.users))
    return Step(
        id=f"{action.kind}:{printable(pin.name)[:200]}",
        kind="change",
        does=printable(f"delete {pin.name}, which {', '.join(map(str, pin.users[:3]))} has open: it keeps removed "
        f"cgroups below {parent.path}"),
        command=quoted(action.command()),
        touches=(*action.touches(), *bounded(users)),
        risk="who has it open may fail, and its memory goes only when they close it" + _unsaid(pins),
        undo="nothing brings it back",
        verify=_VERIFY,
        action=action,
        protects=pin.name,
    )  # fmt: skip


def _unused(parent: Parent, directory: str, uid: int, same: list[Pin], pins: Pins) -> Step:
    files = tuple(pin.file for pin in same if pin.file is not None)
    action = RemoveTmpfsFiles(files)
    size = sum(pin.size_bytes for pin in same)
    what = f"{len(files):,} files" if len(files) > 1 else files[0].path
    return Step(
        id=f"{action.kind}:{printable(directory)[:200]}:{uid}:{files[0].inode}",
        kind="change",
        does=printable(
            f"delete {what} in {directory} ({size:,} bytes, of uid {uid}), which keep removed cgroups below "
            f"{parent.path}; no process has them open"
        ),
        command=quoted(action.command()),
        touches=action.touches(),
        risk=f"what is in them is lost, so ask uid {uid} first{_unsaid(pins)}",
        undo="nothing brings them back",
        verify=_VERIFY,
        action=action,
        protects=directory,
    )


def _unsaid(pins: Pins) -> str:
    if not pins.complete:
        return "; not every process could be checked in time for having them open"
    return f"; {pins.hidden} processes did not say what they have open" if pins.hidden else ""


def _is_the_systems(path: str) -> bool:
    inside = path
    if path.startswith("/proc/"):  # a container's: /proc/PID/root/dev/shm/x
        inside = "/" + path.split("/", 4)[-1]
    return inside.startswith(_SYSTEM) and _SHARED_MEMORY not in inside


# --- survivors --------------------------------------------------------------------------------------------------------
# Which directories survive and have removed cgroups below them.
#
# `named` are those that an incident's own evidence names: paths at which the ledger saw cgroups die, and parents that
# the kernel counted dying ones below while it was recorded. Only from these anything is ever reclaimed.
#
# `candidates` are found on the machine as it is now and are for a person to look at. v2 counts the dying by directory
# (nr_dying_descendants). v1 does not: there what a directory holds more than itself and the directories below it *may*
# belong to the dying, and may as well be the drift of statistics of living cgroups full of cache. Bounded in
# directories.

MOST_DIRECTORIES = 2_000
MOST_PARENTS = 8
SMALLEST_BYTES = 64 << 10
"""Below this the difference between a directory and its children is the drift of two readings."""


def named_survivors(hierarchy: Hierarchy, paths: Iterable[str], ending: Collection[str] = ()) -> list[Parent]:
    """Surviving parents of these paths of the ledger, those that hold most first."""
    found: dict[str, Parent] = {}
    for path in paths:
        if path.startswith("/") and (parent := surviving_parent(hierarchy, path, ending)) is not None:
            found[parent.path] = parent
    held = [parent for parent in found.values() if parent.path == "/" or _holds(parent)]
    return sorted(held, key=lambda parent: -_bytes(parent))[:MOST_PARENTS]


def candidate_survivors(hierarchy: Hierarchy) -> list[Parent]:
    """Places to look at, those that hold most first; nothing may be done to them for that."""
    found = {parent.path: parent for parent in (*_counted(hierarchy), *_measured(hierarchy))}
    held = [parent for parent in found.values() if _bytes(parent) > 0]
    return sorted(held, key=lambda parent: -_bytes(parent))[:MOST_PARENTS]


def _counted(hierarchy: Hierarchy) -> Iterator[Parent]:
    if hierarchy.version != 2 or hierarchy.mount is None:
        return
    for path, _ in cgroup_dying.own_dying(hierarchy.mount, MOST_DIRECTORIES)[:MOST_PARENTS]:
        if (place := directory(hierarchy, path)) is not None:
            yield parent_at(hierarchy, path, place)


def _measured(hierarchy: Hierarchy) -> Iterator[Parent]:
    if hierarchy.version != 1 or hierarchy.mount is None:
        return
    walk = cgroup_census.walk_directories(hierarchy.mount, per_second=None)
    for number, (_, path) in enumerate(walk):
        if number >= MOST_DIRECTORIES:
            return
        if path != "/" and (place := directory(hierarchy, path)) is not None:
            parent = parent_at(hierarchy, path, place)
            if _bytes(parent) >= SMALLEST_BYTES:
                yield parent


def _bytes(parent: Parent) -> int:
    return 0 if parent.held is None else parent.held.file_bytes + parent.held.shmem_bytes


def _holds(parent: Parent) -> bool:
    """Whether anything is there to be released; not known counts as yes."""
    return parent.held is None or _bytes(parent) > 0

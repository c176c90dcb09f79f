"""Where in their Python code the processes were that an incident held up: a link of its chain.

Told of tasks that were found waiting and, where cores were taken, of processes whose threads belong to those cores and
ran less there than before; those on a GPU first. The thread told of is the main one, else the one that was looked at
most. What is not in the table `python` is not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from zombiescope.diagnosis import held_up
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Cause, Link
from zombiescope.diagnosis.thresholds import PYTHON_PLACE_LEAST_RATIO
from zombiescope.query.python import PythonThread, own
from zombiescope.store.hangs import NEVER

MOST_TOLD = 3
MOST_ASKED = 8
MOST_NAME = 80


def told(case: Case, causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """The same causes; the chain of the first says where those who suffered were."""
    if not causes or not case.facts.python:
        return causes
    links = tuple(_links(case))
    return (replace(causes[0], chain=(*causes[0].chain, *links)), *causes[1:]) if links else causes


def _links(case: Case) -> Iterable[Link]:
    found: dict[int, PythonThread] = {}
    for thread in case.facts.python_between(case.from_us, case.to_us):
        known = found.get(thread.pid)
        if known is None or thread.tid == thread.pid:
            found[thread.pid] = thread
    for pid in _held_up(case, found)[:MOST_TOLD]:
        link = _link(case, found[pid])
        if link is not None:
            yield link


def _held_up(case: Case, seen: dict[int, PythonThread]) -> list[int]:
    """Of the processes that were looked at, those that suffered, the surest first."""
    facts, span = case.facts, (case.from_us, case.to_us)
    hog = case.hog.pid
    found = (one for one in facts.waiting if one.pid is not None and one.kind not in NEVER)
    waits = {one.pid for one in found if one.since_us < span[1] and one.at_us > span[0]}
    tenants = {one.pid for one in facts.gpu_tenants if one.overlaps(*span)}
    sure = [pid for pid in seen if pid in waits and pid != hog]
    cores = sorted(case.cpus)
    asked = [pid for pid in seen if pid not in sure and pid != hog][:MOST_ASKED] if cores else []
    for pid in asked:
        if held_up.look(facts, {pid}, cores, *span).state == "waited":
            sure.append(pid)
    return sorted(sure, key=lambda pid: pid not in tenants)


def _link(case: Case, thread: PythonThread) -> Link | None:
    stacks = thread.stacks()
    places: dict[tuple[str, str | None], int] = {}
    for frames, looks in stacks.items():
        mine, called = own(frames)
        key = (mine.place, None if called is None else called.name)
        places[key] = places.get(key, 0) + looks
    (place, inside), looks = max(places.items(), key=lambda each: each[1])
    if looks < PYTHON_PLACE_LEAST_RATIO * thread.looks:
        return None
    name = next(own(frames)[0].name for frames in stacks if own(frames)[0].place == place)
    what = (inside or name)[:MOST_NAME]
    taken = f", while core {min(case.cpus)} was taken" if len(case.cpus) == 1 else ""
    fact = f"pid {thread.pid} ({thread.comm or 'python'}) waited in {what}, {place}{taken}"
    return Link("python", fact, looks, "looks", thread.doing[0].from_us, "python")

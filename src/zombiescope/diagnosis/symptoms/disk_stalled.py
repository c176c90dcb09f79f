"""A disk that has requests and completes none of them.

Slow disks complete something every few seconds; one that does not for ten stands still, whether somebody waits for it
or not. A loop device whose file is on a mount that hangs is a part of that one's trouble.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.symptoms.tasks_wait import place
from zombiescope.kernel.mountinfo import FAMILIES
from zombiescope.query.waiting import Served
from zombiescope.store.hangs import HANGS_S


def find(facts: Facts) -> Iterator[Symptom]:
    below = {one.point: one for one in facts.served if one.kind == "loop"}
    for device, history in facts.disks.items():
        for stall in history.stalls(HANGS_S):
            under = below.get(device)
            if not (history.completed.any() or _somebody_waits(facts, device, under)):
                continue
            family = FAMILIES.get((under.device or "").partition(".")[0]) if under is not None else "disk"
            name = under.source if under is not None else device
            text = f"the disk {device} completed nothing for {stall.seconds:.0f} s, with {stall.in_flight:,} in flight"
            yield Symptom(
                DETECTOR,
                stall.from_us,
                stall.to_us,
                text if under is None else f"{text}; its file is on {name}",
                "warning",
                group=place(family, name),
                facts={"device": name, "disk": device, "in_flight": stall.in_flight, "waits_for": family},
                subject="disk",
            )


def _somebody_waits(facts: Facts, device: str, under: Served | None) -> bool:
    """Some drivers count a request as in flight for ever. A disk that did nothing at all in the window, and that nobody
    waits for, is one of those."""
    names = {device, under.source if under is not None else device}
    return any(task.resource in names for task in facts.waiting)


DETECTOR = Detector(
    kind="disk_stalled",
    title="a disk completes nothing",
    reported_when="a disk had requests in flight and completed none for 10 s",
    find=find,
    source="disks",
    role="victim",
    about="disk",
    weight=3,
    bounds_case=True,
    has_hog=False,
    critical_after_s=60.0,
)

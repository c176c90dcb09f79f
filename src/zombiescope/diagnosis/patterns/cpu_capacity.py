"""All cores are busy with the work of the programs: the node is too small, and no fault of the kernel explains it."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, counted, measured
from zombiescope.diagnosis.thresholds import CAPACITY_FULL_RATIO, CAPACITY_KERNEL_SHARE, CAPACITY_ROOM_RATIO
from zombiescope.model.plans.step import command


def examine(case: Case) -> Evidence:
    waited = counted(
        "us in which a task waited for a CPU", "pressure", case.count("pressure", "some_us", "cpu"), "counters"
    )
    found = [*_busy(case), waited]
    return Evidence(
        tuple(found),
        None,
        "all cores are busy: the node has too little CPU for its work",
        Fix(
            "give the node less work or more cores",
            (command("zombiescope top"), command("zombiescope stacks --top 20")),
        ),
    )


def _busy(case: Case) -> list[Measurement]:
    cores = case.facts.cores
    busy = case.node_mean(cores.busy) if cores is not None else None
    kernel = case.node_mean(cores.kernel) if cores is not None else None
    if busy is None or kernel is None:
        return [Measurement("how busy all cores were was not measured", None, "ratio", "cores", "nothing")]
    # A task that holds a core in the kernel, or at real-time priority, is not explained by the others being busy too.
    by_programs = kernel < CAPACITY_KERNEL_SHARE * busy and not case.of_kind(
        "kernel_hog", "core_saturated", "rt_hog", "stall"
    )
    # Training fills a node for weeks. Who waits for a core suffers from that; a card, a disk or a GPU does not.
    suffers = any(symptom.about in ("cpu", "work") for symptom in case.group.symptoms) and not _has_ended(case)
    says = (
        True
        if busy >= CAPACITY_FULL_RATIO and by_programs and suffers
        else False
        if busy < CAPACITY_ROOM_RATIO
        else None
    )
    text = f"all cores together were {busy * 100:.0f}% busy, {kernel * 100:.0f}% in the kernel"
    return [measured(text, round(busy, 4), "ratio", "cores", says)]


def _has_ended(case: Case) -> bool:
    """Whether a process of Ray was killed or crashed: busy cores do not end a process. A node that was declared dead
    because it missed heartbeats has no pid."""
    return any(
        str(symptom.facts.get("event")) in ("ray_node_dead", "ray_worker_died") and symptom.facts.get("pid") is not None
        for symptom in case.group.symptoms
    )


PATTERN = Pattern(
    id="cpu-capacity",
    title="The node has too little CPU",
    proof="literature",
    looks_like="Everything is slow and every core is busy, mostly in the programs themselves.",
    confirmed_by="All cores together are 95% busy or more, less than half of it in the kernel; no process holds a "
    "core; and something suffers: a task waits, or a job or a unit exits. Network cards, disks and GPUs "
    "do not count.",
    refuted_by="All cores together are below 85% busy: there is room, and more cores would not help.",
    remedy="Add cores, or run less on the node.",
    stop_gap="pause or move the work that matters least; a lower CPUWeight= or a higher nice value lets the rest run "
    "first",
    examine=examine,
    hog="No process alone: all of them together.",
    culprit="No process in particular.",
    suspected_first=True,
    known_from="the definition",
)

"""What was written does not get to the disk, and whoever writes is stopped."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.symptoms.writeback_stalled import target, writers
from zombiescope.diagnosis.thresholds import WRITEBACK_NEAR_RATIO
from zombiescope.diagnosis.waits import daemon, lasted_s, where
from zombiescope.model.plans.step import advice, command, note

PAGE_BYTES = 4096


def examine(case: Case) -> Evidence:
    stalled = max(case.of_kind("writeback_stalled"), key=lambda one: one.seconds, default=None)
    if stalled is None:
        return Evidence(())
    resource, count = stalled.facts.get("resource"), int(stalled.facts["count"])
    slow, where_to = float(stalled.facts["bytes_per_s"]), target(resource)
    who = writers(count, list(stalled.facts["waiters"]))
    tasks = [one for one in case.facts.waiting if one.kind == "writeback" and one.resource == resource]
    most = max((one.bytes_per_s or 0 for one in tasks), default=0)
    summary = (
        f"writes to {where_to} have stalled: {who} managed only {slow / 1e6:.2f} MB/s for {lasted_s(stalled):.0f} s"
    )
    evidence = (
        measured(f"{who} blocked in balance_dirty_pages", count, "tasks", "waiting", True),
        measured(f"none of them could write more than {most / 1e6:.2f} MB/s", most, "bytes/s", "waiting", True),
        *where(list({one.tid: one for one in tasks}.values())),
        *_dirty(case),
    )
    return Evidence(evidence, daemon(stalled), summary, _fix())


def _dirty(case: Case) -> Iterator[Measurement]:
    """Dirty memory of the whole node against what it may be; a disk may have a limit of its own below that."""
    dirty, most = case.peak("vmstat", "nr_dirty"), case.peak("vmstat", "nr_dirty_threshold")
    if dirty is None or not most:
        return
    near = True if dirty >= WRITEBACK_NEAR_RATIO * most else None
    text = f"{dirty * PAGE_BYTES / 1e6:,.0f} MB wait to be written, of {most * PAGE_BYTES / 1e6:,.0f} MB that may"
    yield measured(text, dirty, "pages", "counters", near)


def _fix() -> Fix:
    return Fix(
        "find out why the disk takes so little, and keep others from waiting for it",
        (
            command("grep -E 'Dirty|Writeback' /proc/meminfo", "how much waits to be written"),
            command("dmesg -T | grep -iE 'timeout|reset|i/o error|nvme'", "whether the disk has trouble"),
            note("a cloud volume without credits accepts almost no writes: check its limits at the provider"),
            advice(
                "a slow disk need not hold up the others: its own share of dirty memory is "
                "/sys/class/bdi/MAJOR:MINOR/max_ratio"
            ),
        ),
    )


PATTERN = Pattern(
    id="writeback-stall",
    title="Written data does not reach the disk",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Writers are blocked in balance_dirty_pages, in state D, and wake only now and then; the disk is busy "
    "and completes next to nothing.",
    confirmed_by="Tasks were in balance_dirty_pages for 10 s and together wrote less than 2 MB/s.",
    refuted_by="They wrote more than that: a writer that is faster than the disk is slowed down to the disk's speed, "
    "as with every checkpoint.",
    remedy="Find out why the disk is that slow; give a slow disk a smaller share of dirty memory.",
    stop_gap="limit the biggest writer (io.max), or pause it, so that the others get through",
    examine=examine,
    symptoms=frozenset({"writeback_stalled"}),
    hog="No process: a waiting task uses no CPU.",
    culprit="The daemon of a FUSE file system; otherwise no process on this node, and the report names the disk.",
    known_from="mm/page-writeback.c; measured on 6.18 with a FUSE daemon that writes slowly",
)

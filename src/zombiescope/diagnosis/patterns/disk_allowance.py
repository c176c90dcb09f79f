"""Requests to a cloud disk wait for a limit that was bought, outside of this node: slow, and never hung."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import Step, advice, command


def examine(case: Case) -> Evidence:
    found = case.of_kind("disk_allowance")
    if not found:
        return Evidence(())
    measured = tuple(
        Measurement(one.text, one.facts["held_us"], "us", "counters", "confirms", one.from_us,
                    counter=str(one.facts["counter"]))
        for one in found
    )  # fmt: skip
    return Evidence(measured, None, found[0].text, Fix("buy more of it, or ask for less", tuple(_steps(found))))


def _steps(found: list[Symptom]) -> Iterator[Step]:
    yield command("iostat -x 1 5", "what is read and written, and by how many requests")
    if any(str(one.facts["counter"]).startswith("volume") for one in found):
        yield advice("raise IOPS or throughput of the volume (gp3, io2), which needs no restart", "stop-gap")
    if any(str(one.facts["counter"]).startswith("instance") for one in found):
        yield advice("a larger instance type, or checkpoints and datasets on its local NVMe disks")
    yield advice("read datasets in larger requests, and spread checkpoints over time")


PATTERN = Pattern(
    id="disk-allowance",
    title="A cloud disk is at its limit",
    proof="literature",
    looks_like="Checkpoints and data loading take much longer than elsewhere, tasks wait for a disk that completes "
    "requests all the time, and nothing in the kernel is at fault.",
    confirmed_by="The volume's controller counted time in which its own limit, or the instance's, held requests back: "
    "two seconds, and a tenth of the time.",
    refuted_by="Nothing: the pattern is only considered when this is counted. Clouds other than AWS do not count it.",
    remedy="More IOPS or throughput for the volume, a larger instance, or fewer and larger requests.",
    stop_gap="run less that reads and writes at once",
    examine=examine,
    symptoms=frozenset({"disk_allowance"}),
    hog="No process: the requests wait outside of this node.",
    culprit="No process on this node.",
    known_from="amazon-ec2-utils, ebsnvme; nvme-cli, plugins/amzn",
)

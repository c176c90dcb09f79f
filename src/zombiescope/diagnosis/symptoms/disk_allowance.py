"""A cloud disk that was held back by a limit: its own, or that of all disks of the instance together."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import DISK_ALLOWANCE_RATIO, DISK_ALLOWANCE_US
from zombiescope.kernel.ebs_nvme import FIELDS

LIMITS = {
    "volume_iops_us": "its own operations per second", "volume_throughput_us": "its own throughput",
    "instance_iops_us": "the instance's operations per second", "instance_throughput_us": "the instance's throughput",
}  # fmt: skip


def find(facts: Facts) -> Iterator[Symptom]:
    span_us = facts.end_us - facts.start_us
    for (name, volume), (time, added) in sorted(facts.readings("ebs").items()):
        held_us = int(added.sum()) if name in FIELDS else 0
        if held_us < max(DISK_ALLOWANCE_US, DISK_ALLOWANCE_RATIO * span_us):
            continue
        from_us = max(facts.start_us, int(time[0]) - 10_000_000)
        text = f"the disk {volume} was held back for {held_us / 1e6:.0f} s by the limit of {LIMITS[name]}"
        yield Symptom(
            DETECTOR, from_us, int(time[-1]), text, "warning", group=f"{volume} {name}",
            facts={"device": volume, "counter": name, "held_us": held_us}, subject="disk", cores=frozenset(),
        )  # fmt: skip


DETECTOR = Detector(
    kind="disk_allowance",
    title="a cloud disk is at its limit",
    reported_when="a limit of an EBS volume or of the instance held requests back for two seconds, a tenth of the time",
    find=find,
    source="counters",
    role="victim",
    about="disk",
    has_hog=False,
)

"""A disk, a file system or a file server does not do what it is asked for, and says so."""

from __future__ import annotations

import re
from dataclasses import replace

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import SILENT_SERVER_WEIGHT
from zombiescope.model.plans.step import Step, command, note

KINDS = ("io_error", "fs_error", "nfs_not_responding")
_DEVICE = re.compile(r"[a-z][a-z0-9]{1,31}")


def examine(case: Case) -> Evidence:
    line = announced(case, *KINDS)
    if line is None:
        return Evidence(())
    if line.facts["event"] == "nfs_not_responding":
        steps = (note("look at the file server and the network to it: tasks that wait for it cannot be killed"),)
        found = evidence(line, Fix("find out why the file server does not answer", steps))
        # Who waits for it, and since when, says more than that line: see storage-hang.
        weight = SILENT_SERVER_WEIGHT if case.of_kind("tasks_wait") else 1.0
        return replace(found, measurements=tuple(replace(one, weight=weight) for one in found.measurements))
    return evidence(line, Fix("save what is on the disk, and replace it if the errors go on", tuple(_steps(line))))


def _steps(line: Symptom) -> list[Step]:
    steps = [command("dmesg -T | grep -iE 'i/o error|nvme|ext4|xfs|blk_update'", "which disk, and how often")]
    device = str(line.facts.get("device") or line.facts.get("controller") or "")
    if _DEVICE.fullmatch(device):
        steps.append(command(f"smartctl -a /dev/{device}", "what the disk says about itself"))
    return [*steps, note("a file system that reported an error may be read-only now: check the mounts of the jobs")]


PATTERN = Pattern(
    id="disk-fault",
    title="A disk or file system reported an error",
    proof="literature",
    looks_like="Reads and writes fail or hang; the kernel log has I/O errors, timeouts, or errors of the file system.",
    confirmed_by="The kernel's own line about it, which names the disk or the server.",
    refuted_by="No such line during the incident.",
    remedy="Save what is on it, look at what the disk says about itself, replace it if the errors go on.",
    stop_gap="let jobs write elsewhere, and mount the disk read-only if it still answers",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    known_from="block/blk-core.c, drivers/nvme/host/pci.c, fs/ext4/super.c, fs/xfs",
)

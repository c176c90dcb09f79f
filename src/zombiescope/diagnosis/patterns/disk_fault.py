"""A disk, a file system or a file server does not do what it is asked for, and says so."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.diagnosis.announced import restated
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.pattern import Evidence, Pattern
from zombiescope.diagnosis.thresholds import SILENT_SERVER_WEIGHT


def examine(case: Case) -> Evidence:
    found = restated(case, "disk-fault")
    if found is None:
        return Evidence(())
    if found.measurements[0].value == "nfs_not_responding" and case.of_kind("tasks_wait"):
        # Who waits for it, and since when, says more than that line: see storage-hang.
        return replace(found, measurements=(replace(found.measurements[0], weight=SILENT_SERVER_WEIGHT),))
    return found


PATTERN = Pattern(
    id="disk-fault",
    title="A disk or file system reported an error",
    proof="literature",
    looks_like="Reads and writes fail or hang; the kernel log has I/O errors, timeouts or file system errors.",
    confirmed_by="The kernel logged it and names the disk or the server.",
    refuted_by="The kernel logged no such line during the incident.",
    remedy="Save the data, read the disk's own health report (smartctl, nvme smart-log), and replace the disk if "
    "errors continue.",
    stop_gap="let jobs write elsewhere, and mount the disk read-only if it still answers",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="No process on this node.",
    culprit="No process on this node.",
    known_from="block/blk-core.c, drivers/nvme/host/pci.c, fs/ext4/super.c, fs/xfs",
    repair="REPLACE_VM",
)

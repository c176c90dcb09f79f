# ruff: noqa: E501 - the wording of the kernel is kept whole, to be searched for
"""Lines of disks, file systems and file servers that time out, go away or come back."""

from __future__ import annotations

from zombiescope.kernel.log_line import LineFormat

STORAGE_FORMATS = (
    LineFormat(
        "nvme.down", "io_error", "critical",
        "nvme {controller:w}: controller is down; will reset: CSTS={csts:x}, PCI_STATUS={pci_status:x}",
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "source",
    ),
    LineFormat(
        "nvme.gone", "io_error", "critical", "nvme {controller:w}: Disabling device after reset failure: {code:d}",
        "nvme nvme0: Disabling device after reset failure: -19", "source",
    ),
    LineFormat(
        "scsi.timeout", "io_error", "critical",
        "sd {address:w} [{device:w}] tag#{request:d} timing out command, waited {seconds:d}s",
        "sd 2:0:0:0: [sda] tag#13 timing out command, waited 180s", "unconfirmed",
    ),
    LineFormat(
        "scsi.offline", "io_error", "critical", "sd {address:w} rejecting I/O to offline device",
        "sd 2:0:0:0: rejecting I/O to offline device", "unconfirmed",
    ),
    LineFormat(
        "md.failure", "io_error", "critical",
        "md/raid{level:w} Disk failure on {device:n}, disabling device.{rest:t}",
        "md/raid1:md0: Disk failure on sdb, disabling device.", "source",
    ),
    LineFormat(
        "ext4.read-only", "fs_error", "critical", "EXT4-fs ({device:w}): Remounting filesystem read-only",
        "EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "source",
    ),
    LineFormat(
        "jbd2.aborted", "fs_error", "critical", "Aborting journal on device {device:w}.",
        "Aborting journal on device nvme0n1p1-8.", "unconfirmed",
    ),
    LineFormat(
        "nfs.back", "nfs_responding", "info", "nfs: server {server:w} OK",
        "nfs: server fs-01.efs.internal OK", "source",
    ),
    LineFormat(
        "lustre.evicted", "nfs_not_responding", "critical",
        "LustreError: 167-0: {client:c}: This client was evicted by {server:c}; in progress operations using this service will fail.{rest:t}",
        "LustreError: 167-0: scratch-OST0004-osc-ffff8f1c: This client was evicted by scratch-OST0004; in progress operations using this service will fail.",
        "source",
    ),
    LineFormat(
        "lustre.lost", "nfs_not_responding", "warning",
        "Lustre: {client:c}: Connection to {server:c} (at {address:c}) was lost; in progress operations using this service will wait for recovery to complete{rest:t}",
        "Lustre: scratch-OST0004-osc-ffff8f1c: Connection to scratch-OST0004 (at 10.0.0.4@tcp) was lost; in progress operations using this service will wait for recovery to complete",
        "unconfirmed",
    ),
    LineFormat(
        "lustre.back", "nfs_responding", "info", "Lustre: {client:c}: Connection restored to {server:w} (at {address:c})",
        "Lustre: scratch-OST0004-osc-ffff8f1c: Connection restored to scratch-OST0004 (at 10.0.0.4@tcp)", "unconfirmed",
    ),
)  # fmt: skip

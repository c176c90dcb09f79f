"""The mount table is long and is read, or changed, again and again."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, cpu_below, signature
from zombiescope.diagnosis.thresholds import MOUNT_READ_CORES
from zombiescope.model.plans.step import advice, command

_READS = (
    "show_mountinfo show_vfsmnt show_vfsstat mounts_open_common m_show"
    # From 6.8 on a mount may be asked for without the table (46eae99ef733, b4c2bea8ceaa).
    " sys_statmount do_statmount sys_listmount do_listmount"
)
_CHANGES = (
    "__do_loopback do_loopback attach_recursive_mnt propagate_mnt copy_tree clone_mnt umount_tree propagate_umount"
    " namespace_unlock path_umount do_umount is_subdir copy_mnt_ns do_new_mount path_mount do_mount sys_mount"
    " sys_umount sys_oldumount sys_move_mount sys_open_tree do_move_mount"
)


def examine(case: Case) -> Evidence:
    reader, changer = case.caller(*_READS.split()), case.caller(*_CHANGES.split(), makes=True)
    culprit = case.answerable_hog or changer or reader
    return Evidence(
        (
            cpu_below(case, "reading the mount table", _READS, confirms_from=MOUNT_READ_CORES),
            cpu_below(case, "mounting and unmounting", _CHANGES, confirms_from=MOUNT_READ_CORES),
        ),
        culprit,
        f"{culprit.subject if culprit else 'somebody'} keeps the kernel busy with the mount table",
        Fix(
            "reduce the number of mounts, and of programs that read all of them",
            (
                command("wc -l < /proc/1/mountinfo"),
                command("findmnt -rno TARGET | sed 's|/[^/]*$||' | sort | uniq -c | sort -rn | head", "where they are"),
                advice("a runc without bind mounts for each exec (1.0.0-rc93 and later), fewer exec probes"),
            ),
        ),
    )


PATTERN = Pattern(
    id="mount-storm",
    title="The mount table is read constantly",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="pid 1 and every other reader of /proc/self/mountinfo format thousands of lines at each change of a "
    "mount; exec probes that mount and unmount make them do it again.",
    confirmed_by="Formatting or changing the mount table uses 0.4 of a CPU or more; these functions do nothing else.",
    refuted_by="These functions take less than a fifth of the hog's kernel time.",
    remedy="Unmount leftovers, run fewer exec probes, and use a runc version that does not mount for each of them.",
    stop_gap="run exec probes less often, or switch them off for now: each one mounts and unmounts",
    examine=examine,
    signatures=(
        signature(_READS, means="lines of mountinfo are formatted"),
        signature(_CHANGES, means="mounts are made and removed"),
    ),
    culprit="The process that reads the table, or the one that mounts and unmounts.",
    known_from="runc 2532 and 3973, systemd 37642; measured on 6.18 with 5,000 mounts",
)

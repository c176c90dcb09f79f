"""Cgroups that nobody uses and nobody removed: live directories that kubelet, cAdvisor or systemd walk again
and again."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import charged
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, level, measured, signature
from zombiescope.diagnosis.plan_container import stop_what
from zombiescope.diagnosis.thresholds import (
    CGROUP_LITTER_CALL_CORES,
    CGROUP_LITTER_MANY,
    CGROUP_LITTER_NORMAL,
    CGROUP_LITTER_SYSFS_SHARE,
    CGROUP_LITTER_WALK_CORES,
)
from zombiescope.model.plans.step import Step, command, note

_KERNFS = (
    "kernfs_fop_readdir kernfs_dir_pos kernfs_dir_next_pos kernfs_iop_lookup kernfs_dop_revalidate kernfs_fop_open"
    " kernfs_iop_permission kernfs_iop_getattr kernfs_refresh_inode kernfs_name_hash kernfs_find_ns kernfs_get_inode"
    " kernfs_dentry_node kernfs_fop_release kernfs_seq_start cgroup_seqfile_start cgroup_file_open"
)

_CALLS = "sys_openat sys_openat2 sys_open sys_getdents sys_getdents64 sys_close sys_newfstatat sys_statx sys_read"
_SYSFS = (
    "sysfs_kf_seq_show sysfs_kf_read sysfs_kf_bin_read sysfs_kf_write sysfs_kf_bin_write dev_attr_show kobj_attr_show"
    " class_attr_show bus_attr_show drv_attr_show netstat_show module_attr_show"
)


def examine(case: Case) -> Evidence:
    memory = case.cgroups.memory
    live = memory.live if memory else None
    litter = max(
        (line for line in case.cgroups.leaks if line.created),
        key=lambda line: _left(line.created, line.removed),
        default=None,
    )
    found = [
        level("{} memory cgroups have a directory", live, "cgroups", "census", refutes_below=CGROUP_LITTER_NORMAL),
        _walking(case, live),
    ]
    culprit, where = None, ""
    if litter is not None and litter.path and _left(litter.created, litter.removed) >= CGROUP_LITTER_MANY // 10:
        culprit = charged(case.facts, litter)
        where = f"; most are left behind at {litter.path}"
        text = (
            f"{litter.created:,} were created at {litter.path} and {litter.removed or 0:,} removed since the "
            "recorder started"
        )
        found.append(measured(text, litter.created, "cgroups", "leaks", None, step="litter"))
    return Evidence(
        tuple(found),
        culprit or case.answerable_hog,
        f"{case.hog.name} walks {'too many' if live is None else f'{live:,}'} cgroup directories{where}",
        Fix(
            "remove the directories that nothing uses, and fix what leaves them behind",
            tuple(_steps(case, culprit)),
        ),
    )


def _walking(case: Case, live: int | None) -> Measurement:
    """The hog's own time in directories of kernfs. sysfs is made of the same functions, and shows by those that read
    its files: monitors read it all day, however many cgroups there are."""
    mine = case.hog_samples
    walking, calls, in_sysfs = (case.cores_in(*names.split(), chosen=mine) for names in (_KERNFS, _CALLS, _SYSFS))
    if walking is None or calls is None or in_sysfs is None:
        return Measurement("opening and listing directories was not sampled", None, "cores", "samples", "nothing")
    if in_sysfs >= CGROUP_LITTER_SYSFS_SHARE * max(walking, in_sysfs, 1e-9):
        return cpu_used("it reads files of sysfs, not cgroups: {}", in_sysfs, False)
    dear = walking >= CGROUP_LITTER_WALK_CORES or (
        walking >= CGROUP_LITTER_WALK_CORES / 2 and calls >= CGROUP_LITTER_CALL_CORES
    )
    enough = dear and live is not None and live >= CGROUP_LITTER_MANY
    text = f"opening and listing directories took {{}}, and the calls around it {calls:.2f}"
    return cpu_used(text, walking, True if enough else None)


def _steps(case: Case, culprit: Actor | None) -> Iterator[Step]:
    """Nothing is removed by its name: kubelet keeps FUSE mounts in scopes that look just like litter, run-r*.scope."""
    yield command(
        "find /sys/fs/cgroup -type d | sed 's|/[^/]*$||' | sort | uniq -c | sort -rn | head", "where they are"
    )
    yield command("systemctl list-units --type=scope --state=abandoned", "scopes whose processes are gone")
    if case.cgroups.memory is not None and case.cgroups.memory.hierarchy == "v2":
        yield command(
            "grep -rl --include=cgroup.events 'populated 0' /sys/fs/cgroup | head -50", "cgroups with nothing in them"
        )
    if culprit is not None:
        yield from stop_what(case.facts, culprit, f"leaves cgroups behind at {culprit.cgroup}")
    yield note("stop a scope only when it is known whose it is and that nothing runs or is mounted in it")


def _left(created: int | None, removed: int | None) -> int:
    return (created or 0) - (removed or 0)


PATTERN = Pattern(
    id="cgroup-litter",
    title="Too many live cgroup directories are walked",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="kubelet, cAdvisor or systemd spends its time opening and listing cgroup directories. Unlike zombies "
    "these still have a directory, and removing it is all that is needed.",
    confirmed_by="5,000 or more memory cgroups have a directory, and the hog uses 0.3 of a CPU to open and list them "
    "(or half of that, if the system calls around them use 0.5).",
    refuted_by="Fewer than 3,000, which is normal on a busy Kubernetes node; or the hog reads sysfs files.",
    remedy="Remove the empty directories (stop the leftover scopes), and fix or upgrade what leaves them behind.",
    stop_gap="list them less often, or move the process that lists them off the cores that serve the network card",
    examine=examine,
    signatures=(signature(_KERNFS, means="cgroup or sysfs directories are listed and opened"),),
    culprit="The process that created the directories, if it was recorded; otherwise the process that walks them.",
    known_from="kubernetes 64137 and 70324, Alibaba ACK; measured on 6.18 with 10,000 directories",
)

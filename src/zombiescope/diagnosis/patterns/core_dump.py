"""The kernel writes the memory of a program that crashed: a trainer's core dump has hundreds of gigabytes."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.memory_work import CORE_DUMP
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, signature
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import CORE_DUMP_SHARE
from zombiescope.model.plans.step import Step, advice, command

_FRAMES = " ".join(sorted(CORE_DUMP.functions))


def examine(case: Case) -> Evidence:
    name = case.hog.comm or "a program"
    return Evidence(
        (_writing(case),),
        case.answerable_hog,
        f"{name} crashed, and the kernel writes its core dump",
        Fix(f"find out why {name} crashed; limit its core dumps", tuple(_steps(case.hog.comm))),
    )


def _steps(comm: str | None) -> Iterator[Step]:
    # As a field: a bare name with a dash in front is an option, one of digits a pid, one with a slash a path.
    which = (f"COREDUMP_COMM={comm}",) if comm else ()
    yield command(
        shell("coredumpctl", "info", *which), "the signal and the stack, if systemd keeps the dumps on this node"
    )
    yield command("cat /proc/sys/kernel/core_pattern", "where it goes: a file, or a program that reads it")
    yield advice(
        "keep dumps small: MADV_DONTDUMP for data, 0x21 in /proc/PID/coredump_filter leaves shared memory out, "
        "ProcessSizeMax= in coredump.conf"
    )


def _writing(case: Case) -> Measurement:
    cores = case.cores_in(*CORE_DUMP.functions, chosen=case.hog_samples)
    share = case.profile.share(case.profile.total(*CORE_DUMP.functions))
    text = f"writing a core dump is {share * 100:.0f}% of its kernel time: {{}}"
    return cpu_used(text, cores, share >= CORE_DUMP_SHARE)


PATTERN = Pattern(
    id="core-dump",
    title="A core dump is written",
    proof="literature",
    looks_like="A signal ended a program, and the kernel copies all of its memory into a file or a pipe: seconds for "
    "gigabytes, minutes for a trainer. The job restarts only after that.",
    confirmed_by="Half of the hog's kernel time in writing the dump; these functions do nothing else.",
    refuted_by="Less than that.",
    remedy="Find out why the program crashed, and limit or switch off its core dumps.",
    stop_gap="write no core dump at the next crash: ulimit -c 0 in its launcher, or LimitCORE=0 in its unit",
    examine=examine,
    signatures=(signature(_FRAMES, means="memory is written into a core dump"),),
    hog="The program that crashed: the dump is written in its name.",
    culprit="The program that crashed.",
    known_from="fs/coredump.c; do_coredump is vfs_coredump from 6.17 on; stacks seen on 6.18",
)

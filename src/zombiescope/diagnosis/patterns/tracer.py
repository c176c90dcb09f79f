"""A tracer was left on a busy process: strace, gdb or a monitor by ptrace stops it at every system call."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, cpu_below, signature
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import TRACED_CORES
from zombiescope.model.plans.step import Step, command

_TRACER = "sys_ptrace ptrace_request arch_ptrace ptrace_check_attach ptrace_resume ptrace_attach"
_TRACED = (
    "ptrace_stop ptrace_notify ptrace_do_notify ptrace_report_syscall ptrace_report_syscall_entry"
    " ptrace_report_syscall_exit ptrace_signal tracehook_report_syscall tracehook_report_syscall_entry"
    " tracehook_report_syscall_exit"
)


def examine(case: Case) -> Evidence:
    tracer, traced = case.caller(*_TRACER.split()), case.caller(*_TRACED.split())
    whom = traced.subject if traced else "a process"
    return Evidence(
        (cpu_below(case, "stopping for a tracer, and tracing,", f"{_TRACER} {_TRACED}", confirms_from=TRACED_CORES),),
        tracer,
        f"{tracer.subject if tracer else 'a tracer'} stops {whom} at every system call (ptrace)",
        Fix("end the tracer, or trace without stopping the process", tuple(_steps(tracer, traced))),
    )


def _steps(tracer: Actor | None, traced: Actor | None) -> Iterator[Step]:
    if traced is not None and traced.pid:
        yield command(shell("grep", "TracerPid", f"/proc/{traced.pid}/status"), "who traces it now; 0: no one")
    else:
        yield command("grep -H TracerPid /proc/[0-9]*/status | grep -v '\\b0$'", "who traces whom now")
    if tracer is not None and tracer.pid:
        yield command(shell("ps", "-o", "pid,ppid,user,lstart,args", "-p", tracer.pid), "what the tracer is")
    yield command("perf trace -s -a -- sleep 5", "counts system calls by program, and stops no process")


PATTERN = Pattern(
    id="tracer",
    title="A tracer is attached to a busy process",
    proof="literature",
    looks_like="strace, gdb or a security agent traces a process by ptrace: it stops twice at every system call, and "
    "the tracer wakes up for each stop. A program with many small calls becomes ten to a hundred times slower.",
    confirmed_by="0.1 of a CPU in stopping and tracing, by ptrace; these functions do nothing else.",
    refuted_by="Its frames hold less than a fifth of the hog's kernel time.",
    remedy="End the tracer; perf trace and eBPF count system calls without stopping any process.",
    stop_gap="end the tracer: the process continues by itself",
    examine=examine,
    signatures=(
        signature(_TRACED, means="the traced process stops for its tracer"),
        signature(_TRACER, means="the tracer reads the traced process and lets it continue"),
    ),
    scope="node",
    hog="The tracer or the process that it traces.",
    culprit="The tracer.",
    known_from="kernel/ptrace.c; strace(1), BUGS; stacks seen on 6.18",
)

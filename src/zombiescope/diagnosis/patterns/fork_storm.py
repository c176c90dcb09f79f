"""Processes are started and end again, hundreds a second; or a large process forks, which copies its page tables."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix, advice, command
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, counted, cpu_used, signature

MANY_PER_S = 50
"""A process costs about a millisecond of CPU to start and end; nodes without a storm start one to twenty a second."""
LARGE_CORES = 0.5
FEW_PER_S = 1.0
FEW_TASKS = 5

_FORK = "kernel_clone _do_fork do_fork copy_process dup_mm dup_mmap copy_page_range"
_EXEC = (
    "__x64_sys_execve __x64_sys_execveat do_execveat_common bprm_execve begin_new_exec load_elf_binary "
    "exec_mmap do_execve"
)
_EXIT = "do_exit do_group_exit exit_mmap mmput release_task wait_consider_task"


def examine(case: Case) -> Evidence:
    made = case.count("stat", "processes")
    culprit, what = _starter(case)
    return Evidence(
        tuple(_measurements(case)),
        culprit,
        f"{culprit.name if culprit else 'somebody'} starts "
        + (f"{what} all the time" if made is None else f"{made.rate:,.0f} {what} a second"),
        Fix(
            f"let {culprit.name if culprit else 'the parent'} do the work itself, or in batches",
            (
                command(f"ps -fp {culprit.pid}" if culprit and culprit.pid else "ps -ef --forest"),
                command("perf trace -e execve -a -- sleep 2", "what is started"),
                advice("Python: multiprocessing with forkserver or spawn; subprocess uses vfork from 3.10 on"),
            ),
        ),
    )


def _measurements(case: Case) -> list[Measurement]:
    made = case.count("stat", "processes")
    copying = case.cores_in("copy_page_range", "dup_mmap", "exit_mmap", chosen=case.hog_samples)
    found = [counted("new processes", "processes", made, "counters", confirms_from=MANY_PER_S, refutes_below=FEW_PER_S)]
    if copying is not None and made is not None and made.added:
        # Forks of a process with gigabytes are few and take a tenth of a second each.
        enough = True if copying >= LARGE_CORES and made.rate >= FEW_PER_S else None
        each_ms = copying / made.rate * 1000
        text = f"copying and dropping address spaces took {{}}, {each_ms:.1f} ms a process"
        found.append(cpu_used(text, copying, enough))
    return found


def _starter(case: Case) -> tuple[Actor | None, str]:
    """Storms are made of children; who started most of those that were sampled is to blame."""
    starter = case.facts.samples.starter(case.hog_samples)
    what = "threads" if starter is not None and starter.are_threads else "processes"
    if starter is None or starter.tasks < FEW_TASKS:
        return case.known_hog, what
    if starter.task is not None:
        return starter.task.actor(round(starter.samples / case.facts.hz / case.seconds, 3)), what
    hog, pid = case.hog, starter.pid
    if not case.cores_in(*_EXEC.split(), chosen=case.hog_samples):  # who only forks gives its children its own name
        return replace(hog, pid=pid), what
    return Actor(pid=pid, unit=hog.unit, cgroup=hog.cgroup, container=hog.container, pod=hog.pod), what


PATTERN = Pattern(
    id="fork-storm",
    title="Processes are started all the time",
    proof="kernel",
    looks_like="Kernel time in fork, exec and exit, spread over hundreds of processes that live for milliseconds, so "
    "that no list of processes shows them. Or a process with gigabytes forks, which copies its page tables.",
    confirmed_by="50 or more new processes a second; or 0.5 of a CPU in copying and dropping address spaces.",
    refuted_by="Less than one new process a second (threads count as processes).",
    remedy="Do the work in one process or in batches; start helpers by vfork or posix_spawn.",
    examine=examine,
    signatures=(signature(f"{_FORK} {_EXEC} {_EXIT}", means="processes are made, and end"),),
    hog="The children, added up by their parent, name or unit.",
    culprit="The parent that starts them.",
    known_from="kubernetes 61793; measured on 6.18 (1,180 exec a second on one core)",
)

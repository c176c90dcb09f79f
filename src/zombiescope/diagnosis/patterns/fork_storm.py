"""Processes are started and end again, hundreds a second. (A large process that forks is large-fork.)

A compile farm starts hundreds a second, too. There the children work: most of the time of all that one starts is their
own. In a storm it is the kernel's, which makes them and takes them away again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import counter, own_rate, unusual
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.memory_balance import balance
from zombiescope.diagnosis.memory_work import EXIT, FILE
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured, signature
from zombiescope.diagnosis.patterns import large_fork
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import (
    FORK_CALL_CORES,
    FORK_MANY_TASKS,
    FORK_WALK_SHARE,
    FORK_WORK_SHARE,
    FORKS_FEW_PER_S,
    FORKS_MANY_PER_S,
    MEMORY_WORK_LEAST_SHARE,
    MOSTLY_SHARE,
)
from zombiescope.model.plans.step import advice, command

_FORK = "kernel_clone _do_fork do_fork copy_process dup_mm dup_mmap copy_page_range"
_FORK += " sys_clone sys_clone3 sys_fork sys_vfork"
_EXEC = (
    "sys_execve sys_execveat do_execveat_common __do_execve_file bprm_execve begin_new_exec load_elf_binary "
    "exec_mmap do_execve do_execve_common search_binary_handler flush_old_exec"
)
_WALK = "mem_cgroup_iter css_next_descendant_pre"
_EXIT = "do_exit do_group_exit exit_mmap mmput release_task wait_consider_task"
_ALL = f"{_FORK} {_EXEC} {_EXIT}"


def examine(case: Case) -> Evidence:
    starter, what = _starter(case)
    culprit, rate = case.blamed(starter, makes=True), _rate(case)
    return Evidence(
        tuple(_measurements(case)),
        culprit,
        f"{culprit.subject if culprit else 'somebody'} starts "
        + (f"{what} all the time" if rate is None else f"{rate:,.0f} {what} a second"),
        Fix(
            f"let {culprit.subject if culprit else 'the parent'} do the work itself, or in batches",
            (
                command(shell("ps", "-fp", culprit.pid) if culprit and culprit.pid else "ps -ef --forest"),
                command("perf trace -e execve -a -- sleep 2", "what is started"),
                advice("Python: multiprocessing with forkserver or spawn; subprocess uses vfork from 3.10 on"),
            ),
        ),
    )


def _rate(case: Case) -> float | None:
    """How many the hog has to do with, of all that the node starts."""
    made = case.count("stat", "processes")
    return None if made is None else own_rate(case, made, counter("stat", "processes"), _ALL, case.family)


def _measurements(case: Case) -> list[Measurement]:
    made = case.count("stat", "processes")
    instead = _walks_instead(case) or _copies_instead(case) or _works_with_memory(case)
    if instead is not None:
        return [instead]
    if not _is_its_doing(case):
        text = f"{case.hog.name} starts no processes and is not one of a group of short-lived processes"
        rate = None if made is None else made.added
        return [Measurement(text, rate, "new processes", "counters", "nothing", counter="processes")]
    found = [
        unusual(case, "new processes", "processes", made, counter("stat", "processes"), _ALL,
                least=FORKS_MANY_PER_S, refutes_below=FORKS_FEW_PER_S, whose=case.family)
    ]  # fmt: skip
    found += _children_work(case)
    return found


def _walks_instead(case: Case) -> Measurement | None:
    """A process that starts or ends in a cgroup at its limit reclaims there, and may walk every zombie on the way. That
    is then the work, however many processes there are."""
    made = case.below(*_ALL.split()) & case.hog_samples
    walking = int(np.count_nonzero(made & case.below(*_WALK.split())))
    of_all = walking / max(int(np.count_nonzero(made)), 1)
    if of_all < FORK_WALK_SHARE:
        return None
    text = f"below fork, exec and exit {of_all * 100:.0f}% of the time goes into walking memory cgroups"
    return Measurement(text, round(of_all, 4), "ratio", "samples", "refutes")


def _copies_instead(case: Case) -> Measurement | None:
    """A few forks of a large process are no storm of processes."""
    copying = large_fork.measurement(case)
    return replace(copying, says="refutes") if copying.says == "confirms" else None


def _works_with_memory(case: Case) -> Measurement | None:
    """Processes that are started to fill shared memory, or to pin some, are not what their time goes into. The files
    that a program maps when it starts are part of starting it, and so is its end."""
    found = balance(case)
    other = {kind: part for kind, part in found.ordinary.items() if kind not in (EXIT, FILE)}
    share = sum(other.values())
    if not other or share < MEMORY_WORK_LEAST_SHARE or share <= found.storm:
        return None
    text = f"{share * 100:.0f}% of its kernel time is ordinary work with memory: it {next(iter(other)).does}"
    return Measurement(text, round(share, 4), "ratio", "samples", "refutes")


def _children_work(case: Case) -> list[Measurement]:
    """Whether what is started, the hog and its siblings, mostly computes."""
    family = case.family
    outside = 1 - int(np.count_nonzero(family & case.facts.samples.in_kernel)) / max(int(np.count_nonzero(family)), 1)
    text = f"all that is started there spent {outside * 100:.0f}% of its time outside the kernel"
    return [measured(text, round(outside, 4), "ratio", "samples", False if outside >= FORK_WORK_SHARE else None)]


def _is_its_doing(case: Case) -> bool:
    """Whether new processes have to do with the hog: it forks, it is many processes, or it is one of many that one
    starts. A large program that ends, with a hundred threads, while cron starts its jobs is none of that."""
    starter = case.starter
    many = case.hog_pids >= FORK_MANY_TASKS
    forks = (case.cores_in(*_FORK.split(), chosen=case.hog_samples) or 0.0) >= FORK_CALL_CORES
    return many or forks or (starter is not None and starter.started_most and starter.pid != case.hog.pid)


def _starter(case: Case) -> tuple[Actor | None, str]:
    """Storms are made of children; who started most of those that were sampled is to blame."""
    starter = case.starter
    what = "threads" if starter is not None and starter.are_threads else "processes"
    if starter is None:
        return case.answerable_hog, what
    if not starter.started_most:
        return _whole(case), what
    if starter.task is not None:
        return starter.task.actor(round(starter.samples / case.facts.hz / case.seconds, 3)), what
    hog, pid = case.hog, starter.pid
    if not case.cores_in(*_EXEC.split(), chosen=case.hog_samples):  # who only forks gives its children its own name
        return replace(hog, pid=pid), what
    return Actor(pid=pid, unit=hog.unit, cgroup=hog.cgroup, container=hog.container, pod=hog.pod), what


def _whole(case: Case) -> Actor | None:
    """The unit or container that all of it is in, where no single process started most."""
    grid = case.facts.samples
    best = grid.hottest_group(case.hog_samples, lambda task: task.unit or task.container)
    if best is None or best[1] < MOSTLY_SHARE * np.count_nonzero(case.hog_samples):
        return None
    task, cores = best[0], round(best[1] / case.facts.hz / case.seconds, 3)
    return replace(task.actor(cores), comm=None, pid=None)


PATTERN = Pattern(
    id="fork-storm",
    title="Processes are started constantly",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Kernel time in fork, exec and exit, spread over hundreds of processes that live for milliseconds, so "
    "no process list shows them.",
    confirmed_by="50 more new processes per second than usual, and the hog forks or is one or many of them (without a "
    "baseline, the hog's own share counts, and counts half).",
    refuted_by="Less than one new process per second (threads count as processes). The children compute for 60% of "
    "their time, as in a compile farm. Most of the time below fork, exec and exit goes into walking memory "
    "cgroups, or into copying the page tables of a large process (large-fork). Or 40% of the kernel time, "
    "and more than processes take, fills or shares memory, which is memory-turnover.",
    remedy="Do the work in one process or in batches; start helpers by vfork or posix_spawn.",
    stop_gap="limit its number of tasks (TasksMax= of its unit, pids.max of its container); forks above the limit fail",
    examine=examine,
    numbers_tell=True,
    signatures=(signature(_ALL, means="processes are made, and end"),),
    also=FILE.functions,  # what a program that was just started reads of itself
    hog="The children, added up by their parent, name or unit.",
    culprit="The parent that starts them.",
    known_from="kubernetes 61793; measured on 6.18 (1,180 exec a second on one core)",
)

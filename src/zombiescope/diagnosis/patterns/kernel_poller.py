"""A thread of the kernel that polls because a program asked it to: io_uring's SQPOLL, vhost, the GPU driver's.

It takes a core for as long as the program wants that, and gives it to whoever is due: no core is lost."""

from __future__ import annotations

import re

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, signature
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import POLLER_SHARE
from zombiescope.model.plans.step import advice, command

_POLLS = {
    "iou-sqp-": ("io_uring submission queue polling", "io_sq_thread __io_sq_thread io_sq_offload"),
    "vhost-": ("virtual devices of a machine", "vhost_worker vhost_run_work_list vhost_task_fn"),
    "irq/": ("interrupts of the GPU driver", "nvidia_isr_kthread_bh nvidia_isr_msix_kthread_bh nvidia_isr_bh_unlocked"),
}
"""How the thread's name begins -> what it polls for, and the functions in which it does."""
_OWNER = re.compile(r"(?:iou-sqp-|vhost-)(\d{1,10})$")


def examine(case: Case) -> Evidence:
    name, what = case.hog.comm or "", _kind(case)
    owner = _owner(case)
    whose = f" for {owner.subject}" if owner is not None else ""
    return Evidence(
        (_polling(case),),
        owner,
        f"{name} polls{whose}: {what}",
        Fix(
            "nothing has to be done, unless someone needs that core",
            (
                command(shell("ps", "-o", "pid,psr,time,args", "-p", owner.pid) if owner and owner.pid else "ps -eLf",
                        "whose it is"),
                advice("SQPOLL: a shorter sq_thread_idle, or one ring with IORING_SETUP_SQ_AFF on a separate core"),
                advice("vhost: pin it next to its machine (vCPU pinning), and off the cores that serve network cards"),
            ),
        ),
        is_ordinary=True,
    )  # fmt: skip


def _kind(case: Case) -> str:
    name = case.hog.comm or ""
    return next((what for start, (what, _) in _POLLS.items() if name.startswith(start)), "its queue")


def _owner(case: Case) -> Actor | None:
    """The process that the thread's name, or the thread's own pid, leads to. Kernels up to 6.3 have vhost threads of
    kthreadd's, named after the process."""
    task = case.hog_task
    named = _OWNER.match((task.comm or "") if task is not None else "")
    if task is None or named is None:
        return None
    known = [one for one in case.facts.samples.known.tasks.values() if one.pid == int(named[1]) and one.comm]
    main = next((one for one in known if one.tid == one.pid), next(iter(known), None))
    if main is not None and main.comm != task.comm:
        return case.blamed(main.actor())
    own = task.pid == int(named[1])
    return case.blamed(
        Actor(pid=int(named[1]), unit=task.unit, cgroup=task.cgroup) if own else Actor(pid=int(named[1]))
    )


def _polling(case: Case) -> Measurement:
    """By its name and its functions: any process may be called vhost-1, and runs no vhost_worker."""
    functions = [name for start, (_, names) in _POLLS.items() if (case.hog.comm or "").startswith(start)
                 for name in names.split()]  # fmt: skip
    share = case.profile.share(case.profile.total(*functions)) if functions else 0.0
    cores = case.cores_in(*functions, chosen=case.hog_samples) if functions else 0.0
    return cpu_used(f"polling is {share * 100:.0f}% of its kernel time: {{}}", cores, share >= POLLER_SHARE)


PATTERN = Pattern(
    id="kernel-poller",
    title="A kernel thread polls for a program",
    proof="literature",
    looks_like="A thread named iou-sqp-PID, vhost-PID or irq/N-nvidia fills a core in the kernel, for as long as its "
    "program runs. An inference server with SQPOLL, or a host of virtual machines, has several at all times.",
    confirmed_by="80% of the thread's kernel time in its polling loop. It is a note (`info`), unless someone suffers "
    "from it.",
    refuted_by="Less than that, or another name.",
    remedy="Nothing, unless the core is needed; then a shorter idle time, or a separate core.",
    no_stop_gap="it is ordinary work, and no one suffers from it unless another incident says so",
    examine=examine,
    signatures=tuple(signature(names, means=f"a thread polls: {what}") for what, names in _POLLS.values()),
    culprit="The program that asked for it.",
    known_from="io_uring/sqpoll.c, drivers/vhost/vhost.c, the NVIDIA open kernel modules",
)

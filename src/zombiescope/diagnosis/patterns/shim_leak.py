"""The container runtime is stuck behind shims that nobody ends, and kubelet reports that PLEG is not healthy."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.thresholds import SHIMS_MORE
from zombiescope.model.plans.step import command, note

RUNTIMES = ("containerd-shim", "containerd", "dockerd", "crio", "conmon", "kubelet", "runc")


def examine(case: Case) -> Evidence:
    stuck = [one for one in case.facts.waiting if one.hangs and one.comm.startswith(RUNTIMES)]
    if not stuck:
        return Evidence(())
    count, names = len({one.tid for one in stuck}), sorted({one.comm for one in stuck})
    waits = measured(f"{count:,} tasks of {', '.join(names)} do not move", count, "tasks", "waiting", None)
    return Evidence((waits, _shims(case)), None, _summary(names), _fix())


def _shims(case: Case) -> Measurement:
    shims = case.peak("tasks", "shims")
    living = sum(one.alive for one in case.facts.recent_containers.values())
    if shims is None or not case.facts.recent_containers:
        return Measurement("shims and containers were not counted", None, "shims", "counters", "nothing")
    text = f"{shims:,} shims for {living:,} containers that live"
    return measured(text, shims, "shims", "counters", shims - living >= SHIMS_MORE)


def _summary(names: list[str]) -> str:
    return f"the container runtime is stuck ({', '.join(names)}), behind shims that outlived their containers"


def _fix() -> Fix:
    return Fix(
        "find the shims whose container is gone, and what the runtime waits for",
        (
            command("ps -eo pid,stat,etimes,wchan:30,args | grep [c]ontainerd-shim", "how old, and where they wait"),
            command("journalctl -u kubelet --since -15min | grep -i PLEG", "since when kubelet complains"),
            note("a shim in state D waits for storage: look for what hangs; one that sleeps can be ended by its pod"),
        ),
    )


PATTERN = Pattern(
    id="shim-leak",
    title="Shims outlive their containers, and the runtime is stuck",
    proof="literature",
    looks_like="kubelet reports that PLEG is not healthy, and the node turns NotReady; pods stay in Terminating; there "
    "are many more containerd-shim processes than containers.",
    confirmed_by="There are at least 20 more shims than live containers, while tasks of the runtime or kubelet are "
    "stuck.",
    refuted_by="About as many shims as live containers: then the runtime waits for something else.",
    remedy="End the shims whose container is gone, and find out what they waited for.",
    stop_gap="end shims whose container is gone, through their pod; one in state D cannot be ended",
    examine=examine,
    symptoms=frozenset({"tasks_wait"}),
    hog="No process: a waiting task uses no CPU.",
    culprit="No process: the runtime carries out requests of others.",
    known_from="kubernetes issues about PLEG, containerd issues about shims that are left behind",
)

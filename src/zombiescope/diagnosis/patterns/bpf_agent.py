"""BPF programs of a security or tracing agent run at every system call, fault or packet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured, signature
from zombiescope.diagnosis.plan import set_sysctl
from zombiescope.diagnosis.sample_index import BPF_PROGRAM
from zombiescope.diagnosis.thresholds import BPF_CORES, BPF_FILTERS_SHARE, BPF_LITTLE_CORES
from zombiescope.model.plans.step import Step, advice, command

AGENTS = (
    "falco*", "tetragon*", "tracee*", "cilium-agent*", "datadog-agent*", "system-probe*", "security-agent*", "sysdig*",
    "dragent*", "osqueryd*", "pixie*", "parca-agent*", "beyla*", "inspektor*", "kubearmor*", "falcon-sensor*",
    "bpftrace*",
)  # fmt: skip
_PROGRAMS = (
    f"{BPF_PROGRAM} __bpf_prog_run* trace_call_bpf bpf_trace_run* __bpf_trace_* kprobe_ftrace_handler"
    " bpf_overflow_handler"
)
_HELPERS = (
    "__htab_map_lookup_elem htab_lock_bucket __bpf_ringbuf_reserve bpf_perf_event_output bpf_get_stackid "
    "htab_map_update_elem"
)

_FILTERS = (
    "__seccomp_filter seccomp_run_filters secure_computing __secure_computing seccomp_phase1 populate_seccomp_data"
    " sk_filter_trim_cap run_filter __cgroup_bpf_check_dev_permission"
)


def examine(case: Case) -> Evidence:
    agent = case.blamed(case.busiest_of(*AGENTS))
    return Evidence(
        tuple(_programs(case)),
        agent,
        f"BPF programs that run at every event hold up {case.hog.name}"
        + (f"; {agent.name} is the agent that listens" if agent else ""),
        Fix(
            "let the agent listen to fewer events",
            (
                command("bpftool perf show", "which events they are attached to"),
                *_measuring(case),
                command("bpftool prog show | grep -B1 run_time_ns", "which programs take most, while it is on"),
                advice("narrow the agent's event list, then measure again"),
            ),
        ),
    )


def _measuring(case: Case) -> list[Step]:
    """For a person who looks: it makes nothing better, so `fix` does not do it."""
    found = set_sysctl(
        case.facts, "kernel.bpf_stats_enabled", "1", "to measure for some seconds; then take it back",
        touches="the kernel takes the time of every BPF program, which costs some nanoseconds a run",
    )  # fmt: skip
    return [replace(step, part="look", act=None) for step in found]


def _programs(case: Case) -> list[Measurement]:
    """The program with most samples, by name: the frame of a BPF program carries its tag and name."""
    cores = case.cores_in(*_PROGRAMS.split(), *_HELPERS.split())
    if cores is None:
        return [Measurement("BPF programs were not sampled", None, "cores", "samples", "nothing")]
    counted = case.node_profile.totals(BPF_PROGRAM)
    filters = _filters(case)
    if filters >= BPF_FILTERS_SHARE * cores > 0:
        return [cpu_used("filters of seccomp and of sockets, which no agent loads, took {}", filters, False)]
    found = [
        cpu_used(
            "BPF programs and their helpers took {}",
            cores,
            True if cores >= BPF_CORES and counted else False if cores < BPF_LITTLE_CORES else None,
        )
    ]
    for name in sorted(counted, key=lambda name: -counted[name])[:1]:
        each = counted[name] / case.facts.hz / case.seconds
        found.append(measured(f"most of it in {name}", round(each, 4), "cores", "samples", None))
    return found


def _filters(case: Case) -> float:
    """CPU in BPF programs that a program has for its own system calls or packets: sandboxes of containers, of browsers
    and of systemd, and whoever reads a card with a filter."""
    programs = case.below(*_PROGRAMS.split(), *_HELPERS.split()) & case.below(*_FILTERS.split())
    return int(np.count_nonzero(programs)) / case.facts.hz / case.seconds


PATTERN = Pattern(
    id="bpf-agent",
    title="An agent's BPF programs run all the time",
    proof="literature",
    looks_like="Kernel time in bpf_prog_ functions, map lookups and ring buffers, charged to whatever program happened "
    "to make the system call.",
    confirmed_by="BPF programs and their helpers use 0.3 of a CPU or more; the stacks name the program.",
    refuted_by="They use less than 0.05 of a CPU, or half of that is in seccomp and socket filters, which agents do "
    "not load.",
    remedy="Narrow the agent's events, or switch off the probe that costs most (bpftool prog, run_time_ns).",
    stop_gap="stop the agent, or its most costly probe, while jobs run; until then it monitors nothing",
    examine=examine,
    signatures=(signature(f"{_PROGRAMS} {_HELPERS}", means="a BPF program runs"),),
    scope="node",
    hog="The program that made the system calls: the victim, not the agent.",
    culprit="The agent that loaded the programs, where a known one runs.",
    known_from="falco 2475, 1809, 3630, 896",
)

"""IPVS adds up the rates of all services in one timer: with thousands of services a core stops every two seconds."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_below, cpu_used, measured, signature
from zombiescope.diagnosis.plan import set_sysctl
from zombiescope.diagnosis.thresholds import IPVS_LITTLE_RATIO, IPVS_SOFTIRQ_RATIO, IPVS_THREAD_CORES
from zombiescope.model.plans.step import advice, command

_TIMER = "estimation_timer"
_THREAD = "ip_vs_estimation_kthread ip_vs_chain_estimation ip_vs_tick_estimation"


def examine(case: Case) -> Evidence:
    thread = case.cores_in(*_THREAD.split())
    found = [cpu_below(case, "the IPVS estimator", f"{_TIMER} {_THREAD}", confirms_from=1e9)]
    if not thread:
        found.append(_softirq(case))
    else:
        found.append(cpu_used("its own thread used {}", thread, thread >= IPVS_THREAD_CORES))
    return Evidence(
        tuple(found),
        Actor(comm="kube-proxy") if case.cores_of("kube-proxy") else None,
        "the IPVS rate estimator holds a core: it visits every service and every core in one timer",
        Fix(
            "turn the estimator off, or take a kernel that has it in a thread",
            (
                command("ipvsadm -Ln | wc -l", "how many services and servers"),
                *set_sysctl(
                    case.facts,
                    "net.ipv4.vs.run_estimation",
                    "0",
                    "where the kernel has it",
                    touches="rates in ipvsadm no longer update; balancing does not change",
                ),
                advice("a kernel from 6.2 on estimates in threads, which can be preempted"),
            ),
        ),
    )


def _softirq(case: Case) -> Measurement:
    ratio = case.core_mean("softirq")
    if ratio is None:
        return Measurement("softirq time was not measured", None, "ratio", "cores", "nothing")
    says = True if ratio >= IPVS_SOFTIRQ_RATIO else False if ratio < IPVS_LITTLE_RATIO else None
    return measured(f"softirqs took {ratio * 100:.1f}% of the core", round(ratio, 4), "ratio", "cores", says)


PATTERN = Pattern(
    id="ipvs-estimator",
    title="The IPVS rate estimator holds a core",
    proof="literature",
    looks_like="Every two seconds one core spends 50 to 200 ms in a timer of ip_vs, in softirq: packets and tasks of "
    "that core wait. It takes longer the more services and cores there are.",
    confirmed_by="The core whose samples show the estimator spent at least 10% in softirqs (or its thread used 0.2 of "
    "a CPU).",
    refuted_by="That core had hardly any softirq time (below 0.5%).",
    remedy="Set net.ipv4.vs.run_estimation=0, use fewer services per node, or run kernel 6.2 or newer.",
    stop_gap="switch the estimator off, where the kernel has net.ipv4.vs.run_estimation; else have fewer "
    "services on the node",
    examine=examine,
    signatures=(
        signature(_TIMER, means="rates of IPVS services are estimated in a timer, as before 6.2"),
        signature(_THREAD, means="rates of IPVS services are estimated in a thread, as from 6.2 on"),
    ),
    scope="core",
    hog="The task that was interrupted; the work is the kernel's.",
    culprit="kube-proxy in IPVS mode, if it runs.",
    known_from="Alibaba Cloud documentation of run_estimation; kernel 6.2 moved it into threads",
)

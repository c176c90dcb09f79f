"""Network namespaces are constantly created and torn down: setup in the caller, cleanup in a kworker, both under
rtnl."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured, signature
from zombiescope.diagnosis.thresholds import NETNS_CORES
from zombiescope.model.plans.step import command

_SETUP = "copy_net_ns setup_net ops_init"
_CLEANUP = (
    "cleanup_net ops_exit_list ops_undo_list ops_undo_single default_device_exit_batch unregister_netdevice_many"
    " unregister_netdevice_many_notify cleanup_net_work"
)


def examine(case: Case) -> Evidence:
    caller = case.caller("copy_net_ns", "setup_net", "ops_init", makes=True)
    waits = [event for event in case.facts.events if event.kind == "netdev_unregister_wait"]
    found = [_both(case)]
    if waits:
        text = f"{len(waits)} times the kernel waited for a device of a dead namespace"
        found.append(measured(text, len(waits), "lines", "events", True, at_us=waits[0].at_us))
    return Evidence(
        tuple(found),
        caller,
        f"{caller.subject if caller else 'somebody'} keeps the kernel busy with network namespaces that come and go",
        Fix(
            "create fewer network namespaces: longer-lived pods, no sandbox for each short job",
            (
                command("lsns -t net | wc -l"),
                command("perf trace -e unshare,clone -a -- sleep 5", "who creates them"),
            ),
        ),
    )


def _both(case: Case) -> Measurement:
    """Setup and cleanup in the same seconds are churn; one alone may be a leak, or a single large teardown."""
    made, torn = case.cores_in(*_SETUP.split()), case.cores_in(*_CLEANUP.split())
    if made is None or torn is None:
        return Measurement("setup and teardown were not sampled", None, "cores", "samples", "nothing")
    says = True if made >= NETNS_CORES and torn >= NETNS_CORES else False if made == 0 else None
    text = f"network namespaces were set up for {made:.2f} of a CPU and torn down for {torn:.2f}"
    return measured(text, round(made, 4), "cores", "samples", says)


PATTERN = Pattern(
    id="netns-churn",
    title="Network namespaces are constantly created and torn down",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="A kworker (netns) in cleanup_net and a caller in copy_net_ns share the kernel time. Both hold the rtnl "
    "lock, so everything that configures the network waits.",
    confirmed_by="Setting namespaces up and tearing them down each use at least 0.1 of a CPU in the same seconds.",
    refuted_by="None is being set up: then a single large namespace is torn down.",
    remedy="Create fewer of them, or find out what keeps them alive (dead pods, leaked file descriptors).",
    stop_gap="start fewer of the jobs that create them at the same time",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(_CLEANUP, means="network namespaces are torn down"),
        signature(_SETUP, means="network namespaces are set up"),
    ),
    hog="The kworker or the caller, whichever used more.",
    culprit="The caller that creates them, not the kworker.",
    known_from="moby 32090 and 41136; measured on 6.18",
)

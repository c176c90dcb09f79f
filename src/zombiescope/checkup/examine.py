"""From a recording of some seconds, and a look around it, to a check-up."""

from __future__ import annotations

from dataclasses import replace

from zombiescope._missing import Missing
from zombiescope.checkup import rules_cores, rules_node
from zombiescope.checkup.around import Surroundings
from zombiescope.checkup.cgroups import cgroups_seen
from zombiescope.checkup.checkup import Audited, Checkup, rank
from zombiescope.checkup.cores import Window, cores_seen, window_of
from zombiescope.checkup.counted import Counted
from zombiescope.checkup.network import network
from zombiescope.checkup.pressure import pressure, reclaim
from zombiescope.checkup.sampled import Sampled
from zombiescope.checkup.seen import gathered, seen
from zombiescope.checkup.stalls import stalls
from zombiescope.checkup.units import units_seen
from zombiescope.recording.reader import Recording
from zombiescope.views.cost import Cost, recorder_cost
from zombiescope.views.events import events


def examine(recording: Recording, around: Surroundings, audit: Audited) -> Checkup | None:
    """None when the recording has no tick: then nothing was seen at all."""
    window = window_of(recording)
    if window is None:
        return None
    looked = _look(recording, window, around, audit)
    found = [*rules_cores.findings(looked), *rules_node.findings(looked)]
    return replace(looked, findings=tuple(sorted(found, key=lambda finding: -rank(finding))))


def _look(recording: Recording, window: Window, around: Surroundings, audit: Audited) -> Checkup:
    cost = recorder_cost(recording, window.start_us, window.end_us + 1)
    missing = gathered(recording.node.get("missing"), [*around.missing, *_lost(cost), *audit.missing])
    lacking = {one.source for one in missing}
    sources = seen(missing)
    sampled = Sampled(recording, window.start_us, window.end_us)
    counted = Counted(recording, window)
    happened = tuple(events(recording, window.start_us, window.end_us + 1_000_000))
    return Checkup(
        node=recording.name,
        kernel=recording.node.get("kernel"),
        window=window,
        cores=cores_seen(recording, window, sampled),
        stalls=stalls(recording, window, sampled) if sources["stack samples"] else (),
        threads=tuple(sampled.kernel_threads_of_time()),
        crowds=tuple(sampled.kernel_crowds()),
        real_time=tuple(sampled.real_time()),
        pressure=pressure(counted, lacking),
        reclaim=reclaim(counted, lacking),
        cgroups=cgroups_seen(recording, window, traced=sources["cgroup tracepoints"]),
        network=network(recording, window, counted, lacking),
        units=units_seen(happened, around.units),
        events=happened,
        around=around,
        audit=audit,
        missing=missing,
        sources=sources,
        cost=cost,
    )


def _lost(cost: Cost | None) -> list[Missing]:
    if cost is None or not cost.lost:
        return []
    why = f"{cost.lost} records did not fit into the rings"
    return [Missing("stack samples (in part)", why, "nothing: totals stay exact, numbers of a path are a lower bound")]

"""A check-up: everything that a short recording and a look around it tell about a node, with what was found."""

from __future__ import annotations

from dataclasses import dataclass, replace

from zombiescope.audit.finding import Finding
from zombiescope.checkup.around import Missing, Surroundings
from zombiescope.checkup.cgroups import CgroupsSeen, cgroups_seen
from zombiescope.checkup.cores import CoresSeen, Window, cores_seen, window_of
from zombiescope.checkup.counted import Counted
from zombiescope.checkup.network import Network, network
from zombiescope.checkup.pressure import Pressure, Reclaim, pressure, reclaim
from zombiescope.checkup.sampled import Hog, Sampled
from zombiescope.checkup.seen import gathered, seen
from zombiescope.checkup.stalls import Stall, stalls
from zombiescope.checkup.units import UnitsSeen, units_seen
from zombiescope.recording.cost import recorder_cost
from zombiescope.recording.events import SEVERITIES, Event, events
from zombiescope.recording.reader import Recording
from zombiescope.recording.recent import Cost


@dataclass(frozen=True, slots=True)
class Audited:
    """What the audit of the node found, worst first, and what it could not look at."""

    findings: tuple[Finding, ...] = ()
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkup:
    """None is not measured; `missing` says why."""

    node: str
    kernel: str | None
    window: Window
    cores: CoresSeen
    stalls: tuple[Stall, ...]
    threads: tuple[Hog, ...]
    crowds: tuple[Hog, ...]
    real_time: tuple[Hog, ...]
    pressure: dict[str, Pressure]
    reclaim: Reclaim | None
    cgroups: CgroupsSeen
    network: Network
    units: UnitsSeen | None
    events: tuple[Event, ...]
    around: Surroundings
    audit: Audited
    missing: tuple[Missing, ...]
    sources: dict[str, bool]
    cost: Cost | None
    findings: tuple[Finding, ...] = ()
    """Of the window, worst first; the audit's are in `audit`."""

    def all_findings(self) -> list[Finding]:
        """With the audit's, worst first; what happened stands before what might."""
        return sorted([*self.findings, *self.audit.findings], key=lambda finding: -rank(finding))


def rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity) if finding.severity in SEVERITIES else len(SEVERITIES)


def examine(recording: Recording, around: Surroundings, audit: Audited) -> Checkup | None:
    """None when the recording has no tick: then nothing was seen at all."""
    from zombiescope.checkup import rules_cores, rules_node

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

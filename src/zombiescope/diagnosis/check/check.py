"""A check: everything that a short recording and its surroundings say about a node, and the one sentence about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope.audit.finding import Finding
from zombiescope.audit.surroundings import Surroundings
from zombiescope.base.missing import Missing
from zombiescope.base.severity import rank
from zombiescope.diagnosis.check.cores import HeldCores, Holder, TickSpan
from zombiescope.diagnosis.check.findings import WindowFinding
from zombiescope.diagnosis.check.units import Units
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.node.systemd.show import RunningUnit
from zombiescope.query.cgroups import CgroupsView, Growth, Leak
from zombiescope.query.cost import Cost
from zombiescope.query.node_counters import Card, Reclaim, SoftnetCore, WindowPressure
from zombiescope.store.event import Event


@dataclass(frozen=True, slots=True)
class Audited:
    """What the audit of the node found, worst first, and what it could not look at."""

    findings: tuple[Finding, ...] = ()
    missing: tuple[Missing, ...] = ()
    running: dict[str, RunningUnit] | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """kind: no_samples (interrupts were off, or the core was not run at all), held (by one task in the kernel, while
    others waited) or ksoftirqd (it waited that long). `cpu` None is the whole machine."""

    kind: str
    cpu: int | None
    at_us: int
    seconds: float
    hog: Holder | None


@dataclass(frozen=True, slots=True)
class Hogs:
    """Longest first."""

    threads: tuple[Holder, ...]
    crowds: tuple[Holder, ...]
    real_time: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class CgroupState:
    """`makers`: paths at which cgroups came or went, most first; None without tracepoints."""

    view: CgroupsView
    growth: Growth
    makers: tuple[Leak, ...] | None
    requested_by: dict[str, str] = field(default_factory=dict)
    """Path of a maker's line -> who asked for its cgroups, where the maker only carries out."""


@dataclass(frozen=True, slots=True)
class Network:
    """None: not measured."""

    cards: tuple[Card, ...] | None
    softnet: tuple[SoftnetCore, ...] | None


@dataclass(frozen=True, slots=True)
class Check:
    """None is not measured; `missing` says why."""

    node: str
    kernel: str | None
    window: TickSpan
    diagnosis: Diagnosis
    cores: HeldCores
    stalls: tuple[Stall, ...]
    hogs: Hogs
    pressure: dict[str, WindowPressure]
    reclaim: Reclaim | None
    cgroups: CgroupState
    network: Network
    units: Units | None
    events: tuple[Event, ...]
    surroundings: Surroundings
    audit: Audited
    missing: tuple[Missing, ...]
    sources: dict[str, bool]
    cost: Cost | None
    findings: tuple[WindowFinding, ...]
    """Of the window, worst first; the audit's are in `audit`."""

    def all_findings(self) -> list[Finding]:
        """With the audit's, worst first; what happened stands before what might."""
        return sorted([*self.findings, *self.audit.findings], key=lambda finding: -rank(finding.severity))


@dataclass(frozen=True, slots=True)
class Verdict:
    """severity: critical, warning, info, or ok. `finding` is the one it was taken from."""

    severity: str
    text: str
    finding: Finding | None = None


def verdict(check: Check) -> Verdict:
    """What was worst, or that nothing was found, on how much of what there is to see."""
    worst = check.findings[0] if check.findings else None
    if worst is not None and rank(worst.severity) > 0:
        return Verdict(worst.severity, worst.why, worst)
    seen, there = sum(check.sources.values()), len(check.sources)
    on = f"{seen} of {there} sources" if seen < there else f"all {there} sources"
    words = f"no problems in {check.window.seconds:.0f} s ({on} readable)"
    serious = [finding for finding in check.audit.findings if rank(finding.severity) > 0]
    if serious:
        words += f"; audit: {len(serious)} findings that may cause an incident later"
    return Verdict("ok", words)

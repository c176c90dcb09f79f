"""Faults that the GPU's driver reports: many lines of one code on one GPU are one fault, and several codes one story.

A GPU that is lost prints its code a hundred thousand times, then other codes, then the channels that it takes with it.
Of the codes of one GPU that come within a minute one leads: never a channel that was stopped because of something else
(43, 45), and the worst of the others. What is to be done about it comes, in this order, from the driver's own wish
(Xid 154), from the severity in the text (NVLink, contained memory errors), from the catalogue, and from whether
different jobs had an application's fault on the same GPU. Who is to blame and what to do are separate answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from zombiescope.base.severity import Severity, rank
from zombiescope.diagnosis.thresholds import XID_PROBE_US, XIDS_TOGETHER_US
from zombiescope.kernel import xid
from zombiescope.kernel.pci_address import device
from zombiescope.kernel.xid import Action, Blame
from zombiescope.store.event import Event

KIND = "gpu_xid"
PROBE = "gpu_probe"
UNKNOWN = "look the code up in NVIDIA's catalogue of Xids; drain the node if jobs fail on it"

Job = Callable[[Event], str | None]
"""Whose channel a line is about; None where nobody knows."""


@dataclass(slots=True)
class Fault:
    """One code of one GPU."""

    code: int
    first: Event
    last: Event
    count: int = 0
    jobs: set[str] = field(default_factory=set)

    @property
    def severity(self) -> Severity:
        """A text that says whether it is fatal is believed; a code that nobody knows is as bad as its line."""
        if self.code in xid.NVLINK5 and self.first.fields.get("fatal") == 0:
            return "warning"
        listed = xid.known(self.caused_by or self.code)
        said: Severity = "warning" if self.first.severity == "warning" else "critical"
        return said if listed is None else listed.severity

    @property
    def caused_by(self) -> int | None:
        """The code that removed this channel, where the driver says so (since 570)."""
        code = self.first.fields.get("after_xid")
        return code if isinstance(code, int) and code not in xid.FOLLOWERS else None

    @property
    def is_news(self) -> bool:
        """Not only a channel that ended with its process, or a wish that is over."""
        if self.code in xid.FOLLOWERS:
            return self.caused_by is not None and self.severity != "info"
        return self.first.severity != "info"

    def document(self) -> dict[str, float | int]:
        return {
            "xid": self.code,
            "count": self.count,
            "first": self.first.at_us / 1e6,
            "last": self.last.at_us / 1e6,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    code: int
    severity: Severity
    blame: Blame | None
    action: Action | None
    because: str
    """Where the action comes from, in words."""

    @property
    def do(self) -> str:
        return UNKNOWN if self.action is None else xid.TO_DO[self.action]


@dataclass(frozen=True, slots=True)
class GpuStory:
    """The faults of one GPU, near in time, in the order in which they began."""

    faults: tuple[Fault, ...]
    verdict: Verdict

    @property
    def leading(self) -> Fault:
        return _leading(self.faults)

    @property
    def from_us(self) -> int:
        return min(one.first.at_us for one in self.faults)

    @property
    def to_us(self) -> int:
        return max(one.last.at_us for one in self.faults)

    @property
    def count(self) -> int:
        return sum(one.count for one in self.faults)


def stories(events: Iterable[Event], job: Job) -> Iterator[GpuStory]:
    """What happened to each GPU. Channels that ended with their process are no story."""
    by_gpu: dict[str, list[Event]] = {}
    for event in _with_places(sorted(events, key=lambda event: event.at_us)):
        by_gpu.setdefault(device(str(event.fields.get("gpu") or "")) or "", []).append(event)
    for same in by_gpu.values():
        for burst in _bursts(same):
            faults = _faults(burst, job)
            if any(one.is_news for one in faults):
                yield GpuStory(faults, verdict(faults))


def verdict(faults: tuple[Fault, ...]) -> Verdict:
    first = _leading(faults)
    code = first.caused_by or first.code
    listed = xid.known(code)
    blame = None if listed is None else listed.blame
    wish = _wish(faults)
    if wish is not None:
        severity: Severity = "warning" if wish == "none" and rank(first.severity) > rank("warning") else first.severity
        return Verdict(code, severity, blame, wish, "the driver itself asks for it (Xid 154)")
    text = _in_text(first)
    if text is not None:
        return Verdict(code, first.severity, blame, text, "the driver's line says so")
    if listed is None:
        return Verdict(code, first.severity, None, None, "the code is in no list that we know")
    if blame == "application" and len(first.jobs) > 1:
        many = f"{len(first.jobs)} different jobs had it on this GPU"
        return Verdict(code, first.severity, "gpu", "test", many)
    return Verdict(code, first.severity, blame, listed.action, "NVIDIA's catalogue of Xids")


def _leading(faults: tuple[Fault, ...]) -> Fault:
    def weight(one: Fault) -> tuple[bool, bool, int, int]:
        return one.code in xid.FOLLOWERS, one.code == xid.RECOVERY_CODE, -rank(one.severity), one.first.at_us

    return min(faults, key=weight)


def _wish(faults: tuple[Fault, ...]) -> Action | None:
    """The driver's last."""
    asked = next((one for one in faults if one.code == xid.RECOVERY_CODE), None)
    number = None if asked is None else asked.last.fields.get("recovery")
    return xid.RECOVERY.get(number) if isinstance(number, int) else None


def _in_text(fault: Fault) -> Action | None:
    said = fault.last.fields
    if fault.code in xid.NVLINK5 and "fatal" in said:
        return "reset" if said["fatal"] else "watch"
    if said.get("drain") == 1:
        return "drain-reset"
    return "reset" if said.get("reset") == 1 else None


def _faults(burst: list[Event], job: Job) -> tuple[Fault, ...]:
    found: dict[int, Fault] = {}
    for event in burst:
        code = event.fields.get("xid")
        if not isinstance(code, int):
            continue
        fault = found.setdefault(code, Fault(code, event, event))
        fault.last = event
        fault.count += int(event.fields.get("held") or 1)
        if (who := job(event)) is not None:
            fault.jobs.add(who)
    return tuple(found.values())


def _with_places(events: list[Event]) -> Iterator[Event]:
    """Xids; one that names no GPU is of the GPU that was probed just before it, where a reader split the driver's
    lines."""
    probed: Event | None = None
    for event in events:
        if event.kind == PROBE:
            probed = event
        elif event.kind == KIND and isinstance(event.fields.get("xid"), int):
            near = probed is not None and event.at_us - probed.at_us <= XID_PROBE_US
            if near and probed is not None and not event.fields.get("gpu"):
                fields = {**event.fields, "gpu": probed.fields.get("gpu")}
                event = Event(event.at_us, event.kind, event.source, event.severity, event.text, fields)
            yield event


def _bursts(events: list[Event]) -> Iterator[list[Event]]:
    burst: list[Event] = []
    for event in events:
        if burst and event.at_us - burst[-1].at_us > XIDS_TOGETHER_US:
            yield burst
            burst = []
        burst.append(event)
    yield burst

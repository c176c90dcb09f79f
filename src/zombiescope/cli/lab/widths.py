"""Recorded faults, each spliced onto every healthy background at every width, and diagnosed there.

Needs no privileges: what `lab score --keep` or `lab run --keep` left is enough. At the width that a fault was recorded
at there is no room for a background, and it is diagnosed as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.lab import verdict
from zombiescope.lab.scenario_run import read_span
from zombiescope.lab.verdict import Document, Found

if TYPE_CHECKING:
    from zombiescope.lab.scenario import Scenario
    from zombiescope.store.reader import Recording

PACK = ".zscope"
HEALTHY = "healthy-"
TRAINING = "training"
TOGETHER_S = 2.0
"""A healthy load that fills the node is one job: it starts and ends on all cores at once."""


@dataclass(frozen=True, slots=True)
class WideOutcome:
    """One recording at one width beside one background; None: alone, as it was recorded."""

    scenario: Scenario
    cores: int
    background: str | None
    found: Found
    alarms: tuple[Document, ...] = ()
    """Of a healthy load: what is a warning or worse."""
    live: bool = False
    """Whether it was replayed to the live doctor, too."""
    onset_to_named_s: float | None = None

    @property
    def passed(self) -> bool:
        if self.scenario.kind != "fault":
            return not self.alarms
        return verdict.right_pattern(self.scenario, self.found) and verdict.right_culprit(self.scenario, self.found)

    def document(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.id,
            "kind": self.scenario.kind,
            "cores": self.cores,
            "background": self.background,
            "expected": self.scenario.truth.document(),
            "found": self.found.document(),
            "alarms": [{"severity": one["severity"], **verdict.claim(one)} for one in self.alarms],
            "live": self.live,
            "onset_to_named_s": None if self.onset_to_named_s is None else round(self.onset_to_named_s, 1),
            "pass": self.passed,
        }


def recordings_in(directory: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Scenario -> the recording of it that was kept, or a pack of it: faults, and healthy loads; of these also what
    somebody brought under a name of his own that begins alike."""
    from zombiescope.lab.scenario import every

    kinds = {one.id: one.kind for one in every()}
    named = {path.name.removesuffix(PACK): path for path in sorted(directory.iterdir())}
    faults = {name: path for name, path in named.items() if kinds.get(name) == "fault"}
    return faults, {name: path for name, path in named.items() if name.startswith(HEALTHY)}


@dataclass(frozen=True, slots=True)
class Job:
    """One diagnosis: a recording, what is beside it, and how wide the node is."""

    name: str
    place: Path
    cores: int
    background: str | None = None
    other: Path | None = None
    """On the cores that are left."""

    def __str__(self) -> str:
        beside = f" beside {self.background}" if self.background not in (None, self.name) else ""
        return f"{self.name} on {self.cores} cores{beside}"


def jobs(faults: Mapping[str, Path], backgrounds: Mapping[str, Path], widths: Sequence[int]) -> list[Job]:
    """`faults` by scenario; `backgrounds` by any name. What was recorded on more cores than a node has is left out."""
    own = widths_of({*faults.values(), *backgrounds.values()})
    found = []
    for cores in widths:
        for name, place in faults.items():
            if own[place] == cores:
                found.append(Job(name, place, cores))
            elif own[place] < cores:
                found += [Job(name, place, cores, beside, other) for beside, other in backgrounds.items()]
        found += [
            Job(name, place, cores, name, other_of(name, backgrounds, own))
            for name, place in backgrounds.items()
            if own[place] <= cores
        ]
    return found


def other_of(name: str, backgrounds: Mapping[str, Path], own: Mapping[Path, int]) -> Path:
    """What fills a wide node beside a healthy load: the load itself, as one job with more workers. What a node has once
    stands beside training, or else another load of cores, and of these one that was recorded on most of them: two
    different loads beside each other would be a crowd on some cores while others idle, which a real node moves."""
    loads = [other for other in backgrounds if not healthy_scenario(other).of_the_node]
    if name in loads or not loads:
        return backgrounds[name]
    return backgrounds[max(loads, key=lambda other: (own[backgrounds[other]], TRAINING in other))]


def widths_of(places: Collection[Path]) -> dict[Path, int]:
    """How many cores each was recorded on."""
    return {place: _width(place) for place in places}


def _width(place: Path) -> int:
    from zombiescope.store.reader import open_recording

    with open_recording(place) as recording:
        return len(recording.node["cpus"]["online"])


def outcome(job: Job, *, live: bool = False) -> WideOutcome:
    """`live`: what the live doctor would have said counts, too."""
    from zombiescope.store.reader import open_recording

    with open_recording(job.place) as recording, ExitStack() as stack:
        seen = _widened(recording, job, stack, live)
        span = read_span(job.place) or (recording.start_us, recording.end_us)
        incidents = _incidents(seen, span[0])
        made = _healthy(job, incidents) if job.name == job.background else _fault(job, incidents, span)
        return _with_live(made, seen, incidents, span) if live else made


def _fault(job: Job, incidents: Sequence[Document], span: tuple[int, int]) -> WideOutcome:
    from zombiescope.lab.scenario import by_id

    scenario = by_id(job.name)
    found = verdict.best_match(scenario, incidents, span[0] / 1e6, span[1] / 1e6)
    return WideOutcome(scenario, job.cores, job.background, found)


def _healthy(job: Job, incidents: Sequence[Document]) -> WideOutcome:
    alarms = tuple(one for one in incidents if one["severity"] != "info")
    return WideOutcome(healthy_scenario(job.name), job.cores, job.name, Found(), alarms)


def _with_live(made: WideOutcome, seen: Recording, incidents: Sequence[Document], span: tuple[int, int]) -> WideOutcome:
    """Where a recording does not say when the fault began, that is where the diagnosis has it begin."""
    from zombiescope.cli.lab.live_looks import live_looks

    mine = [one for one in incidents if made.scenario.kind == "fault" and verdict.concerns(made.scenario, one)]
    began = min((round(float(one["from"]) * 1e6) for one in mine), default=span[0])
    looks = live_looks(Path(seen.store.place) / seen.prefix, made.scenario, max(span[0], began), span[1])
    healthy = made.scenario.kind != "fault"
    alarms = {str(one["id"]): one for one in (*made.alarms, *(looks.alarms if healthy else ()))}
    return replace(made, live=True, onset_to_named_s=looks.named_s, alarms=tuple(alarms.values()))


def healthy_scenario(name: str) -> Scenario:
    """Also of a recording that somebody brought."""
    from zombiescope.lab.scenario import by_id

    try:
        return by_id(name)
    except KeyError:
        return replace(by_id("healthy-idle"), id=name)


def _widened(recording: Recording, job: Job, stack: ExitStack, live: bool) -> Recording:
    """The recording itself where it is as wide as it is to be; written again where it is to be replayed."""
    from zombiescope.lab.wide import widen
    from zombiescope.store.reader import open_recording

    wide_enough = len(recording.node["cpus"]["online"]) == job.cores
    if wide_enough and not live:
        return recording
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zombiescope-lab-wide-"))) / "wide"
    others = [] if wide_enough or job.other is None else [stack.enter_context(open_recording(job.other))]
    widen(recording, others, job.cores, directory, apart_s=TOGETHER_S if job.name == job.background else None)
    return stack.enter_context(open_recording(directory, temporary=True))


def _incidents(recording: Recording, from_us: int) -> list[Document]:
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.diagnosis.report.document import document

    listed: list[Document] = document(diagnose(recording, from_us, recording.end_us + 1))["incidents"]
    return listed

"""Recorded faults, each spliced onto every healthy background at every width, and diagnosed there.

Needs no privileges: what `lab score --keep` or `lab run --keep` left is enough. At the width that a fault was recorded
at there is no room for a background, and it is diagnosed as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.lab import verdict
from zombiescope.lab.run_file import read_span
from zombiescope.lab.verdict import Document, Found

if TYPE_CHECKING:
    from zombiescope.lab.scenario import Scenario
    from zombiescope.recording.reader import Recording

Progress = Callable[[str], None]
PACK = ".zscope"


@dataclass(frozen=True, slots=True)
class WideOutcome:
    """One recording at one width beside one background; None: alone, as it was recorded."""

    scenario: Scenario
    cores: int
    background: str | None
    found: Found
    alarms: tuple[Document, ...] = ()
    """Of a healthy load: what is a warning or worse."""

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
            "alarms": [
                {"severity": one["severity"], "summary": one["causes"][0]["summary"] if one["causes"] else None}
                for one in self.alarms
            ],
            "pass": self.passed,
        }


def recordings_in(directory: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Scenario -> the recording of it that was kept, or a pack of it: faults, and healthy loads."""
    from zombiescope.lab.scenario import every

    kinds = {one.id: one.kind for one in every()}
    named = {path.name.removesuffix(PACK): path for path in sorted(directory.iterdir())}
    kept = {name: path for name, path in named.items() if name in kinds}
    faults = {name: path for name, path in kept.items() if kinds[name] == "fault"}
    return faults, {name: path for name, path in kept.items() if name not in faults}


def count(faults: Mapping[str, Path], backgrounds: Mapping[str, Path], widths: Sequence[int]) -> int:
    """How many diagnoses `outcomes` makes."""
    wide = sum(width > 2 for width in widths)
    return (len(faults) + len(backgrounds)) * (len(widths) - wide) + (len(faults) + 1) * len(backgrounds) * wide


def outcomes(
    faults: Mapping[str, Path], backgrounds: Mapping[str, Path], widths: Sequence[int], progress: Progress
) -> Iterator[WideOutcome]:
    """`faults` by scenario; `backgrounds` by scenario, or by any other name."""
    for width in widths:
        for name, place in faults.items():
            yield from _fault(name, place, backgrounds, width, progress)
        for name, place in backgrounds.items():
            progress(f"{name} on {width} cores")
            yield _healthy(name, place, width)


def _fault(
    name: str, place: Path, backgrounds: Mapping[str, Path], width: int, progress: Progress
) -> Iterator[WideOutcome]:
    from zombiescope.lab.scenario import by_id
    from zombiescope.recording.reader import open_recording

    scenario = by_id(name)
    with open_recording(place) as fault:
        own = len(fault.node["cpus"]["online"])
        beside: list[tuple[str | None, Path | None]] = [(None, None)] if own == width else [*backgrounds.items()]
        for background, other in beside:
            progress(f"{name} on {width} cores" + (f" beside {background}" if background else ""))
            listed = _diagnosed(fault, other, width, place)
            yield WideOutcome(scenario, width, background, verdict.best_match(scenario, *listed))


def _healthy(name: str, place: Path, width: int) -> WideOutcome:
    from zombiescope.recording.reader import open_recording

    with open_recording(place) as recording:
        incidents, *_ = _diagnosed(recording, place, width, place)
    alarms = tuple(one for one in incidents if one["severity"] != "info")
    return WideOutcome(_healthy_scenario(name), width, name, Found(), alarms)


def _healthy_scenario(name: str) -> Scenario:
    from dataclasses import replace

    from zombiescope.lab.scenario import by_id

    try:
        return by_id(name)
    except KeyError:  # a recording that somebody brought
        return replace(by_id("healthy-idle"), id=name)


def _diagnosed(
    recording: Recording, background: Path | None, width: int, place: Path
) -> tuple[list[Document], float, float]:
    """The incidents of the wide node, and the span of time in which they count."""
    with ExitStack() as stack:
        seen = recording
        if len(recording.node["cpus"]["online"]) != width:
            assert background is not None
            seen = stack.enter_context(_widened(recording, background, width, stack))
        from_us, to_us = read_span(place) or (recording.start_us, recording.end_us)
        return _incidents(seen, from_us), from_us / 1e6, to_us / 1e6


def _widened(recording: Recording, background: Path, width: int, stack: ExitStack) -> Recording:
    from zombiescope.lab.wide import widen
    from zombiescope.recording.reader import open_recording

    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zombiescope-lab-wide-"))) / "wide"
    with open_recording(background) as other:
        widen(recording, [other], width, directory)
    return open_recording(directory, temporary=True)


def _incidents(recording: Recording, from_us: int) -> list[Document]:
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.diagnosis.report.document import document

    listed: list[Document] = document(diagnose(recording, from_us, recording.end_us + 1))["incidents"]
    return listed

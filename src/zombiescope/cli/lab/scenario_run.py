"""One scenario from beginning to end: a recorder of its own, the fault, the doctor's word, the diagnosis, the truth.

The time to a named cause is the doctor's: from the moment the fault began until incidents.json named the right pattern
and the right culprit. The comparison is made with the diagnosis of the whole window afterwards.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.cli import progress
from zombiescope.cli.lab.repair import FIXABLE, incident_of, repaired
from zombiescope.cli.private_recorder import PrivateRecorder, private_recorder
from zombiescope.lab import scenario_run, verdict
from zombiescope.lab.scenario import HERE, Scenario
from zombiescope.lab.scenario_run import ScenarioRun, stage
from zombiescope.lab.verdict import Document, Found
from zombiescope.store import incident_file

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

QUIET_S = 3.0
"""Before the fault: what the machine is like without it."""
LOADED_S = 120.0
"""For the live diagnosis to load, before anything else is done: on a node it has run for days when something breaks."""
LEAST_S = 6.0
"""A fault goes on for so long even when it was named at once."""
REPAIR_S = 300.0
"""More for one that is repaired as well; an emulated machine takes minutes for that."""
AFTER_S = 2.5
"""The recorder writes a frame a second."""


@dataclass(frozen=True, slots=True)
class Outcome:
    scenario: Scenario
    found: Found = field(default_factory=Found)
    live: Found = field(default_factory=Found)
    onset_to_named_s: float | None = None
    seconds: float = 0.0
    alarms: tuple[Document, ...] = ()
    """Warnings and critical incidents during a healthy load, live or afterwards; also those that were taken back."""
    harm: tuple[str, ...] = ()
    """Steps of plans that would stop who only carries out what others ask for."""
    skipped: str | None = None
    where: str = HERE
    ran: str = ""
    """The day, and the machine."""
    fix: Document | None = None
    """What became of its plan, where that was applied."""

    @property
    def top1(self) -> bool:
        return verdict.right_pattern(self.scenario, self.found)

    @property
    def culprit(self) -> bool:
        return verdict.right_culprit(self.scenario, self.found)

    @property
    def passed(self) -> bool:
        if self.scenario.kind == "fault":
            return self.top1 and self.culprit and not self.harm and (self.fix or {}).get("verified") is not False
        return not self.alarms and self.skipped is None

    def document(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.id,
            "kind": self.scenario.kind,
            "expected": self.scenario.truth.document(),
            "found": self.found.document(),
            "live": self.live.document(),
            "top1": self.top1,
            "culprit": self.culprit,
            "pass": self.passed,
            "onset_to_named_s": None if self.onset_to_named_s is None else round(self.onset_to_named_s, 1),
            "seconds": round(self.seconds, 1),
            "false_alarms": [
                {"at": one["from"], "severity": one["severity"], **verdict.claim(one)} for one in self.alarms
            ],
            "harm": list(self.harm),
            "skipped": self.skipped,
            "where": self.where,
            "ran": self.ran,
            "fix": self.fix,
        }


def of_document(scenario: Scenario, said: dict[str, Any]) -> Outcome:
    """As another machine reported it."""
    alarms = tuple({"from": one["at"], "severity": one["severity"], "causes": [one]} for one in said["false_alarms"])
    return Outcome(
        scenario, Found(**said["found"]), Found(**said["live"]), said["onset_to_named_s"], said["seconds"], alarms,
        harm=tuple(said["harm"]), where=said["where"], ran=said["ran"], fix=said.get("fix"),
    )  # fmt: skip


def perform(
    scenario: Scenario, *, seconds: float | None = None, keep: Path | None = None, fix: bool = False
) -> Outcome:
    """`seconds` is how long it lasts, a fault at most; `keep` a directory for the recording; `fix`: what was named is
    also repaired."""
    if scenario.kind == "replay":
        return _replay(scenario)
    scenario.build()
    with private_recorder("lab", diagnose=True) as recorder:
        fixable = fix and scenario.kind == "fault" and scenario.truth.pattern in FIXABLE
        lasts = seconds or scenario.seconds
        with progress.shown("loading the live diagnosis"):
            recorder.wait_for_live_diagnosis(LOADED_S)
        with stage(scenario, lasts + REPAIR_S if fixable else seconds) as running:
            time.sleep(QUIET_S)
            running.go()
            watched = _watch(scenario, recorder, running, lasts)
            ended_us = time.time_ns() // 1000
            repair = _repaired(scenario, recorder, running, watched) if fixable else None
        time.sleep(AFTER_S)
        try:
            outcome = _compared(scenario, recorder, running.began_us, ended_us, watched)
            return replace(outcome, ran=_day_and_machine(running.began_us), fix=repair)
        finally:
            if keep is not None:
                _copied(recorder.home, keep / scenario.id)
                scenario_run.write_span(keep / scenario.id, scenario.id, running.began_us, ended_us)


def _copied(home: Path, target: Path) -> None:
    """The recorder still runs, and its live diagnosis replaces files: one that is gone has a successor."""

    def copy(source: str, into: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, into)

    shutil.copytree(home, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run"), copy_function=copy)


def _day_and_machine(at_us: int) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(at_us // 1_000_000))
    return f"{day}, Linux {platform.release()}, {os.cpu_count()} cores"


def _repaired(
    scenario: Scenario, recorder: PrivateRecorder, running: ScenarioRun, watched: _Watched
) -> Document | None:
    """None where nothing right was named, so that there is no plan to try. What is said of it changes as it goes on, so
    it is looked up again."""
    known = incident_file.read(recorder.node_dir)
    found = verdict.best_match(scenario, known, running.began_us / 1e6, time.time() + 60)
    right = verdict.right_pattern(scenario, found) and verdict.right_culprit(scenario, found)
    incident = incident_of(known, found) if right and watched.named_us is not None else None
    return None if incident is None else repaired(recorder, scenario.id, incident)


@dataclass(slots=True)
class _Watched:
    """What the doctor said while it ran."""

    found: Found = field(default_factory=Found)
    named_us: int | None = None
    """When it first said the right thing."""
    said: dict[tuple[str, str], Document] = field(default_factory=dict)
    """Every incident of a healthy load, as it was at any time: one that is taken back later rang all the same."""

    def note(self, known: list[Document]) -> None:
        self.said |= {(one["id"], one["severity"]): one for one in known}


def _watch(scenario: Scenario, recorder: PrivateRecorder, running: ScenarioRun, seconds: float) -> _Watched:
    """Until it was named, or its time is over."""
    from zombiescope.diagnosis.order import worst_first

    watched = _Watched()
    while True:
        now_us = time.time_ns() // 1000
        past_s = (now_us - running.began_us) / 1e6
        if past_s >= seconds or running.ended() or (watched.named_us is not None and past_s >= LEAST_S):
            return watched
        known = incident_file.read(recorder.node_dir)
        if scenario.kind != "fault":
            watched.note(known)
        elif watched.named_us is None:
            found = verdict.best_match(scenario, worst_first(known), running.began_us / 1e6, now_us / 1e6 + 60)
            watched.found = found
            if verdict.right_pattern(scenario, found) and verdict.right_culprit(scenario, found):
                watched.named_us = now_us
        recorder.ended()
        time.sleep(0.2)


def _compared(
    scenario: Scenario, recorder: PrivateRecorder, began_us: int, ended_us: int, watched: _Watched
) -> Outcome:
    from zombiescope.store.reader import open_recording

    with open_recording(recorder.home) as recording:
        listed = _diagnosed(recording, began_us, recording.end_us + 1)
    span = (began_us / 1e6, ended_us / 1e6)
    found = verdict.best_match(scenario, listed, *span)
    said = [*listed, *incident_file.read(recorder.node_dir), *watched.said.values()]
    alarms = () if scenario.kind == "fault" else tuple(verdict.false_alarms(said, *span))
    return Outcome(
        scenario,
        found,
        watched.found,
        None if watched.named_us is None else (watched.named_us - began_us) / 1e6,
        (ended_us - began_us) / 1e6,
        alarms,
        tuple(verdict.harm(scenario, said)),
    )


def _diagnosed(recording: Recording, from_us: int, to_us: int) -> list[Document]:
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.diagnosis.report.document import document

    listed: list[Document] = document(diagnose(recording, from_us, to_us))["incidents"]
    return listed


def _replay(scenario: Scenario) -> Outcome:
    """Files of an hour that was idle, imported and diagnosed as anybody's files are."""
    from zombiescope.imports.raw_case import rebuild
    from zombiescope.lab.idle_hour import CASE
    from zombiescope.store.reader import open_recording

    with tempfile.TemporaryDirectory(prefix="zombiescope-lab-idle-") as temporary:
        rebuild(CASE, Path(temporary))
        with open_recording(Path(temporary)) as recording:
            listed = _diagnosed(recording, recording.start_us, recording.end_us + 1)
    alarms = tuple(verdict.false_alarms(listed, 0.0, math.inf))
    ran = _day_and_machine(time.time_ns() // 1000)
    return Outcome(scenario, Found(), Found(), None, float(CASE.seconds), alarms, ran=ran)

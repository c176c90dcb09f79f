"""Each pattern: named when its number is there, ruled out by the number that refutes it, unsure when not measured.

The same frames three times; only the counters differ. A pattern that would still be named in the second column names by
frames alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import patterns
from zombiescope.diagnosis.incident import Cause, Incident


def test_every_pattern_has_a_row() -> None:
    known = {pattern.id for pattern in patterns.every()}
    assert {row.pattern for row in ROWS} == known - {"unknown-kernel-hog"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_named_when_its_number_is_there(row: Row, tmp_path: Path) -> None:
    found = row.confirms(row.base(Scene())).diagnose(tmp_path)
    incident = incident_with(found.incidents, row.pattern)
    cause = incident.causes[0]
    assert cause.pattern == row.pattern, [(each.pattern, each.confidence) for each in incident.causes]
    assert cause.confidence > 0.5
    if row.culprit is None:
        assert cause.culprit is None
    else:
        assert cause.culprit is not None
        assert row.culprit in f"{cause.culprit.name} {cause.culprit.cgroup}"
    assert cause.fix.summary
    assert cause.fix.steps


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_ruled_out_by_the_number_that_refutes_it(row: Row, tmp_path: Path) -> None:
    found = row.refutes(row.base(Scene())).diagnose(tmp_path)
    assert found.incidents
    for incident in found.incidents:
        assert row.pattern not in {cause.pattern for cause in incident.causes if cause.confidence > 0.5}
    told = [one for incident in found.incidents for one in incident.ruled_out if one.pattern == row.pattern]
    unsure = [cause for incident in found.incidents for cause in incident.causes if cause.pattern == row.pattern]
    assert told or (row.measures_itself and all(cause.confidence <= 0.5 for cause in unsure))
    assert all(any(letter.isdigit() for letter in one.because) or one.value is not None for one in told)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.measures_itself], ids=lambda row: row.pattern)
def test_unsure_when_it_was_not_measured(row: Row, tmp_path: Path) -> None:
    scene = row.base(Scene())
    scene.cores = False
    causes = [cause for incident in scene.diagnose(tmp_path).incidents for cause in incident.causes]
    mine = [cause for cause in causes if cause.pattern == row.pattern]
    assert bool(mine) == row.frames_tell
    assert all(cause.confidence <= 0.5 for cause in mine)


def incident_with(incidents: tuple[Incident, ...], pattern: str) -> Incident:
    every: list[tuple[Incident, Cause]] = [(incident, cause) for incident in incidents for cause in incident.causes]
    named = [incident for incident, cause in every if cause.pattern == pattern]
    ruled_out = [(one.pattern, one.because) for incident in incidents for one in incident.ruled_out]
    symptoms = [symptom.text for incident in incidents for symptom in incident.symptoms]
    assert named, (symptoms, [(cause.pattern, cause.confidence) for _, cause in every], ruled_out)
    return named[0]

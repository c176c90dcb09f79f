"""Whatever processes call themselves and their directories: no plan touches an innocent unit, and nobody is surer.

Every recording of the fixtures and the scene of every pattern, with every string that a process can choose replaced by
the name of a party that is protected or has nothing to do with it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.renaming import renamed
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.store.reader import open_recording

RECORDINGS = sorted((Path(__file__).parents[2] / "fixtures" / "recordings").glob("*.zscope"))
VICTIM = "postgresql.service"
COMMS = (
    "systemd",
    "runc",
    pytest.param("containerd-shim", marks=pytest.mark.long),
    pytest.param("kubelet", marks=pytest.mark.long),
    pytest.param("postgres", marks=pytest.mark.long),
)
EPSILON = 0.005
"""Of a confidence: figures are rounded."""


def found(path: Path) -> Diagnosis:
    with open_recording(path) as recording:
        return diagnose(recording, recording.start_us, recording.end_us + 1)


def confidences(diagnosis: Diagnosis) -> dict[str, float]:
    surest: dict[str, float] = {}
    for cause in itertools.chain.from_iterable(incident.causes for incident in diagnosis.incidents):
        surest[cause.pattern] = max(surest.get(cause.pattern, 0.0), cause.confidence)
    return surest


def assert_nobody_is_framed(before: Diagnosis, after: Diagnosis) -> None:
    for cause in itertools.chain.from_iterable(incident.causes for incident in after.incidents):
        if cause.culprit is not None:
            assert cause.culprit.unit != VICTIM, cause
        for step in cause.fix.steps:
            assert step.act is None or step.act.subject != VICTIM, step
            words = (step.command or "").replace("'", " ").split()
            assert VICTIM not in words or words[0] not in ("systemctl", "docker", "podman", "kill", "kubectl"), step
    known, now = confidences(before), confidences(after)
    surer = {name: (known.get(name), value) for name, value in now.items() if value > known.get(name, 0) + EPSILON}
    same = {cause.pattern for one in before.incidents for cause in one.causes}
    assert not {name for name in surer if name in same}, surer


@pytest.mark.parametrize("comm", COMMS)
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_with_other_names_frames_nobody(
    path: Path, comm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = renamed(path, tmp_path / "renamed.zscope", comm, VICTIM, monkeypatch)
    assert made.chosen, "nothing was renamed"
    assert_nobody_is_framed(found(path), found(tmp_path / "renamed.zscope"))


@pytest.mark.parametrize("comm", ["systemd", pytest.param("runc", marks=pytest.mark.long)])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_a_scene_of_each_pattern_with_other_names_frames_nobody(
    row: Row, comm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = row.confirms(row.base(Scene())).write(tmp_path / "plain")
    renamed(plain, tmp_path / "renamed.zscope", comm, VICTIM, monkeypatch)
    assert_nobody_is_framed(found(plain), found(tmp_path / "renamed.zscope"))

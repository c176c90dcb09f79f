"""A file in symptoms/ is a detector, and says everything about its kind: nothing else has to know it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis import symptoms
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.report.document import document
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.diagnosis.symptom import Detector
from zombiescope.store.reader import open_recording

ROOT = Path(__file__).parents[3]
MADE_UP = '''
"""A core that hums: any with a saturated second."""

from zombiescope.diagnosis.symptom import Detector, Symptom


def find(facts):
    cores = facts.cores
    yield Symptom(DETECTOR, cores.at_us(5), cores.at_us(11), "core 1 hummed", "critical", 1, facts={"pitch": 440})


DETECTOR = Detector(
    kind="humming", title="a core hummed", reported_when="a core hums", find=find, source="cores", role="core",
    begins="onset", weight=9, bounds_case=True, core_is_held=True, core_rank=0, victim="whoever listens to core {cpu}",
)
'''


@pytest.fixture
def humming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Detector]:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "humming.py").write_text(MADE_UP)
    monkeypatch.setattr(symptoms, "__path__", [*symptoms.__path__, str(folder)])
    symptoms.every.cache_clear()
    yield symptoms.by_kind("humming")
    monkeypatch.undo()
    symptoms.every.cache_clear()


def diagnosed_anew(scene: Scene, directory: Path) -> Diagnosis:
    """Not the diagnosis that another test got without the new detector."""
    with open_recording(scene.write(directory)) as recording:
        return diagnose(recording, recording.start_us, recording.end_us + 1)


def test_a_new_file_is_detected_grouped_ranked_and_reported(tmp_path: Path, humming: Detector) -> None:
    # GIVEN a kind of symptom that nothing but its own file knows, on the core of a hog that no pattern explains
    scene = Scene().vmstat().hog(f"{' '.join(SYSCALL)} __x64_sys_getdents64 iterate_dir offset_readdir", "lister")
    found = diagnosed_anew(scene, tmp_path / "node")
    # THEN it is one incident with what the hog did there, and makes it critical
    (incident,) = found.incidents
    (hummed,) = [symptom for symptom in incident.symptoms if symptom.detector is humming]
    assert {symptom.kind for symptom in incident.symptoms} >= {"humming", "kernel_hog", "core_saturated"}
    assert incident.severity == "critical"
    # AND it stands first in the chain, with where it was read, and leads to the hog
    cause = incident.causes[0]
    assert (cause.pattern, cause.hog.comm) == ("unknown-kernel-hog", "lister")
    shown = [(link.fact, link.value, link.source) for link in cause.chain if link.step == "symptom"]
    assert ("core 1 hummed", 6.0, "cores") in shown
    # AND every report has it, with what the page needs to draw it
    assert "core 1 hummed" in markdown(found, "a node", str)
    (drawn,) = [one for one in document(found)["incidents"][0]["symptoms"] if one["kind"] == "humming"]
    assert {key: drawn[key] for key in ("title", "role", "table", "core_rank", "victim", "pitch")} == {
        "title": "a core hummed", "role": "core", "table": "cores", "core_rank": 0,
        "victim": "whoever listens to core 1", "pitch": 440,
    }  # fmt: skip
    assert hummed.seconds == 6.0


def test_a_symptom_without_any_other_is_an_incident_of_its_own(tmp_path: Path, humming: Detector) -> None:
    (incident,) = diagnosed_anew(Scene().vmstat(), tmp_path / "node").incidents
    assert [symptom.detector for symptom in incident.symptoms] == [humming]
    assert [cause.pattern for cause in incident.causes] == ["unknown-kernel-hog"]


@pytest.mark.parametrize("detector", symptoms.every(), ids=lambda detector: detector.kind)
def test_a_detector_says_everything_and_the_docs_have_it(detector: Detector) -> None:
    assert detector.title
    assert detector.reported_when
    assert f"| `{detector.kind}` | {detector.reported_when} |" in (ROOT / "docs" / "diagnosis.md").read_text()


def test_no_two_files_have_one_kind() -> None:
    kinds = [detector.kind for detector in symptoms.every()]
    assert len(kinds) == len(set(kinds))

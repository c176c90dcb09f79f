"""What the doctor remembers from one look to the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import SECOND, START_US, write_recording
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import live, symptoms
from zombiescope.diagnosis.diagnose import Diagnosis, examine
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor, Cause, Fix, Incident
from zombiescope.diagnosis.incident_ids import with_known_ids
from zombiescope.diagnosis.report.document import document
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import LIVE_AROUND_US
from zombiescope.store import incident_file
from zombiescope.store.freeze import list_frozen
from zombiescope.store.reader import open_recording

END = START_US + 100 * SECOND


def incident(
    name: str, from_s: int, to_s: int, *, comm: str = "kubelet", cpu: int = 3, state: str = "open"
) -> Incident:
    span = (START_US + from_s * SECOND, START_US + to_s * SECOND)
    symptom = Symptom(symptoms.by_kind("core_saturated"), *span, "core 3 was lost", cpu=cpu)
    cause = Cause("zombie-memcg", "kernel", 0.9, "zombies", Actor(comm), None, (), (), Fix("mend it"))
    return Incident(name, *span, state, "warning", (symptom,), (cause,))  # type: ignore[arg-type]


def found(*each: Incident) -> Diagnosis:
    return Diagnosis("lab", START_US, END, each, ())


def known(*each: Incident) -> list[dict[str, Any]]:
    return live.merged([], found(*each), END)


def test_an_incident_that_is_new_is_added_in_the_order_of_time() -> None:
    kept = live.merged(known(incident("b", 95, 99)), found(incident("a", 40, 60, state="closed")), END)
    assert [entry["id"] for entry in kept] == ["a", "b"]


def test_one_that_is_seen_again_is_replaced_by_what_is_known_now() -> None:
    (entry,) = live.merged(known(incident("a", 90, 95)), found(incident("a", 90, 100)), END)
    assert (entry["to"], entry["state"]) == ((START_US + 100 * SECOND) / 1e6, "open")


def test_one_that_was_not_seen_again_is_over() -> None:
    (entry,) = live.merged(known(incident("a", 50, 60)), found(), END)
    assert entry["state"] == "closed"


def test_one_that_just_ended_stays_open_for_a_moment() -> None:
    (entry,) = live.merged(known(incident("a", 90, 95)), found(), END)
    assert entry["state"] == "open"


def test_a_closed_one_is_not_opened_by_another() -> None:
    kept = live.merged(known(incident("a", 10, 20, state="closed")), found(incident("b", 95, 100)), END)
    assert {entry["id"]: entry["state"] for entry in kept} == {"a": "closed", "b": "open"}


def test_one_whose_beginning_the_window_cut_off_keeps_it() -> None:
    """It lasts for an hour, and two minutes of it are looked at."""
    before = known(incident("a", 10, 40))
    before[0]["severity"] = "critical"
    (entry,) = live.merged(before, found(incident("a", 70, 100)), END)
    assert (entry["from"], entry["to"]) == ((START_US + 10 * SECOND) / 1e6, (START_US + 100 * SECOND) / 1e6)
    assert (entry["severity"], entry["state"]) == ("critical", "open")
    (symptom,) = entry["symptoms"]
    assert (symptom["at"], symptom["seconds"]) == (entry["from"], 90)


def test_a_better_explanation_is_not_lost_when_less_of_it_is_seen() -> None:
    before = known(incident("a", 10, 40))
    later = incident("a", 70, 100)
    poorer = replace(later, causes=(replace(later.causes[0], pattern="unknown-kernel-hog", confidence=0.3),))
    (entry,) = live.merged(before, found(poorer), END)
    assert entry["causes"][0]["pattern"] == "zombie-memcg"
    better = replace(later, causes=(replace(later.causes[0], pattern="mount-storm", confidence=0.95),))
    (entry,) = live.merged(before, found(better), END)
    assert entry["causes"][0]["pattern"] == "mount-storm"


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [(None, "warning", 1), (None, "info", 0), ("info", "warning", 1), ("warning", "critical", 1),
     ("warning", "warning", 0), ("critical", "warning", 0)],
)  # fmt: skip
def test_an_incident_is_said_when_it_is_first_worth_saying(
    before: str | None, now: str, told: int, capfd: pytest.CaptureFixture[str]
) -> None:
    each = incident("a", 90, 100)
    listed = [] if before is None else known(replace(each, severity=before))  # type: ignore[arg-type]
    live._tell(listed, found(replace(each, severity=now)))  # type: ignore[arg-type]
    assert capfd.readouterr().err.count("(incident a;") == told


def test_one_that_nothing_explains_is_said_by_its_symptom(capfd: pytest.CaptureFixture[str]) -> None:
    live._tell([], found(replace(incident("a", 90, 100), causes=())))
    assert "core 3 was lost (incident a;" in capfd.readouterr().err


# --- the same one under another id -------------------------------------------------------------------------------


def test_a_later_look_that_sees_another_beginning_means_the_same_incident() -> None:
    (same,) = with_known_ids(found(incident("new", 92, 100)), known(incident("old", 90, 95))).incidents
    assert same.id == "old"


@pytest.mark.parametrize(
    "other",
    [incident("new", 97, 100, comm="python", cpu=5), incident("new", 40, 50)],
    ids=["other hog on another core", "another time"],
)
def test_what_is_not_the_same_keeps_its_id(other: Incident) -> None:
    (named,) = with_known_ids(found(other), known(incident("old", 90, 96))).incidents
    assert named.id == "new"


def test_two_incidents_never_get_one_id() -> None:
    both = found(incident("x", 90, 95), incident("y", 91, 96))
    ids = [each.id for each in with_known_ids(both, known(incident("old", 90, 95))).incidents]
    assert len(set(ids)) == 2
    assert "old" in ids


def test_a_known_id_is_not_given_to_a_second_one() -> None:
    both = found(incident("old", 90, 95), incident("y", 91, 96))
    assert [each.id for each in with_known_ids(both, known(incident("old", 90, 95))).incidents] == ["old", "y"]


# --- a look ------------------------------------------------------------------------------------------------------


def test_looking_twice_says_it_once_and_keeps_one_window(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scene = Scene().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog("do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet")
    node_dir = scene.write(tmp_path) / "node=lab"
    (first,) = live.look(node_dir, START_US).known
    (second,) = live.look(node_dir, START_US).known
    assert first["id"] == second["id"]
    assert [entry["id"] for entry in incident_file.read(node_dir)] == [first["id"]]
    assert capfd.readouterr().err.count(first["id"]) == 1
    (frozen,) = list_frozen(node_dir)
    assert frozen.why == f"incident {first['id']} zombie-memcg"


def test_a_look_that_reaches_back_says_what_one_with_all_of_it_says(tmp_path: Path) -> None:
    # GIVEN a fault in the last of several segments, and a look that begins with the last minutes
    written = write_recording(tmp_path, seconds=120, segment_s=20)
    assert written.incident
    from_us = written.incident.from_us - 20 * SECOND
    node_dir = tmp_path / "node=lab"
    with open_recording(node_dir, since_us=from_us - 20 * SECOND) as recording:
        facts = Facts(recording, from_us, recording.end_us + 1)
        examine(facts, live=True)
        recording.reach_back()
        again = document(examine(facts.with_history(), live=True))
    with open_recording(node_dir) as recording:
        whole = document(examine(Facts(recording, from_us, recording.end_us + 1), live=True))
    assert again["incidents"]
    assert again == whole


def test_a_window_that_grows_is_frozen_anew_and_not_beside_the_old_one(tmp_path: Path) -> None:
    each = incident("a", 10, 20)
    live._keep(tmp_path, each)
    live._keep(tmp_path, replace(each, to_us=each.to_us + 60 * SECOND))
    (frozen,) = list_frozen(tmp_path)
    assert frozen.to_us == each.to_us + 60 * SECOND + LIVE_AROUND_US


def test_what_is_open_is_closed_when_nobody_looks_any_more(tmp_path: Path) -> None:
    incident_file.write(tmp_path, known(incident("a", 90, 99), incident("b", 95, 100, cpu=5)), END)
    assert len(incident_file.open_ones(tmp_path)) == 2
    incident_file.close(tmp_path)
    assert incident_file.open_ones(tmp_path) == []
    assert len(incident_file.read(tmp_path)) == 2

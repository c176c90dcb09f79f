"""Containers in a diagnosis: who restarts for ever is a remark, and whoever took a core is known by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.boxes import at, box_node, loop, ran
from tests.helpers.made import START_US, Node, write_segment
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.timeout(120)
BOX = "3f1c" * 16


def _diagnosis(tmp_path: Path, node: Node) -> Diagnosis:
    write_segment(tmp_path / "rec", node.tables)
    with open_recording(tmp_path / "rec") as recording:
        return diagnose(recording, START_US, at(60))


def _restarted(found: Diagnosis) -> list[Symptom]:
    return [one for one in found.remarks if one.kind == "container_restarted"]


def test_what_restarts_for_ever_is_noted_with_who_asks_for_it(tmp_path: Path) -> None:
    found = _diagnosis(tmp_path, box_node())
    remarks = {one.group: one for one in _restarted(found)}
    assert set(remarks) == {"kube-system/agent/agent", "registry.local:5000/ops/ecs-agent:1.2", "sidecar"}
    facts = remarks["registry.local:5000/ops/ecs-agent:1.2"].facts
    assert (facts["requester"], facts["requester_unit"], facts["failed"]) == ("agent-loop", "ecs.service", 18)
    assert {one.severity for one in remarks.values()} == {"warning"}
    assert any("were started by agent-loop (ecs.service)" in text for text in found.noted)
    assert found.incidents == ()


def test_jobs_that_end_well_are_no_symptom(tmp_path: Path) -> None:
    node = Node()
    for number in range(18):
        loop(node, number, code=0)
        known = {"name": "main", "pod": f"cron-{number}-x2kqz", "namespace": "ops", "pod_uid": f"u{number}"}
        ran(node, f"{number:064x}", number * 3, number * 3 + 2, code=0, **known)
    assert _restarted(_diagnosis(tmp_path, node)) == []


def test_those_whose_end_nobody_saw_are_a_note_and_no_warning(tmp_path: Path) -> None:
    node = Node()
    for number in range(18):
        loop(node, number, code=None)
    (one,) = _restarted(_diagnosis(tmp_path, node))
    assert one.severity == "info"


EVENT: dict[str, Any] = {"id": BOX, "image": "agent:1", "name": "agent", "count": 9, "seconds": 90.0}


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"same": "id", "code": 0}, "warning"),  # a restart policy
        ({"same": "pod", "pod": "agent-0", "namespace": "ops", "code": 0}, "warning"),
        ({"same": "image", "code": 1}, "warning"),
        ({"same": "image", "code": 0}, None),  # a queue of jobs
        ({"same": "image", "code": None}, "info"),
    ],
)
def test_what_the_recorder_says_counts_where_the_window_is_too_short(
    tmp_path: Path, fields: dict[str, Any], severity: str | None
) -> None:
    node = Node()
    for second in (20, 40):
        text = "container agent ended 9 times in 90 s"
        node.happen(at(second), "container_restart", "containers", "warning", text, **EVENT | fields)
    found = _diagnosis(tmp_path, node)
    assert [one.severity for one in _restarted(found)] == ([] if severity is None else [severity])
    assert found.incidents == (), "an event of the recorder is a remark and no incident by itself"


def test_an_event_about_what_the_table_shows_is_not_said_twice(tmp_path: Path) -> None:
    node = box_node()
    fields = {"same": "image", "image": "registry.local:5000/ops/ecs-agent:1.2", "id": "f" * 64, "code": 1}
    node.happen(at(50), "container_restart", "containers", "warning", "18 containers ended", **fields)
    assert len(_restarted(_diagnosis(tmp_path, node))) == 3


def test_a_hog_is_known_by_its_container_and_pod(tmp_path: Path) -> None:
    frames = "entry_SYSCALL_64_after_hwframe do_syscall_64 vfs_read seq_read_iter proc_reg_read"
    scene = Scene().hog(frames, "reader", cgroup=f"/kubepods/pod1/{BOX}", container=BOX, pod="uid-1").vmstat()
    pod = {"pod": "exp-0", "namespace": "mon", "pod_uid": "uid-1"}
    scene.made.container(START_US, BOX, name="exporter", image="exporter:2", **pod)
    hog = scene.diagnose(tmp_path).incidents[0].causes[0].hog
    assert (hog.container, hog.container_name, hog.image) == (BOX, "exporter", "exporter:2")
    assert (hog.pod, hog.namespace) == ("exp-0", "mon")

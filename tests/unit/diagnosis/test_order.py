"""Which incident is read first: the explained one of its seconds, live and afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis import live
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.order import several_nodes, worst_first
from zombiescope.store import incident_file
from zombiescope.store.reader import open_recording

CALL = " ".join(SYSCALL)
WALK = f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"


def document(name: str, severity: str, confidence: float, from_s: float, to_s: float) -> dict[str, object]:
    return {"id": name, "severity": severity, "from": from_s, "to": to_s, "causes": [{"confidence": confidence}]}


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        # an explained warning stands before what is critical and not explained, of the same seconds
        ([("loud", "critical", 0.1, 5, 9), ("known", "warning", 0.95, 4, 12)], "known loud"),
        # not of other seconds
        ([("loud", "critical", 0.1, 50, 59), ("known", "warning", 0.95, 4, 12)], "loud known"),
        # and takes the place of what it leads
        ([("loud", "critical", 0.1, 5, 9), ("known", "warning", 0.95, 4, 12), ("other", "critical", 0.9, 90, 95)],
         "known loud other"),
        # a remark leads nobody
        ([("loud", "critical", 0.1, 5, 9), ("half", "info", 0.95, 4, 12)], "loud half"),
        # of two that are explained, the worse; of two that are alike, the earlier
        ([("b", "warning", 0.9, 6, 9), ("a", "warning", 0.9, 5, 9), ("worse", "critical", 0.6, 8, 9)], "worse a b"),
        ([], ""),
    ],
)  # fmt: skip
def test_the_order(documents: list[tuple[str, str, float, float, float]], expected: str) -> None:
    for listed in (documents, documents[::-1]):
        assert " ".join(str(one["id"]) for one in worst_first([document(*each) for each in listed])) == expected


def test_several_nodes_keep_the_order_of_each() -> None:
    first = [document("known", "warning", 0.9, 4, 12), document("loud", "critical", 0.1, 5, 9)]
    second = [document("mild", "warning", 0.9, 4, 12), document("note", "info", 0.9, 4, 12)]
    assert [one["id"] for one in several_nodes([second, first])] == ["known", "loud", "mild", "note"]


def loud_and_known() -> Scene:
    """kubelet walks zombies; meanwhile another task, which nothing explains, stops a core, and the kernel says so."""
    scene = Scene(cpus=8).vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog(WALK, "kubelet", to_s=9).hog(f"{CALL} do_something_new", "other", cpu=3, pid=900, from_s=4, to_s=12)
    return scene.event("soft_lockup", "watchdog: BUG: soft lockup - CPU#3 stuck for 7s! [other:900]", 12, cpu=3,
                       seconds=7, comm="other", pid=900)  # fmt: skip


def test_what_is_explained_comes_first_live_and_afterwards(tmp_path: Path) -> None:
    scene = loud_and_known()
    found = scene.diagnose(tmp_path / "offline").incidents
    assert [(one.causes[0].pattern, one.causes[0].hog.comm) for one in found] == [
        ("zombie-memcg", "kubelet"), ("unknown-kernel-hog", "other"),
    ]  # fmt: skip
    # AND the doctor's file, in the order in which it is shown, says the same with the same words
    node_dir = scene.write(tmp_path / "live") / "node=lab"
    live.look(node_dir, 0)
    noted = worst_first(incident_file.read(node_dir))
    assert [one["causes"][0]["summary"] for one in noted] == [one.causes[0].summary for one in found]


def test_what_the_same_hog_does_beside_is_a_part_of_it(tmp_path: Path) -> None:
    # GIVEN a kubelet that walks zombies on one core, and short stalls of its other threads that nothing explains
    scene = Scene(cpus=8).vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog(WALK, "kubelet", unit="kubelet.service")
    for number in range(4):
        scene.hog(f"{CALL} do_something_new", "kubelet", cpu=4, tid=1300, unit="kubelet.service",
                  from_s=6 + number, to_s=6.4 + number)  # fmt: skip
    scene.mode(4, wait_us=500_000)
    with open_recording(scene.write(tmp_path)) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
    assert [one.causes[0].pattern for one in found.incidents] == ["zombie-memcg"]
    assert json.dumps([one.symptoms[0].kind for one in found.incidents])

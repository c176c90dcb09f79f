"""Hogs that do the same at the same time: which of them are not examined, and that this changes no answer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import alike, diagnose, ranking
from zombiescope.diagnosis.alike import Alike, Explained
from zombiescope.diagnosis.incident import Actor, Cause
from zombiescope.diagnosis.incidents import Group
from zombiescope.diagnosis.report.document import incident as to_document
from zombiescope.diagnosis.thresholds import EXAMINED_ALIKE
from zombiescope.store.reader import open_recording


def _case(**changed: Any) -> Any:
    symptom = SimpleNamespace(kind=changed.pop("kind", "stall"), severity=changed.pop("severity", "info"))
    task = SimpleNamespace(comm="nccl", unit=None, container=None, uid=0)
    case = {"from_us": 0, "to_us": 40_000_000, "hog_task": task, "frames": ("do_syscall_64", "do_sched_yield")}
    return SimpleNamespace(**case | {"group": SimpleNamespace(symptoms=(symptom,), is_moderate=False)} | changed)


def _explained(pattern: str = "unknown-kernel-hog") -> Explained:
    return Explained((Cause(pattern, "kernel", 0.3, "busy", Actor(comm="nccl"), None, (), (), None, False),), ())  # type: ignore[arg-type]


def _examined(times: int = EXAMINED_ALIKE) -> Alike:
    found = Alike()
    for _ in range(times):
        found.examined(_case(), _explained())
    return found


def test_what_does_as_four_others_did_is_not_examined() -> None:
    assert _examined().explained(_case(to_us=39_000_000)) == _explained()
    assert _examined(EXAMINED_ALIKE - 1).explained(_case()) is None


@pytest.mark.parametrize(
    "other",
    [
        {"frames": ("do_syscall_64", "mem_cgroup_iter")},
        {"from_us": 20_000_000},
        {"kind": "event"},
        {"severity": "warning"},
        {"hog_task": SimpleNamespace(comm="kubelet", unit=None, container=None, uid=0)},
        {"hog_task": None},
    ],
    ids=["another path", "other seconds", "an event", "worse", "another program", "nobody"],
)
def test_what_differs_in_anything_is_examined(other: dict[str, Any]) -> None:
    assert _examined().explained(_case(**other)) is None


def test_where_the_others_do_not_agree_it_is_examined() -> None:
    found = _examined()
    found.examined(_case(), _explained("zombie-memcg"))
    assert found.explained(_case()) is None


def test_of_a_crowd_a_few_are_examined_and_the_answer_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a hog, as often as a wide node has it
    place = Scene().vmstat().hog("do_syscall_64 __x64_sys_ioctl odd_driver_walk", "odd").write(tmp_path)
    monkeypatch.setattr(
        diagnose, "group", lambda found, _: [Group((one,)) for one in found if one.kind == "kernel_hog"] * 30
    )
    ranked: list[object] = []
    rank = ranking.rank

    def counted(case: Any, patterns: Any) -> Any:
        ranked.append(case)
        return rank(case, patterns)

    monkeypatch.setattr(ranking, "rank", counted)
    # WHEN it is diagnosed with and without
    documents, examined = [], []
    for few in (EXAMINED_ALIKE, 10_000):
        monkeypatch.setattr(alike, "EXAMINED_ALIKE", few)
        ranked.clear()
        with open_recording(place) as recording:
            found = diagnose.diagnose(recording, recording.start_us, recording.end_us + 1, live=True)
        documents.append([json.dumps(to_document(each), sort_keys=True) for each in found.incidents])
        examined.append(len(ranked))
    # THEN
    assert documents[0] == documents[1]
    assert documents[0]
    assert examined == [EXAMINED_ALIKE, 30]

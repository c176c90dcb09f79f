"""What an incident is to a cluster: a reason, a bounded sentence, conditions; how often it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.helpers.api_client import Api

from zombiescope.diagnosis import patterns, symptoms
from zombiescope.node.cluster import incident_news
from zombiescope.node.cluster.incident_news import News, Subject, died_of, news
from zombiescope.node.cluster.node_conditions import HEARTBEAT_S, QUIET_S, NodeConditions
from zombiescope.node.cluster.node_events import BURST, NodeEvents


def incident(**more: Any) -> dict[str, Any]:
    cause = {"pattern": "zombie-memcg", "summary": "ecs.service leaks cgroups.", "fix": {"summary": "stop ecs.service"}}
    symptom = {"kind": "core_saturated", "text": "core 3 was busy for 12 s"}
    known = {"id": "i1", "state": "open", "severity": "critical", "causes": [cause], "symptoms": [symptom], "from": 5.0}
    return {**known, **more}


def told(**more: Any) -> News:
    found = news(incident(**more))
    assert found is not None
    return found


def test_the_pattern_is_the_reason() -> None:
    one = told()
    assert (one.reason, one.is_open) == ("ZombieMemcg", True)
    assert one.message == "ecs.service leaks cgroups. core 3 was busy for 12 s. Fix: stop ecs.service"
    assert one.conditions == {"CgroupLeak", "CoreStarvation"}


def test_without_a_cause_the_symptom_is() -> None:
    one = told(causes=[], symptoms=[{"kind": "unit_restarted", "text": "a.service", "times": 3}])
    assert (one.reason, one.conditions) == ("UnitRestarted", frozenset({"UnitCrashLoop"}))


def test_it_speaks_of_patterns_and_symptoms_that_the_diagnosis_has() -> None:
    ids = {one.id for one in patterns.every()}
    kinds = {one.kind for one in symptoms.every()}
    assert ids >= incident_news.LEAKS
    assert kinds >= incident_news.LEAKING | incident_news.STARVED
    assert kinds >= {incident_news.UNIT_RESTARTED, incident_news.CONTAINER_RESTARTED}


def test_a_real_pattern_of_a_leak_is_that_condition_without_a_symptom_of_one() -> None:
    assert told(symptoms=[{"kind": "event"}]).conditions == {"CgroupLeak"}


@pytest.mark.parametrize(
    ("symptom", "loops"),
    [
        ({"kind": "unit_restarted", "times": 1, "so_far": 2}, False),
        ({"kind": "unit_restarted", "times": 1, "so_far": 9}, True),
        ({"kind": "unit_restarted", "times": "9"}, False),
        ({"kind": "container_restarted"}, True),
    ],
)
def test_one_restart_is_no_loop(symptom: dict[str, Any], loops: bool) -> None:
    assert ("UnitCrashLoop" in told(symptoms=[symptom]).conditions) is loops


@pytest.mark.parametrize(
    ("repair", "is_fault"), [("NONE", False), ("CONTACT_SUPPORT", False), ("RESTART_VM", True), ([], False)]
)
def test_what_only_a_repair_of_the_machine_ends_is_a_fault_of_it(repair: object, is_fault: bool) -> None:
    causes = [{"pattern": "lockup", "summary": "s", "repair": repair}]
    assert ("HardwareFault" in told(causes=causes).conditions) is is_fault


def test_a_ray_job_that_died_of_an_incident_is_told_at_the_job() -> None:
    job = Subject("ray.io/v1", "RayJob", "ml", "train", "uid-1")
    fates = [{"job": "train-x7", "fate": "died", "why": "its worker was lost"}, {"job": "other", "fate": "survived"}]
    (one,) = died_of(incident(jobs=[*fates, None, 7]), {"train-x7": job, "other": job})
    assert (one.about, one.is_open, one.reason) == (job, True, "ZombieMemcg")
    assert "its worker was lost" in one.message
    api, clock = Api(), Clock()
    events = NodeEvents("n", clock)
    tell(events, api, one)
    tell(events, api, one)
    (event,) = api.created
    assert event["metadata"]["namespace"] == "ml"
    assert event["involvedObject"] == {
        "apiVersion": "ray.io/v1", "kind": "RayJob", "name": "train", "namespace": "ml", "uid": "uid-1",
    }  # fmt: skip
    assert list(died_of(incident(jobs=fates), {})) == []


@pytest.mark.parametrize("hostile", [None, 7, [], {}, "x" * 9999, [None], [7], [{}]])
def test_nothing_in_the_file_breaks_it(hostile: Any) -> None:
    for key in ("id", "state", "severity", "causes", "symptoms", "from"):
        news(incident(**{key: hostile}))


def test_a_hostile_name_is_escaped_and_bounded() -> None:
    cause = {"pattern": "x\x1b[2J/../", "summary": "\x1b[2J\n" + "ü" * 5000}
    one = told(causes=[cause])
    assert one.message.isprintable()
    assert len(one.message.encode()) <= 900
    assert one.reason.isalnum()


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def tell(events: NodeEvents, api: Api, *several: News) -> None:
    pytest.importorskip("lightkube")

    async def all_of_them() -> None:
        for one in several:
            await events.tell(api, one)  # type: ignore[arg-type]

    asyncio.run(all_of_them())


def test_an_incident_is_told_when_it_opens_and_when_it_is_over_and_not_again() -> None:
    api, events = Api(), NodeEvents("n", Clock())
    tell(events, api, told(), told(), told(state="closed"), told(state="closed"))
    assert [one["reason"] for one in api.created] == ["ZombieMemcg", "ZombieMemcgOver"]
    assert [one["type"] for one in api.created] == ["Warning", "Normal"]


def test_what_was_over_before_we_came_is_not_told() -> None:
    api = Api()
    tell(NodeEvents("n", Clock()), api, told(state="closed"))
    assert api.created == []


def test_the_same_cause_again_is_the_same_event_with_a_count() -> None:
    api, clock = Api(), Clock()
    events = NodeEvents("n", clock)
    tell(events, api, *(told(id=f"i{number}") for number in range(4)))
    assert len(api.created) == 1
    assert [one["count"] for one in api.patched] == [2, 3, 4]


def test_a_storm_is_cut_and_counted() -> None:
    api, clock = Api(), Clock()
    events = NodeEvents("n", clock)
    many = [told(id=f"i{number}", causes=[{"pattern": f"p{number}", "summary": "s"}]) for number in range(50)]
    tell(events, api, *many)
    assert len(api.created) == BURST
    clock.now += 61
    tell(events, api, told(id="late"))
    assert "40 more were not reported" in api.created[-1]["message"]


def settle(conditions: NodeConditions, api: Api, incidents: list[News], blind: str | None = None) -> bool:
    return asyncio.run(conditions.settle(api, incidents, blind))  # type: ignore[arg-type]


def statuses(api: Api) -> dict[str, str]:
    return {one["type"]: one["status"] for one in api.patched[-1]["status"]["conditions"]}


def test_conditions_clear_and_their_time_changes_with_the_status_only() -> None:
    pytest.importorskip("lightkube")
    api, clock = Api(), Clock()
    conditions = NodeConditions("n", clock)

    def since() -> str:
        (leak,) = [one for one in api.patched[-1]["status"]["conditions"] if one["type"] == "CgroupLeak"]
        return str(leak["lastTransitionTime"])

    assert settle(conditions, api, [])
    assert set(statuses(api).values()) == {"False"}
    clock.now += 10
    assert settle(conditions, api, [told()])
    assert statuses(api) == {
        "CgroupLeak": "True", "CoreStarvation": "True", "UnitCrashLoop": "False", "HardwareFault": "False",
    }  # fmt: skip
    began = since()
    clock.now += HEARTBEAT_S
    assert settle(conditions, api, [told(id="another")]), "a heartbeat"
    assert since() == began
    clock.now += QUIET_S + 1
    assert settle(conditions, api, [told(state="closed")])
    assert statuses(api)["CgroupLeak"] == "False"
    assert since() != began


def test_nothing_is_written_while_nothing_changes() -> None:
    pytest.importorskip("lightkube")
    api, clock = Api(), Clock()
    conditions = NodeConditions("n", clock)
    written = 0
    for _ in range(100):
        clock.now += 5
        written += settle(conditions, api, [])
    assert written == 2


def test_blind_is_unknown_and_a_restart_keeps_the_time() -> None:
    pytest.importorskip("lightkube")
    api, clock = Api(), Clock()
    old = {
        "type": "CgroupLeak",
        "status": "Unknown",
        "reason": "NotMeasured",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    api.conditions = [old, {"type": "Ready", "status": "True"}]
    settle(NodeConditions("n", clock), api, [told()], "no recorder")
    assert set(statuses(api).values()) == {"Unknown"}
    (leak,) = [one for one in api.patched[-1]["status"]["conditions"] if one["type"] == "CgroupLeak"]
    assert leak["lastTransitionTime"] == old["lastTransitionTime"]
    assert "Ready" not in statuses(api)

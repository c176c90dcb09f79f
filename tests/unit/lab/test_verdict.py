"""What counts as named: the right pattern first, of the incident that is about the scenario, and the right culprit."""

from __future__ import annotations

from typing import Any

import pytest

from zombiescope.lab import verdict
from zombiescope.lab.scenario import Scenario, by_id
from zombiescope.lab.score import score, sentence
from zombiescope.lab.score_page import page_of

LITTER = by_id("cgroup-litter")
ZOMBIES = by_id("zombie-tmpfs")


def incident(pattern: str, hog: str, culprit: dict[str, Any] | None, severity: str = "warning", at: float = 10) -> Any:
    cause = {"pattern": pattern, "hog": {"comm": hog}, "culprit": culprit, "confidence": 0.9, "summary": "it is so"}
    return {"id": "1", "from": at, "to": at + 5, "severity": severity, "causes": [cause]}


def test_the_incident_of_the_scenario_counts_and_not_the_worst() -> None:
    others = incident("fork-storm", "make", {"comm": "make"}, "critical")
    mine = incident("zombie-memcg", "walker", {"comm": "leaky", "cgroup": "/zombiescope-lab-zombie-tmpfs/jobs/job-*"})
    found = verdict.best_match(ZOMBIES, [others, mine], 9, 20)
    assert found.pattern == "zombie-memcg"
    assert verdict.right_culprit(ZOMBIES, found)


def test_if_none_is_the_scenarios_the_worst_is_what_was_said() -> None:
    found = verdict.best_match(ZOMBIES, [incident("fork-storm", "make", None)], 9, 20)
    assert not verdict.right_pattern(ZOMBIES, found)


def test_what_happened_before_does_not_count() -> None:
    assert verdict.best_match(ZOMBIES, [incident("zombie-memcg", "walker", None, at=1)], 9, 20) == verdict.Found()


def test_the_name_of_the_scenarios_own_cgroup_is_no_culprit() -> None:
    walker = {"comm": "scanner", "cgroup": "/zombiescope-lab-cgroup-litter/program"}
    assert not verdict.right_culprit(
        LITTER, verdict.best_match(LITTER, [incident("cgroup-litter", "scanner", walker)], 9, 20)
    )


DOCKER = by_id("docker-loop")
POD = by_id("kubelet-crashloop")
LOOP = {
    "comm": "agent-loop",
    "image": "registry.local/ecs-agent:1.2",
    "cgroup": "/zombiescope-lab-docker-loop/docker/*",
}
LEAKY = {"comm": "sh", "container_name": "agent", "image": "registry.local/ecs-agent:1.2", "pod": "leaky",
         "namespace": "default", "cgroup": "/zombiescope-lab-kubelet-crashloop/kubepods/besteffort/pod*/*"}  # fmt: skip


@pytest.mark.parametrize(
    ("scenario", "culprit", "right"),
    [
        (DOCKER, LOOP, True),
        (DOCKER, {**LOOP, "image": None}, False),
        (DOCKER, {**LOOP, "comm": "runc"}, False),
        (DOCKER, {**LOOP, "unit": "containerd.service"}, False),
        (DOCKER, {**LOOP, "unit": "agent-loop.service"}, True),
        (DOCKER, {"comm": "runc", "cgroup": LOOP["cgroup"]}, False),
        (POD, LEAKY, True),
        (POD, {**LEAKY, "namespace": "kube-system"}, False),
        (POD, {**LEAKY, "pod": None}, False),
        (POD, {**LEAKY, "comm": "kubelet", "unit": "kubelet.service"}, False),
    ],
)
def test_a_container_is_named_with_its_image_and_pod_and_never_by_its_runtime(
    scenario: Scenario, culprit: dict[str, Any], right: bool
) -> None:
    found = verdict.best_match(scenario, [incident("zombie-memcg", "walker", culprit)], 9, 20)
    assert verdict.right_culprit(scenario, found) is right


def plan(*texts: str, **parts: str) -> Any:
    steps = [{"command": text, "does": "", "undo": "", "verify": "", **parts} for text in texts]
    return {**incident("zombie-memcg", "walker", LOOP), "causes": [{"fix": {"plan": steps}}]}


@pytest.mark.parametrize(
    "text",
    [
        "systemctl disable --now containerd.service",
        "systemctl stop docker",
        "systemctl restart kubelet docker.socket",
        "sudo systemctl kill /containerd",
        "pkill -f dockerd",
        "ssh node1 'systemctl stop kubelet.service'",
    ],
)
def test_a_plan_that_stops_a_runtime_is_harm_in_any_part_of_it(text: str) -> None:
    assert verdict.harm(DOCKER, [plan("zombiescope cgroups", text)]) == [text]
    assert verdict.harm(DOCKER, [plan("zombiescope cgroups", undo=text)]) == [text]
    assert verdict.harm(LITTER, [plan(text)]) == [], "its truth says nothing of runtimes"


@pytest.mark.parametrize(
    "text",
    [
        "docker stop agent", "docker update --restart=no crasher", "kubectl -n default delete pod leaky",
        "systemctl disable --now agent-loop.service", "systemctl stop docker-agent.service",
        "systemctl stop my-containerd.service", "pgrep -a agent-loop; docker ps", "crictl rm 1 | systemctl status x",
    ],
)  # fmt: skip
def test_what_stops_only_the_culprit_is_no_harm(text: str) -> None:
    assert verdict.harm(DOCKER, [plan(text)]) == []


def test_a_warning_about_a_healthy_load_is_a_false_alarm_and_a_remark_is_none() -> None:
    said = [
        incident("fork-storm", "cc1", None),
        {**incident("rt-hog", "x", None, "critical"), "id": "2"},
        {**incident("smaps-reader", "y", None, "info"), "id": "3"},
    ]
    assert verdict.false_alarms(said, 9, 20) == said[:2]
    assert verdict.false_alarms(said, 16, 20) == []


def test_an_alarm_that_was_taken_back_counts_as_it_was_at_its_worst() -> None:
    rang = incident("rt-hog", "x", None, "critical")
    taken_back = [{**rang, "severity": "warning"}, rang, {**rang, "severity": "info"}]
    assert verdict.false_alarms(taken_back, 9, 20) == [rang]


def test_an_alarm_that_rang_live_and_afterwards_is_one() -> None:
    rang = incident("rt-hog", "x", None, "critical")
    assert verdict.false_alarms([rang, {**rang, "state": "closed"}], 9, 20) == [{**rang, "state": "closed"}]


def result(name: str, **more: Any) -> dict[str, Any]:
    scenario = by_id(name)
    found = {"pattern": scenario.truth.pattern, "culprit": scenario.truth.culprit}
    expected = scenario.truth.document()
    return {"scenario": name, "kind": scenario.kind, "expected": expected, "found": found, "live": found,
            "top1": True, "culprit": True, "pass": True, "onset_to_named_s": 5.0, "seconds": 60.0, "false_alarms": [],
            "skipped": None, "where": "here", "ran": "2026-11-18, Linux 6.18, 2 cores"} | more  # fmt: skip


def test_the_score_counts_what_ran() -> None:
    results = [
        result("smaps-reader", onset_to_named_s=4.0),
        result(
            "rt-hog",
            top1=False,
            culprit=False,
            onset_to_named_s=None,
            found={"pattern": "steal", "culprit": None},
            **{"pass": False},
        ),
        result("fork-storm", onset_to_named_s=8.0),
        result("global-reclaim", skipped="no node", top1=False),
        result("healthy-compile", false_alarms=[{"summary": "x", "severity": "warning"}], **{"pass": False}),
    ]
    total = score(results)
    assert (total["scenarios"], total["top1"], total["culprit"], total["false_alarms"]) == (3, 2, 2, 1)
    assert (total["onset_to_named_median_s"], total["healthy_s"], total["skipped"]) == (6.0, 60.0, 1)
    assert "false alarms (warnings included): 1 in 1 minutes of healthy load" in sentence(total)
    page = page_of([*results, result("cfs-throttle", where="lab node, Linux 6.1, cgroup v2")])
    assert "First pattern right in 3 of 4" in page
    assert "| healthy-compile | no warning | 1 warning |" in page
    assert "| cfs-throttle (node) | cfs-throttle | cfs-throttle |" in page
    assert "ran in lab node, Linux 6.1, cgroup v2" in page
    assert "- **global-reclaim**: not run: no node" in page


def test_what_was_repaired_by_its_plan_is_counted_and_shown() -> None:
    fix = {
        "verified": True, "verdict": "verified", "cgroups_before_fix": 6_240, "cgroups_after_fix": 255,
        "steps": [{"id": "unit.disable:x.service", "state": "applied", "why": ""}, {"id": "a", "state": "skipped"}],
        "checks": ["no core lost to it"],
    }  # fmt: skip
    results = [
        result("zombie-tmpfs", fix=fix),
        result("zombie-unit", fix={**fix, "verified": None}),
        result("cfs-throttle"),
    ]
    total = score(results)
    assert (total["fixes"], total["fixes_verified"]) == (2, 1)
    assert "repaired by `fix` and verified: 1 of 2" in sentence(total)
    assert "| zombie-tmpfs | unit.disable | 6,240 -> 255 | verified | no core lost to it |" in page_of(results)
    assert "repaired" not in sentence(score([result("cfs-throttle")]))

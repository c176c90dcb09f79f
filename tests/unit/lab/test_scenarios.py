"""Scenarios as files: complete, named apart, and refused by machines that are too small for them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from zombiescope.diagnosis import patterns
from zombiescope.lab import requirements, scenarios
from zombiescope.lab.scenario import LONGEST_S, PREAMBLE, Needs, Scenario, Truth, by_id, every

EIGHTEEN = {
    "zombie-crashloop", "zombie-tmpfs", "zombie-supervisor", "cgroup-litter", "smaps-reader", "fork-storm",
    "page-fault-storm", "tlb-shootdown", "memcg-limit-reclaim", "global-reclaim", "negative-dentries", "mount-storm",
    "netns-churn", "iptables-storm", "conntrack", "packet-flood", "cfs-throttle", "rt-hog",
}  # fmt: skip


HEALTHY = {
    "healthy-idle", "healthy-compile", "healthy-training", "healthy-web", "healthy-writing", "healthy-dataloader",
    "healthy-collectives", "healthy-pods", "healthy-reading", "healthy-containers",
}  # fmt: skip


def test_all_faults_and_ten_healthy_loads_are_there() -> None:
    assert {one.id for one in every() if one.kind == "fault"} >= EIGHTEEN | {"zombie-limit"}
    assert {one.id for one in every() if one.kind != "fault"} >= HEALTHY


@pytest.mark.parametrize("scenario", every(), ids=lambda one: one.id)
def test_a_scenario_is_complete(scenario: Scenario) -> None:
    assert scenario.title
    assert scenario.does
    assert scenario.id == scenario.id.lower()
    ast.parse(PREAMBLE + scenario.script)
    assert len(scenario.program_name) <= 15, "the kernel cuts names"
    if scenario.kind == "fault":
        assert scenario.truth.pattern in {pattern.id for pattern in patterns.every()}
        assert scenario.truth.culprit
        assert scenario.frames
        assert scenario.seconds <= LONGEST_S
        assert "wait_for_the_word()" in scenario.script
    else:
        assert scenario.truth.pattern is None


def test_ids_are_apart_also_as_names_of_directories() -> None:
    """Directories are found by `zombiescope-lab-ID-`, cgroups by `zombiescope-lab-ID`."""
    ids = [one.id for one in every()]
    assert len(set(ids)) == len(ids)
    files = {path.stem for path in Path(scenarios.__path__[0]).glob("*.py")} - {"__init__"}
    assert {one.replace("-", "_") for one in ids} == files


def test_a_machine_that_is_too_small_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "available_bytes", lambda: 1 << 30)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert "2.2 GB of memory" in requirements.lacks(by_id("smaps-reader"))[0].what
    assert "needs 2 cores, and this machine has 1" in requirements.lacks(by_id("rt-hog"))[0].what
    assert requirements.lacks(by_id("mount-storm")) == []


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert str(requirements.lacks(by_id("mount-storm"))[0]) == "needs root: sudo zombiescope lab run mount-storm"
    assert requirements.lacks(by_id("healthy-idle")) == []


def test_a_machine_that_refuses_real_time_is_not_fit_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("os.sched_setscheduler", refuse)
    assert any("real-time" in one.what for one in requirements.lacks(by_id("rt-hog")))
    assert not any("real-time" in one.what for one in requirements.lacks(by_id("mount-storm")))


def test_what_hurts_the_whole_machine_runs_in_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "in_lab_node", lambda: False)
    assert "--in-node" in str(requirements.lacks(by_id("global-reclaim"))[0])
    monkeypatch.setattr(requirements, "in_lab_node", lambda: True)
    assert requirements.lacks(by_id("global-reclaim")) == []


def test_without_systemd_a_scenario_of_units_runs_in_a_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "UNITS", tmp_path / "none")
    assert "needs systemd" in requirements.lacks(by_id("zombie-unit"))[0].what
    assert requirements.only_in_a_node(by_id("zombie-unit"))
    assert not requirements.only_in_a_node(by_id("mount-storm"))
    monkeypatch.setattr(requirements, "UNITS", tmp_path)
    assert not requirements.only_in_a_node(by_id("zombie-unit"))


def test_missing_programs_and_features_are_named() -> None:
    lame = Scenario(
        "x", "x", "x", Truth(None), "", needs=Needs(root=False, programs=(("no-such", "pkg"),), files=("/no",))
    )
    assert [str(lack) for lack in requirements.lacks(lame)[-2:]] == [
        "needs no-such: apt-get install pkg",
        "needs /no, which this kernel does not have",
    ]

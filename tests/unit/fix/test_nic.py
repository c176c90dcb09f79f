"""The stop-gap: a hog leaves the cores that serve the network card, what that costs is said, and it comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.remedies import TARGET, yes

from zombiescope.diagnosis import symptoms
from zombiescope.diagnosis.incident import Actor, Cause, Fix, Incident
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.fix import affinity, log, nic_steps, quiet_cores
from zombiescope.fix.apply import apply
from zombiescope.fix.step import Step
from zombiescope.fix.undo import undo
from zombiescope.model.plans.plan import Plan

HOG = """
import subprocess, sys, threading
print("up", flush=True)
for line in sys.stdin:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    child = subprocess.Popen(["/bin/sleep", "60"])
    print(child.pid, flush=True)
child.kill()
"""
REAL_PINNED = quiet_cores.pinned_cores
ALLOWED = sorted(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two cores")


@pytest.fixture
def hog() -> Iterator[subprocess.Popen[str]]:
    """A process that starts a thread and a child when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.stdin.close()
        process.wait(10)


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_cores, "nic_cores", lambda: frozenset(ALLOWED[:1]))


@pytest.fixture(autouse=True)
def nothing_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_cores, "pinned_cores", lambda **_: frozenset())


def lost(cpu: int | None) -> Symptom:
    return Symptom(symptoms.by_kind("core_saturated"), 0, 1, "x", cpu=cpu)


def steps(pid: int, cpu: int | None = ALLOWED[0]) -> list[Step]:
    comm = Path(f"/proc/{pid}/comm").read_text().strip()
    cause = Cause("zombie-memcg", "kernel", 0.9, "x", Actor(comm, pid), None, (), (), Fix("x"))
    incident = Incident("ab", 0, 1, "closed", "critical", (lost(cpu),), (cause,))
    return list(nic_steps.steps(incident, cause, live=True))


def cores(pid: int) -> list[list[int]]:
    return [list(one.cpus) for one in affinity.threads(pid)]


def test_it_is_moved_and_comes_back_with_all_that_it_started_meanwhile(
    hog: subprocess.Popen[str], tmp_path: Path
) -> None:
    (step,) = steps(hog.pid)
    assert step.part == "stop-gap"
    assert f"may run on {len(ALLOWED) - 1} of the {len(ALLOWED)} cores" in step.touches[0]
    assert "takes as long as before" in step.touches[0]
    with log.opened(tmp_path / "log") as held:
        done = apply(Plan(TARGET, "x", (step,)), held, yes)
        assert [one.state for one in done.steps] == ["applied"]
        assert cores(hog.pid) == [ALLOWED[1:]]
        # WHEN it goes on and starts a thread and a process THEN these may run where it may
        assert hog.stdin is not None
        assert hog.stdout is not None
        hog.stdin.write("start\n")
        hog.stdin.flush()
        child = int(hog.stdout.readline())
        assert cores(hog.pid) == [ALLOWED[1:], ALLOWED[1:]]
        assert cores(child) == [ALLOWED[1:]]
        # AND all of them have their cores again when it is undone
        assert [one.ok for one in undo(held, TARGET, yes)] == [True]
    assert cores(hog.pid) == [ALLOWED, ALLOWED]
    assert cores(child) == [ALLOWED]


def test_where_every_core_serves_the_card_it_is_said_and_nothing_done(
    hog: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet_cores, "nic_cores", lambda: frozenset(ALLOWED))
    (step,) = steps(hog.pid)
    assert (step.kind, step.action) == ("advice", None)
    assert f"{len(ALLOWED)} serve a network card" in step.does


def test_only_the_core_that_was_lost_is_left(hog: subprocess.Popen[str]) -> None:
    assert steps(hog.pid, cpu=ALLOWED[-1]) == []
    assert steps(hog.pid, cpu=None) == []


CORES = frozenset(range(112))


@pytest.mark.parametrize(
    ("serving", "pinned", "moves"),
    [(range(1), (), True), (range(80), (), True), (range(100), (), False), (range(50), range(50, 100), False),
     (range(112), (), False)],
)  # fmt: skip
def test_a_hog_stays_where_few_quiet_cores_would_take_it(serving: range, pinned: range, *, moves: bool) -> None:
    why = quiet_cores.why_too_few(CORES, frozenset({0}), frozenset(serving), frozenset(pinned))
    assert (why == "") is moves


def test_cores_that_a_rank_is_pinned_to_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 112)
    for pid, cpus, device in ((10, "100-103", "/dev/nvidia-uvm"), (11, "104-107", "/dev/null"),
                              (12, "0-111", "/dev/nvidia-uvm")):  # fmt: skip
        (tmp_path / "proc" / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "fd" / "3").symlink_to(device)
        (tmp_path / "proc" / str(pid) / "status").write_text(f"Name:\tpython\nCpus_allowed_list:\t{cpus}\n")
    monkeypatch.undo()
    monkeypatch.setattr(os, "cpu_count", lambda: 112)
    assert REAL_PINNED(str(tmp_path)) == frozenset(range(100, 104))


def test_who_starts_processes_for_others_is_left_where_it_is() -> None:
    assert steps(1) == []
    cause = Cause("zombie-memcg", "kernel", 0.9, "x", Actor("gone", 2**22 - 1), None, (), (), Fix("x"))
    assert list(nic_steps.steps(Incident("ab", 0, 1, "closed", "critical", (), (cause,)), cause, live=True)) == []


@pytest.mark.parametrize(
    ("cpuset", "mine", "cores"),
    [("/kubepods.slice/pod1", "/", {0}), ("/", "/", set()), ("/kubepods.slice/pod1", "/kubepods.slice/pod1", set())],
    ids=["a pod with its own cores", "pinned by itself", "the hog's own cpuset"],
)
def test_cores_of_somebodys_cpuset_are_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpuset: str, mine: str, cores: set[int]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for pid, place in ((50, cpuset), (60, mine)):
        (tmp_path / f"proc/{pid}/fd").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/status").write_text("Name:\tjob\nCpus_allowed_list:\t0\n")
        (tmp_path / f"proc/{pid}/cpuset").write_text(f"{place}\n")
    assert REAL_PINNED(str(tmp_path), hog=60) == cores

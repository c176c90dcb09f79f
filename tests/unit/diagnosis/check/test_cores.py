"""Cores: what the kernel held, what moved between cores, what stood still, and what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.recordings import START_US, WALK, write_recording
from tests.unit.diagnosis.check.looks import NOTHING, Stacks, checked, core, found, quiet

from zombiescope.audit.surroundings import Surroundings
from zombiescope.diagnosis.check.check import verdict
from zombiescope.diagnosis.check.examine import examine
from zombiescope.store.reader import open_recording

READ = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_read", "vfs_read", "read_iter_zero")


def test_the_founding_case_is_the_verdict(tmp_path: Path) -> None:
    # GIVEN 96 cores of which kubelet holds the last for six seconds
    written = write_recording(tmp_path, cpus=96, seconds=12, busy=0.08)
    assert written.incident is not None
    with open_recording(tmp_path) as recording:
        check = examine(recording, Surroundings(), NOTHING)
    assert check is not None
    # THEN the core is named first, with who held it and in which path, and beside it the mean that hides it
    (finding,) = found(check, "core-saturated")
    assert finding is check.findings[0]
    assert (finding.severity, finding.unit) == ("critical", "kubelet.service")
    assert f"core {written.incident.cpu} at 100% system for 6 s" in finding.why
    assert "the node used 8.6 of 96 cores" in finding.why
    assert f"kubelet (pid 1201, kubelet.service) in {WALK[-1]}; " in finding.why
    assert "kubelet (kubelet.service) walks" in finding.why
    assert "reported when the kernel held one core for 95% of a second or more" in finding.evidence[0].text
    # AND why, with the numbers that say so and what to do
    assert (finding.pattern, finding.rule) == ("zombie-memcg", "core-saturated")
    assert "leaked by amazon-ecs-agen (ecs.service)" in finding.why
    assert "systemctl disable --now ecs.service" in finding.fix
    said = verdict(check)
    assert (said.severity, said.text) == ("critical", finding.why)
    # AND a number that runs on many cores at once is taken for no thread
    assert not found(check, "migrating-kernel-hog")


def test_a_second_is_a_warning_and_less_is_none(tmp_path: Path) -> None:
    # Without a confirmed cause it stays a warning, as in a diagnosis.
    for seconds, expected in ((0, []), (1, ["warning"]), (4, ["warning"]), (9, ["warning"])):
        rows = [core(at, cpu, system=1000 if cpu == 1 and at < seconds else 20) for at in range(10) for cpu in (0, 1)]
        check = checked(tmp_path / str(seconds), {"cores": rows})
        assert [finding.severity for finding in found(check, "core-saturated")] == expected


def test_a_core_busy_with_programs_is_none(tmp_path: Path) -> None:
    rows = [core(at, cpu, user=990, system=10) for at in range(10) for cpu in (0, 1)]
    check = checked(tmp_path, {"cores": rows})
    assert not check.findings
    assert verdict(check).text.startswith("no problems in 10 s (all ")


def test_softirqs_that_hold_a_core_are_called_so(tmp_path: Path) -> None:
    rows = [core(at, cpu, softirq=990 if cpu == 0 else 0) for at in range(10) for cpu in (0, 1)]
    (finding,) = found(checked(tmp_path, {"cores": rows}), "core-saturated")
    assert "core 0 at 99% softirq for 10 s" in finding.why


def test_many_saturated_cores_are_summed_up(tmp_path: Path) -> None:
    rows = [core(at, cpu, system=1000) for at in range(10) for cpu in range(8)]
    findings = found(checked(tmp_path, {"cores": rows}), "core-saturated")
    assert len(findings) == 4
    assert findings[-1].why.startswith("5 more of core-saturated (3, 4, 5, 6, 7)")
    assert "the node used 8.0 of 8 cores" in findings[0].why


def test_a_thread_that_moves_saturates_no_core_and_is_found(tmp_path: Path) -> None:
    # GIVEN one thread in the kernel for four seconds, half of them on each core
    stacks = Stacks()
    walker = stacks.task(77, "walker", "walker.service")
    stacks.run(walker, stacks.stack(*READ), (0, 1), 2, 6)
    rows = [core(at, cpu, system=500 if 2 <= at < 6 else 0) for at in range(10) for cpu in (0, 1)]
    check = checked(tmp_path, {"cores": rows, **stacks.tables})
    # THEN no core is, but the thread is
    assert not found(check, "core-saturated")
    (finding,) = found(check, "migrating-kernel-hog")
    assert "walker used 1.00 cores in the kernel for 4.0 s, on 2 cores" in finding.why
    assert "walker (pid 77, walker.service) in read_iter_zero <- vfs_read" in finding.why
    (hog,) = check.hogs.threads
    assert (hog.actor.comm, hog.longest_s, hog.pids) == ("walker", 4.0, 1)


def test_the_hog_of_a_saturated_core_is_said_once(tmp_path: Path) -> None:
    stacks = Stacks()
    stacks.run(stacks.task(77, "walker"), stacks.stack(*READ), (1,), 0, 10)
    rows = [core(at, cpu, system=1000 if cpu == 1 else 0) for at in range(10) for cpu in (0, 1)]
    check = checked(tmp_path, {"cores": rows, **stacks.tables})
    assert [finding.rule for finding in check.findings] == ["core-saturated"]
    assert "walker (pid 77) in read_iter_zero <- vfs_read" in check.findings[0].why


def test_a_program_in_user_mode_is_no_thread_in_the_kernel(tmp_path: Path) -> None:
    stacks = Stacks()
    stacks.run(stacks.task(77, "train"), stacks.stack("main", "step", kind="user"), (0, 1), 0, 10)
    assert not checked(tmp_path, stacks.tables).findings


def test_a_storm_of_short_processes_is_found_by_their_name(tmp_path: Path) -> None:
    stacks = Stacks()
    fork = stacks.stack("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__do_sys_clone", "copy_process")
    for number in range(50):
        stacks.run(stacks.task(1000 + number, "sh", "ci.service"), fork, (0, 1), number * 0.1, number * 0.1 + 0.1)
    check = checked(tmp_path, stacks.tables)
    (finding,) = found(check, "kernel-crowd")
    assert finding.severity == "info"
    assert "used 1.01 cores in the kernel for 5.0 s, on 2 cores" in finding.why
    assert ": sh (pid 1000, ci.service) in copy_process" in finding.why
    (crowd,) = check.hogs.crowds
    assert (crowd.actor.comm, crowd.pids, crowd.longest_s) == ("sh", 50, 5.0)
    assert not found(check, "migrating-kernel-hog")


@pytest.mark.parametrize(("policy", "expected"), [(1, 1), (2, 1), (6, 1), (0, 0)])
def test_a_real_time_thread_that_keeps_a_core_is_found(tmp_path: Path, policy: int, expected: int) -> None:
    stacks = Stacks()
    stacks.run(stacks.task(9, "spinner", policy=policy, rt_priority=50), stacks.stack("main", kind="user"), (0,), 0, 5)
    check = checked(tmp_path, stacks.tables)
    findings = found(check, "real-time-hog")
    assert len(findings) == expected
    assert all("spinner ran at real-time priority (SCHED_" in one.why and " 50) for" in one.why for one in findings)
    assert [(hog.rt_priority, hog.longest_s) for hog in check.hogs.real_time] == [(50, 5.0)] * expected


# --- stalls -----------------------------------------------------------------------------------------------------


def with_hole(**changes: int | None) -> list[tuple[object, ...]]:
    """Second 4 of core 1 has a hole of 400 ms."""
    hole = core(4, 1, **{"max_gap_us": 400_000, **changes})
    return [hole if (row[0], row[2]) == (hole[0], 1) else row for row in quiet()]


def test_a_hole_while_the_core_was_not_idle_is_a_stall(tmp_path: Path) -> None:
    # GIVEN samples before and after the hole, and a core that was neither idle nor stolen meanwhile
    stacks = Stacks()
    printer = stacks.task(31, "printer", "noise.service")
    path = stacks.stack("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "vprintk_emit", "console_flush_all")
    stacks.run(printer, path, (1,), 4.0, 4.3)
    stacks.run(printer, path, (1,), 4.7, 5.0)
    check = checked(tmp_path, {"cores": with_hole(system=1000, idle=0), **stacks.tables})
    (stall,) = check.stalls
    assert (stall.kind, stall.cpu, stall.seconds) == ("no_samples", 1, 0.4)
    (finding,) = found(check, "core-stalled")
    assert "printer (pid 31, noise.service) in console_flush_all <- vprintk_emit" in finding.why
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"idle": 1000, "idle_samples": 0}, id="an idle task that is not sampled"),
        pytest.param({"steal": 500, "idle": 500}, id="the hypervisor took it"),
        pytest.param({"system": 100, "idle": 0, "max_gap_us": 99_000}, id="shorter than 100 ms"),
        pytest.param({"idle": 400, "user": 600, "idle_samples": 0}, id="half busy and half idle"),
    ],
)
def test_a_hole_that_something_explains_is_none(tmp_path: Path, changes: dict[str, int]) -> None:
    stacks = Stacks()
    if changes.get("user"):
        stacks.run(stacks.task(5, "train"), stacks.stack("main", kind="user"), (1,), 4.4, 5.0)
    check = checked(tmp_path, {"cores": with_hole(**changes), **stacks.tables})
    assert not check.stalls


@pytest.mark.parametrize(("stalled", "rule"), [(1, "core-stalled"), (2, "core-stalled"), (3, "machine-stalled")])
def test_cores_that_stand_still_together_are_the_machine(tmp_path: Path, stalled: int, rule: str) -> None:
    rows = [core(at, cpu) for at in range(10) for cpu in range(4)]
    hole = {"max_gap_us": 600_000, "idle": 200, "samples": 40, "idle_samples": 20}
    rows = [core(4, row[2], **hole) if row[0] == core(4, 0)[0] and row[2] < stalled else row for row in rows]
    check = checked(tmp_path, {"cores": rows})
    assert [stall.cpu for stall in check.stalls] == ([None] if rule == "machine-stalled" else list(range(stalled)))
    assert {finding.rule for finding in check.findings} == {rule}
    if rule == "machine-stalled":
        assert check.findings[0].why.startswith("3 of 4 cores took no interrupt for 600 ms at once: the machine paused")


def test_without_samples_nothing_is_said_about_stalls(tmp_path: Path) -> None:
    lacking = [{"source": "stack samples", "why": "denied", "grant": "CAP_PERFMON"}]
    rows = [core(at, 0, system=1000, samples=None, idle_samples=None, max_gap_us=None) for at in range(10)]
    check = checked(tmp_path, {"cores": rows}, missing=lacking)
    assert not check.stalls
    assert "who cannot be seen" in found(check, "core-saturated")[0].why


@pytest.mark.parametrize(("kernel", "severity"), [("5.4.0", "warning"), ("6.4.1", "warning"), ("6.5.0", "info")])
def test_ksoftirqd_that_waits_is_a_stall_of_the_network_only_before_6_5(
    tmp_path: Path, kernel: str, severity: str
) -> None:
    rows = [
        core(at, cpu, ksoftirqd_delay_us=250_000 if (at, cpu) == (3, 0) else 900) for at in range(9) for cpu in (0, 1)
    ]
    check = checked(tmp_path, {"cores": rows}, kernel=kernel)
    (finding,) = found(check, "ksoftirqd-waits")
    assert finding.severity == severity
    assert "ksoftirqd/0 waited 250 ms" in finding.why
    assert ("starves no card" in finding.why) == (severity == "info")
    assert check.stalls[0].at_us == START_US + 3_000_000


def test_time_that_the_hypervisor_took_is_said(tmp_path: Path) -> None:
    rows = [core(at, cpu, steal=300 if cpu else 0) for at in range(10) for cpu in (0, 1)]
    (finding,) = found(checked(tmp_path, {"cores": rows}), "stolen")
    assert "30% of core 1 was stolen by the hypervisor for 10 s" in finding.why
    assert finding.pattern == "steal"

"""What is a fault on two cores is one on two hundred, beside work that never stops; and that work is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import BOOT, SECOND, START_US
from tests.helpers.wide import SYSCALL, WideNode

from zombiescope.base.time import HOUR_US
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.incident import Incident
from zombiescope.recorder.rollup import Rollup
from zombiescope.store.reader import open_recording

WIDTHS = [16, 192]
FORK = f"{SYSCALL} __do_sys_clone kernel_clone copy_process dup_mmap"
EXIT = f"{SYSCALL} do_exit exit_mmap unmap_vmas"
NETNS_SETUP = f"{SYSCALL} __x64_sys_unshare create_new_namespaces copy_net_ns setup_net ops_init"
NETNS_TEARDOWN = "ret_from_fork kthread worker_thread process_one_work cleanup_net ops_undo_list"
KSWAPD = "ret_from_fork kthread kswapd balance_pgdat shrink_node shrink_lruvec shrink_inactive_list"
LISTS = f"{SYSCALL} __x64_sys_getdents64 iterate_dir offset_readdir"
FROM_S, TO_S = 20, 32


def about(found: Diagnosis, comm: str) -> Incident:
    """The incident whose hog it is."""
    (one,) = [one for one in found.incidents if one.causes and one.causes[0].hog.comm == comm]
    return one


def serious(found: Diagnosis) -> list[str]:
    return [one.causes[0].summary for one in found.incidents if one.severity != "info"] + list(found.noted)


@pytest.mark.parametrize("cpus", WIDTHS)
def test_a_fork_storm_of_a_little_more_than_a_cpu(tmp_path: Path, cpus: int) -> None:
    node = WideNode(cpus).training().counter("stat", "processes", 20).counter("stat", "processes", 900, FROM_S, TO_S)
    when: dict[str, Any] = {"from_s": FROM_S, "to_s": TO_S, "unit": "agent.service"}
    node.runs("agent", FORK, 0.5, pid=700, **when).runs("agent", EXIT, 0.7, ppid=700, short_lived=True, **when)
    found = about(node.diagnose(tmp_path), "agent")
    assert (found.severity, found.causes[0].pattern) == ("warning", "fork-storm")
    assert found.causes[0].culprit is not None
    assert found.causes[0].culprit.pid == 700


@pytest.mark.parametrize("cpus", WIDTHS)
def test_network_namespaces_that_come_and_go(tmp_path: Path, cpus: int) -> None:
    # GIVEN a caller and the kworkers behind it, on many cores, none of which has much
    node = WideNode(cpus).training()
    when: dict[str, Any] = {"from_s": FROM_S, "to_s": TO_S}
    node.runs("sandboxer", NETNS_SETUP, 0.7, pid=700, **when)
    for cpu in range(6):
        node.runs(f"kworker/{cpu}:1", NETNS_TEARDOWN, 0.1, cpus=[cpu], pid=60 + cpu, ppid=2, **when)
    found = node.diagnose(tmp_path)
    (one,) = [one for one in found.incidents if one.causes[0].pattern == "netns-churn"]
    assert one.severity == "warning"
    assert one.causes[0].culprit is not None
    assert one.causes[0].culprit.comm == "sandboxer"


@pytest.mark.parametrize("cpus", WIDTHS)
def test_kswapd_that_never_rests(tmp_path: Path, cpus: int) -> None:
    node = WideNode(cpus).training().counter("vmstat", "pgscan_kswapd", 400_000, FROM_S, TO_S)
    for name in ("pgscan_direct", "pgscan_proactive", "allocstall"):
        node.made.series("vmstat", name)
    node.runs("kswapd1", KSWAPD, 1.0, cpus=[cpus - 1], pid=90, ppid=2, from_s=FROM_S, to_s=TO_S)
    found = about(node.diagnose(tmp_path), "kswapd1")
    assert found.causes[0].pattern == "global-reclaim"
    assert found.severity in ("warning", "critical")


@pytest.mark.parametrize("share", [0.6, 1.0])
@pytest.mark.parametrize("cpus", WIDTHS)
def test_one_thread_in_the_kernel_that_no_pattern_knows(tmp_path: Path, cpus: int, share: float) -> None:
    node = WideNode(cpus).training().runs("lister", LISTS, share, pid=700, from_s=FROM_S, to_s=TO_S)
    found = about(node.diagnose(tmp_path), "lister")
    assert found.causes[0].pattern == "unknown-kernel-hog"
    assert "getdents64" in found.causes[0].summary


@pytest.mark.parametrize("load", ["training", "compile_farm", "readers"])
@pytest.mark.parametrize("cpus", WIDTHS)
def test_what_was_always_there_is_background(tmp_path: Path, cpus: int, load: str) -> None:
    node = WideNode(cpus).counter("stat", "processes", 900).counter("vmstat", "pgfault", 500_000)
    getattr(node, load)()
    for cpu in node.numbers:
        node.runs(f"kworker/{cpu}:0", NETNS_TEARDOWN, 0.02, cpus=[cpu], pid=60 + cpu, ppid=2)
    assert serious(node.diagnose(tmp_path, from_s=20)) == []


@pytest.mark.parametrize("cpus", WIDTHS)
def test_a_hog_beside_background_of_its_own_kind_is_found(tmp_path: Path, cpus: int) -> None:
    """Readers that always read, and one more program that reads without end."""
    node = WideNode(cpus).readers().runs("backup", LISTS, 0.95, pid=700, from_s=FROM_S, to_s=TO_S)
    found = node.diagnose(tmp_path, from_s=10)
    assert about(found, "backup").causes[0].pattern == "unknown-kernel-hog"
    assert [one.causes[0].hog.comm for one in found.incidents] == ["backup"]


def test_who_is_followed_by_another_of_its_name_is_the_same_as_one_that_stays(tmp_path: Path) -> None:
    # GIVEN a core's worth of copying since always, by one process after the other
    node = WideNode(16).training()
    for number in range(20):
        node.runs("cp", LISTS, 1.0, cpus=[3, 4], pid=7000 + number, from_s=2 * number, to_s=2 * number + 2)
    assert [one.severity for one in node.diagnose(tmp_path, from_s=20).incidents if one.severity != "info"] == []


def test_in_the_first_seconds_of_a_recording_nobody_knows_what_is_usual(tmp_path: Path) -> None:
    node = WideNode(16).training().runs("lister", LISTS, 1.0, pid=700)
    assert about(node.diagnose(tmp_path), "lister").causes[0].pattern == "unknown-kernel-hog"


@pytest.mark.parametrize(
    ("kernel_cores", "serious"),
    [
        pytest.param(0.05, True, id="a little yesterday"),
        pytest.param(1.0, False, id="as much yesterday"),
        pytest.param(None, False, id="not there yesterday"),
    ],
)
def test_the_same_unit_yesterday(tmp_path: Path, kernel_cores: float | None, serious: bool) -> None:
    """A storm that goes on for longer than anybody looks back is told by the hours of the last day."""
    node = WideNode(16, seconds=60).training().counter("stat", "processes", 900)
    node.runs("agent", FORK, 1.0, pid=700, unit="agent.service")
    node.write(tmp_path)
    rollup = Rollup(tmp_path / "node=lab", BOOT)
    for hour in range(6, 0, -1):
        at_us = START_US - hour * HOUR_US
        rollup.unit_cpu("other.service", 1_000, 1_000)
        if kernel_cores is not None:
            rollup.unit_cpu("agent.service", round(3_600_000 * kernel_cores), round(3_600_000 * kernel_cores))
        rollup.flush(at_us)
        rollup.flush(at_us + HOUR_US // 2)
    rollup.close(START_US - HOUR_US // 2)
    with open_recording(tmp_path) as recording:
        found = diagnose(recording, START_US + 40 * SECOND, recording.end_us + 1)
    assert bool([one for one in found.incidents if one.severity != "info"]) == serious


def test_what_began_minutes_before_the_window_did_not_always_run(tmp_path: Path) -> None:
    """A storm that goes on is no background because the window begins in the middle of it."""
    node = WideNode(16, seconds=80).training().runs("lister", LISTS, 1.0, pid=700, from_s=30)
    (hog,) = [one for one in about(node.diagnose(tmp_path, from_s=60), "lister").symptoms if one.kind == "kernel_hog"]
    assert (hog.facts["moderate"], hog.facts["new"]) == (False, True)

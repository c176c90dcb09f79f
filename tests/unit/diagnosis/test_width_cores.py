"""One core among many: what holds for one is not what all of them have on average."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import HZ
from tests.helpers.scenes import Scene
from tests.helpers.wide import WideNode

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.query import strip as strips
from zombiescope.query.cores import cores
from zombiescope.query.heatmap import by_core
from zombiescope.query.selection import Selection
from zombiescope.store.reader import open_recording

WIDTHS = [16, 192]


def kinds(found: Diagnosis) -> set[str]:
    return {symptom.kind for incident in found.incidents for symptom in incident.symptoms}


def full(cpus: int, idle: int | None) -> Scene:
    """Every core computes, but for one."""
    scene = Scene(cpus=cpus).vmstat()
    for cpu in range(cpus):
        if cpu != idle:
            scene.mode(cpu, user=1.0, system=0.0, wait_us=20_000)
    return scene


@pytest.mark.parametrize("cpus", WIDTHS)
def test_tasks_that_wait_for_one_core_of_a_busy_node_while_another_idles(tmp_path: Path, cpus: int) -> None:
    scene = full(cpus, idle=cpus - 1).mode(3, wait_us=2_500_000)
    found = [one for incident in scene.diagnose(tmp_path).incidents for one in incident.symptoms]
    assert [(one.kind, one.cpu) for one in found] == [("run_queue_delay", 3)]


@pytest.mark.parametrize("cpus", WIDTHS)
def test_waiting_where_no_core_idles_or_all_wait_says_nothing(tmp_path: Path, cpus: int) -> None:
    assert kinds(full(cpus, idle=None).mode(3, wait_us=2_500_000).diagnose(tmp_path / "full")) == set()
    scene = full(cpus, idle=cpus - 1)
    for cpu in range(cpus - 1):
        scene.mode(cpu, wait_us=1_500_000)
    assert kinds(scene.diagnose(tmp_path / "all wait")) == set()


def test_an_isolated_core_is_room_for_nobody(tmp_path: Path) -> None:
    scene = full(16, idle=15).mode(3, wait_us=2_500_000)
    scene.node["cpus"] = {"online": list(range(16)), "possible": 16, "isolated": [15]}
    assert kinds(scene.diagnose(tmp_path)) == set()


@pytest.mark.parametrize("cpus", WIDTHS)
def test_a_machine_that_stood_still_while_most_of_its_cores_idled(tmp_path: Path, cpus: int) -> None:
    # GIVEN six busy cores, and a gap in the samples of all of them, which idle time explains on the others
    scene = Scene(cpus=cpus).vmstat()
    for cpu in range(cpus):
        scene.mode(cpu, max_gap_us=900_000, idle_samples=HZ // 10, samples=HZ // 10)
        if cpu < 6:
            scene.mode(cpu, user=0.1, system=0.0, idle=0.0, idle_samples=0)
    assert kinds(scene.diagnose(tmp_path)) == {"machine_stall"}


def test_two_cores_with_interrupts_off_are_not_the_machine(tmp_path: Path) -> None:
    scene = Scene(cpus=96).vmstat()
    for cpu in (3, 4):
        scene.mode(cpu, max_gap_us=300_000, user=0.7, system=0.0, idle=0.0, idle_samples=0)
    assert kinds(scene.diagnose(tmp_path)) == {"stall"}


LISTS = "entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_getdents64 iterate_dir offset_readdir"
KSWAPD = "ret_from_fork kthread kswapd balance_pgdat shrink_node shrink_lruvec shrink_inactive_list"


def test_cores_that_are_not_numbered_in_a_row(tmp_path: Path) -> None:
    """Offline siblings, a machine that numbers by socket: the number of a core is no place in a list."""
    node = WideNode(6, seconds=30, online=[1, 3, 8, 64, 120, 191]).training()
    node.runs("lister", LISTS, 1.0, cpus=[120], pid=700, from_s=12, to_s=20)
    with open_recording(node.write(tmp_path)) as recording:
        window = recording.start_us, recording.end_us + 1
        (incident,) = diagnose(recording, *window).incidents
        shown = cores(recording, *window)
        heat = by_core(Selection(recording, *window))
        strip = strips.strip(recording, *window, 30)
    assert {one.cpu for one in incident.symptoms} == {120}
    assert " of 6 cores" in " ".join(one.text for one in incident.symptoms)
    assert [core.cpu for core in shown.cores] == [1, 3, 8, 64, 120, 191] == list(heat.cores or ()) == list(strip.cpus)
    assert heat.values[:, 4].sum() > heat.values[:, 3].sum() > 0
    assert strip.worst_core[15] == 120


def test_the_kswapds_of_several_numa_nodes_are_one_hog(tmp_path: Path) -> None:
    node = WideNode(96, seconds=30).training().counter("vmstat", "pgscan_kswapd", 400_000, 12, 24)
    for number in range(4):
        node.runs(f"kswapd{number}", KSWAPD, 0.3, cpus=range(24 * number, 24 * number + 24), pid=90 + number, ppid=2,
                  from_s=12, to_s=24)  # fmt: skip
    (incident,) = node.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "global-reclaim"
    assert "4 kswapd threads used 1.2" in incident.symptoms[0].text


POLL = "ret_from_fork kthread run_ksoftirqd handle_softirqs net_rx_action __napi_poll ena_io_poll"


@pytest.mark.parametrize("cpus", WIDTHS)
def test_one_core_that_takes_the_packets_of_a_card_beside_another_card(tmp_path: Path, cpus: int) -> None:
    # GIVEN a second card whose packets are spread over the other cores, a third of all
    scene = Scene(cpus=cpus).vmstat().hog(POLL, "ksoftirqd/1", pid=20, ppid=2)
    scene.mode(1, softirq=0.98, softnet_processed=400_000)
    for cpu in range(2, cpus):
        scene.mode(cpu, softnet_processed=200_000 // (cpus - 2))
    cause = scene.diagnose(tmp_path).incidents[0].causes[0]
    assert (cause.pattern, cause.confidence > 0.5) == ("irq-imbalance", True)


@pytest.mark.parametrize("cpus", WIDTHS)
def test_packets_that_several_cores_take_are_spread(tmp_path: Path, cpus: int) -> None:
    scene = Scene(cpus=cpus).vmstat().hog(POLL, "ksoftirqd/1", pid=20, ppid=2)
    for cpu in range(1, 9):
        scene.mode(cpu, softirq=0.98, softnet_processed=100_000)
    (ruled_out,) = {
        one.because
        for incident in scene.diagnose(tmp_path).incidents
        for one in incident.ruled_out
        if one.pattern == "irq-imbalance"
    }
    assert "core 1 took" in ruled_out

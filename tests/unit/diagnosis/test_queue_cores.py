"""From a queue to the core that serves it, and from a driver's counter to its own card and time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import FROM_S, TO_S, Scene

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms import core_saturated, kernel_event, nic_starved, stall
from zombiescope.store.reader import open_recording

SYSCALL = "do_syscall_64 vfs_read some_driver_read"


def symptoms(scene: Scene, place: Path, module: object) -> list[Symptom]:
    with open_recording(scene.write(place)) as recording:
        facts = Facts(recording, START_US, START_US + 20 * SECOND)
        return list(module.find(facts))  # type: ignore[attr-defined]


def queues(scene: Scene, *rows: tuple[str, str, str, int]) -> Scene:
    for nic, queue, cpus, at_s in rows:
        scene.made.add("queues", time=START_US + at_s * SECOND, nic=nic, queue=queue, irq=40, cpus=cpus)
    return scene


@pytest.mark.parametrize(
    ("name", "other"),
    [("eth0-Tx-Rx-5", "eth0-Tx-Rx-4"), ("mlx5_comp5@pci:0000:05:00.0", "mlx5_comp0@pci:0000:05:00.0"), ("5", "4")],
)
def test_a_line_that_names_a_queue_comes_from_the_core_that_serves_it(tmp_path: Path, name: str, other: str) -> None:
    scene = queues(Scene(), ("eth0", name, "2", 1), ("eth0", other, "0-1", 1))
    scene.event("nic_tx_timeout", "TX q 5 is paused", interface="eth0", queue=5)
    (one,) = symptoms(scene, tmp_path, kernel_event)
    assert one.cores == frozenset({2})


def test_a_queue_that_irqbalance_moved_is_served_where_it_was_at_that_moment(tmp_path: Path) -> None:
    scene = queues(Scene(), ("eth0", "eth0-Tx-Rx-5", "2", 1), ("eth0", "eth0-Tx-Rx-5", "3", 19))
    scene.event("nic_tx_timeout", "TX q 5 is paused", at_s=12, interface="eth0", queue=5)
    assert symptoms(scene, tmp_path, kernel_event)[0].cores == frozenset({2})


def test_a_queue_of_which_nothing_is_known_may_be_any_of_the_cards(tmp_path: Path) -> None:
    scene = queues(Scene(), ("eth0", "eth0-Tx-Rx-1", "1", 1), ("eth0", "eth0-Tx-Rx-2", "2", 1))
    scene.event("nic_tx_timeout", "TX q 5 is paused", interface="eth0", queue=5)
    assert symptoms(scene, tmp_path, kernel_event)[0].cores == frozenset({1, 2})


def test_a_counter_has_its_own_card_queue_and_time(tmp_path: Path) -> None:
    scene = queues(Scene(), ("eth0", "eth0-Tx-Rx-5", "2", 1), ("eth1", "eth1-Tx-Rx-5", "3", 1))
    scene.counter("ethtool", "queue_5_tx_missing_tx_cmpl", 2, "eth0").counter("ethtool", "rx_packets", 9, "eth1", 9)
    found = [one for one in symptoms(scene, tmp_path, nic_starved) if "counter" in one.facts]
    assert [(one.facts["interface"], one.facts["counter"], one.cores) for one in found] == [
        ("eth0", "missing_tx_cmpl", frozenset({2}))
    ]
    assert found[0].from_us >= START_US + (FROM_S - 1) * SECOND
    assert found[0].to_us <= START_US + (TO_S + 1) * SECOND
    assert found[0].severity == "warning"  # the device may be to blame as well


def test_only_the_drivers_own_word_for_starvation_is_critical(tmp_path: Path) -> None:
    scene = Scene().counter("ethtool", "suspected_poll_starvation", 1, "eth0")
    found = [one for one in symptoms(scene, tmp_path, nic_starved) if "counter" in one.facts]
    assert [one.severity for one in found] == ["critical"]


@pytest.mark.parametrize(
    ("preempt", "waited_us", "severity"),
    [("none", 0, "warning"), ("voluntary", 0, "warning"), ("full", 0, "info"), ("lazy", 0, "info"), ("rt", 0, "info"),
     ("full", 400_000, "warning"), (None, 0, "warning"), ("full", None, "info"), ("none", None, "warning")],
)  # fmt: skip
def test_on_a_preemptible_kernel_a_full_core_needs_a_witness(
    tmp_path: Path, preempt: str | None, waited_us: int | None, severity: str
) -> None:
    scene = Scene(schedstat=waited_us is not None).hog(SYSCALL, "reader")
    scene.node["kernel_config"] = {"preempt": preempt}
    for cpu in range(scene.cpus):
        if waited_us is not None:
            scene.modes[cpu, "wait_us"] = waited_us
            scene.modes[cpu, "ksoftirqd_delay_us"] = 0
    assert {one.severity for one in symptoms(scene, tmp_path, core_saturated)} == {severity}


def polls(scene: Scene, cpu: int, calm: int, held: int) -> Scene:
    """NET_RX a second of one core: while it is calm, and while it is held."""
    scene.modes[cpu, "softirq_net_rx"] = held
    scene.calm[cpu, "softirq_net_rx"] = calm
    return scene


def napi(scene: Scene, waited_us: int, on: int) -> Scene:
    number = scene.made.series("napi", "cpu", "napi/eth0-8193", "gauge")
    scene.made.count(START_US + SECOND, number, on)
    return scene.counter("napi", "wait_us", waited_us, "napi/eth0-8193", calm_per_s=10)


@pytest.mark.parametrize(("still", "severity"), [(True, "warning"), (False, "info")])
def test_packets_that_stand_still_are_a_witness(tmp_path: Path, still: bool, severity: str) -> None:
    scene = polls(Scene().hog(SYSCALL, "reader"), 1, 4_000, 0 if still else 4_000)
    scene.node["kernel_config"] = {"preempt": "full"}
    assert {one.severity for one in symptoms(scene, tmp_path, core_saturated)} == {severity}


@pytest.mark.parametrize(("on", "severity"), [(1, "warning"), (2, "info")])
def test_a_poll_thread_that_waits_there_is_a_witness(tmp_path: Path, on: int, severity: str) -> None:
    scene = napi(Scene().hog(SYSCALL, "reader"), 900_000, on)
    scene.node["kernel_config"] = {"preempt": "full"}
    for cpu in range(scene.cpus):
        scene.modes[cpu, "wait_us"] = scene.modes[cpu, "ksoftirqd_delay_us"] = 0
    assert {one.severity for one in symptoms(scene, tmp_path, core_saturated)} == {severity}


def test_a_poll_thread_that_did_not_get_its_core_starves_its_card(tmp_path: Path) -> None:
    """Threaded NAPI: NET_RX counts nothing of it."""
    found = symptoms(napi(Scene().hog(SYSCALL, "reader"), 900_000, 1), tmp_path, nic_starved)
    assert [(one.facts["interface"], one.cpu, one.severity) for one in found] == [("eth0", 1, "critical")]
    assert "napi/eth0-8193 was ready to run and did not get a core for 5.4 s" in found[0].text


def test_a_poll_thread_that_waits_a_little_is_well(tmp_path: Path) -> None:
    assert symptoms(napi(Scene().hog(SYSCALL, "reader"), 20_000, 1), tmp_path, nic_starved) == []


@pytest.mark.parametrize(
    ("calm", "frames", "served", "starved"),
    [
        (4_000, SYSCALL, True, True),
        (5, SYSCALL, True, True),
        (5, SYSCALL, False, False),
        (1, SYSCALL, True, False),
        (4_000, "do_syscall_64 __x64_sys_epoll_wait napi_busy_loop ena_io_poll", True, False),
    ],
    ids=["a busy card", "nearly idle beside RDMA", "a core that serves no card", "six polls by chance", "busy polling"],
)
def test_a_queue_that_nobody_polls(tmp_path: Path, calm: int, frames: str, served: bool, starved: bool) -> None:
    scene = polls(Scene().hog(frames, "reader"), 1, calm, 0)
    scene = queues(scene, ("eth0", "rxtx-5", "1" if served else "3", 1))
    assert bool(symptoms(scene, tmp_path, nic_starved)) is starved


@pytest.mark.parametrize(
    ("node", "steal", "hedged"),
    [
        ({"hypervisor": {"virtual": True, "name": "Hyper-V"}, "steal_counted": False}, 0, True),
        ({"hypervisor": {"virtual": None}, "steal_counted": False}, 0, True),
        ({"hypervisor": {"virtual": True}, "steal_counted": True}, 0, False),
        ({"hypervisor": {"virtual": True}, "steal_counted": False}, 0.3, False),
        ({"hypervisor": {"virtual": False}, "steal_counted": False}, 0, False),
        ({}, 0, False),
    ],
    ids=["no steal clock", "not known", "counted since boot", "counted in the window", "bare metal", "old recording"],
)
def test_interrupts_are_said_to_be_off_only_where_a_hypervisor_would_have_been_counted(
    tmp_path: Path, node: dict[str, object], steal: float, hedged: bool
) -> None:
    scene = Scene().mode(1, max_gap_us=400_000, idle=0.0, idle_samples=0, samples=60)
    if steal:
        scene.mode(2, steal=steal)
    scene.node |= node
    said = [one.text for one in symptoms(scene, tmp_path, stall) if one.facts.get("interrupts_off")]
    assert said
    assert all(("or the hypervisor took the core" in text) is hedged for text in said)

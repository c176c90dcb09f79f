"""From a queue to the core that serves it, and from a driver's counter to its own card and time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import FROM_S, TO_S, Scene

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms import core_saturated, kernel_event, nic_starved
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
     ("full", 400_000, "warning"), (None, 0, "warning")],
)  # fmt: skip
def test_on_a_preemptible_kernel_a_full_core_needs_a_witness(
    tmp_path: Path, preempt: str | None, waited_us: int, severity: str
) -> None:
    scene = Scene().hog(SYSCALL, "reader")
    scene.node["kernel_config"] = {"preempt": preempt}
    for cpu in range(scene.cpus):
        scene.modes[cpu, "wait_us"] = waited_us
        scene.modes[cpu, "ksoftirqd_delay_us"] = 0
    assert {one.severity for one in symptoms(scene, tmp_path, core_saturated)} == {severity}

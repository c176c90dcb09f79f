"""What is recorded, as metrics: every second counts once, whoever scrapes and however often the agent is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.agent import parts
from zombiescope.agent.health import Health
from zombiescope.agent.metrics import families
from zombiescope.agent.metrics.account import Books
from zombiescope.agent.metrics.exposition import page, registry
from zombiescope.agent.metrics.incident_account import IncidentAccount
from zombiescope.agent.metrics.missing_sources import MissingSources
from zombiescope.agent.service import Context
from zombiescope.agent.tally import OTHER, Tally
from zombiescope.store.tail import Tail

LIVE = 240


def happens(node: Node, second: float, kind: str, source: str, **fields: Any) -> None:
    node.happen(at(second), kind, source, "warning", kind, **fields)


def at(second: float) -> int:
    return START_US + round(second * SECOND)


def context(node_dir: Path) -> Context:
    return Context("account", node_dir, "lab", "lab", Tally(parts.families()), Health(lambda _: None))


def counted(node: Node, place: Path, since_us: int = 0, **header: Any) -> Tally:
    return followed(write_segment(place, node.tables, **header).parents[1], since_us)


def followed(node_dir: Path, since_us: int = 0) -> Tally:
    given = context(node_dir)
    books = Books(given, since_us)
    with Tail(node_dir) as tail:
        for frame in tail.poll():
            books.take(frame, tail.header)
        books.publish()
    return given.tally


def value(tally: Tally, name: str, *labels: str) -> float | None:
    return tally.values(name).get(labels)


def test_seconds_of_a_core_that_the_kernel_held(tmp_path: Path) -> None:
    node = Node()
    for second in range(1, 21):
        node.core(at(second), 0, system=1000 if second in (3, 4, 5, 9) else 100)
        node.core(at(second), 1, user=1000)
    tally = counted(node, tmp_path)
    assert value(tally, families.SATURATED, "0") == pytest.approx(4.0)
    assert value(tally, families.SATURATED, "1") == 0.0
    assert value(tally, families.LONGEST) == pytest.approx(3.0)


def test_short_ticks_are_judged_together(tmp_path: Path) -> None:
    """A tenth of a second at 90% to 110% is a core at 100%."""
    node = Node()
    for tick in range(1, 21):
        node.core(at(tick / 10), 0, system=90 if tick % 2 else 110, interval_us=100_000)
    assert value(counted(node, tmp_path), families.SATURATED, "0") == pytest.approx(2.0)


def test_a_saturation_that_is_long_over_is_not_the_longest_of_the_last_minutes(tmp_path: Path) -> None:
    node = Node()
    for second in range(1, 400):
        node.core(at(second), 0, system=1000 if second < 8 else 0)
    tally = counted(node, tmp_path)
    assert value(tally, families.LONGEST) == 0.0
    assert value(tally, families.SATURATED, "0") == pytest.approx(7.0)


def test_a_hole_in_time_ends_a_saturation(tmp_path: Path) -> None:
    node = Node()
    for second in (*range(1, 4), *range(60, 64)):
        node.core(at(second), 0, system=1000)
    assert value(counted(node, tmp_path), families.LONGEST) == pytest.approx(4.0)


def test_a_card_whose_core_does_not_poll_it(tmp_path: Path) -> None:
    node = Node()
    for second in range(1, 61):
        held = 40 <= second < 45
        node.core(at(second), 0, system=990 if held else 100, softirq_net_rx=2 if held else 5000)
        node.core(at(second), 1, system=990, softirq_net_rx=0)  # serves no card
    assert value(counted(node, tmp_path), families.NIC_STARVED) == pytest.approx(5.0)


def test_cgroups_and_who_leaks_them(tmp_path: Path) -> None:
    node = Node()
    for minute in range(10):
        node.census(at(60 * minute + 1), LIVE, 1000 + 60 * minute, created=70 * minute, released=10 * minute)
    for number in range(30):
        path = f"/system.slice/u{number}.service/*"
        node.leak(at(500), path, 10 + number, created=50, removed=40, unit=f"u{number}.service")
    tally = counted(node, tmp_path)
    assert value(tally, families.CGROUPS, "memory", "visible") == LIVE
    assert value(tally, families.CGROUPS, "memory", "dying") == 1540
    assert value(tally, families.LEAK_RATE) == pytest.approx(1.0)
    assert value(tally, families.CREATED) == 630
    assert value(tally, families.RELEASED) == 90
    leakers = tally.values(families.LEAKERS_DYING)
    assert len(leakers) == families.LEAKERS + 1
    assert leakers[("u29.service",)] == 39
    assert leakers[(OTHER,)] == sum(range(10, 20))


def test_what_is_not_measured_has_no_line(tmp_path: Path) -> None:
    node = Node()
    node.core(at(1), 0, system=10)
    node.add("census", time=at(1), hierarchy="v2", total=None, live=12, dying=None)
    tally = counted(node, tmp_path)
    assert tally.values(families.CGROUPS) == {("memory", "visible"): 12}
    assert value(tally, families.LEAK_RATE) is None
    assert value(tally, families.WALK_COST) is None


def test_restarts_and_lines_of_the_kernel(tmp_path: Path) -> None:
    node = Node()
    for second in (1, 5):
        happens(node, second, "unit_restart", "systemd", unit="ecs.service", delta=2)
    happens(node, 2, "nic_reset", "kmsg")
    happens(node, 3, "mark", "mark")
    node.container(at(1), "a" * 64, name="agent", runs=1)
    node.container(at(9), "a" * 64, name="agent", runs=4)
    for number in range(3):  # as kubelet does it: the same name, ever new containers
        node.container(at(10 + number), f"{number}" * 64, name="main", pod="job-1", namespace="ml", runs=1)
    tally = counted(node, tmp_path)
    assert tally.values(families.UNIT_RESTARTS) == {("ecs.service",): 4}
    lines = tally.values(families.KERNEL_EVENTS)
    assert {kind: count for kind, count in lines.items() if count} == {("nic_reset",): 1}
    assert lines[("soft_lockup",)] == 0  # from the beginning: Prometheus sees it rise
    assert tally.values(families.CONTAINER_RESTARTS) == {("", "", "agent"): 3, ("ml", "job-1", "main"): 2}


def test_names_are_bounded_and_harmless(tmp_path: Path) -> None:
    node = Node()
    for number in range(300):
        happens(node, 1 + number / 10, "unit_restart", "systemd", unit=f"\x1b[2J{'x' * 500}{number}.service")
        happens(node, 1 + number / 10, "unit_restart", "systemd", unit=f"u{number}.service")
    found = counted(node, tmp_path).values(families.UNIT_RESTARTS)
    assert len(found) <= families.UNITS + 1
    assert sum(found.values()) == 600
    assert all(len(labels[0]) <= 128 and labels[0].isprintable() for labels in found)


def test_our_own_cost_and_blindness(tmp_path: Path) -> None:
    node = Node()
    for second in range(1, 11):
        late = 700_000 if second == 5 else 1000
        cost = {"cpu_us": 2000, "helper_cpu_us": 1000, "rss_bytes": 40_000_000, "tick_late_us": late, "lost": 3}
        node.add("cost", time=at(second), **cost)
    node.add("gaps", time=at(0), end=at(4), source="ticks", why="stopped")
    node.add("gaps", time=at(0), end=at(6), source="ticks", why="stopped")  # told again while it goes on
    tally = counted(node, tmp_path)
    assert value(tally, families.CPU, "recorder") == pytest.approx(0.02)
    assert value(tally, families.CPU, "helpers") == pytest.approx(0.01)
    assert value(tally, families.LOST) == 30
    assert value(tally, families.GAPS, "ticks") == pytest.approx(6.0)
    lateness = tally.values(families.LATENESS)
    assert (lateness[("0.01",)], lateness[("0.5",)], lateness[("1",)]) == (9, 9, 10)


def rewrite_missing(node_dir: Path, *sources: str) -> None:
    """As the recorder does when a source fails or works again."""
    node = json.loads((node_dir / "node.json").read_text())
    node["missing"] = [{"source": source, "why": "it hangs", "grant": "restart it"} for source in sources]
    (node_dir / "new").write_text(json.dumps(node))
    (node_dir / "new").rename(node_dir / "node.json")


def followed_in_steps(node: Node, place: Path, steps: dict[int, tuple[str, ...]]) -> tuple[Tally, list[set[str]]]:
    """Each frame as it comes, and what is missing from some of them on."""
    node_dir = write_segment(place, node.tables).parents[1]
    given = context(node_dir)
    books, seen = Books(given, 0), []
    with Tail(node_dir) as tail:
        for number, frame in enumerate(tail.poll()):
            if number in steps:
                rewrite_missing(node_dir, *steps[number])
            books.take(frame, tail.header)
            books.publish()
            seen.append({source for (source,) in given.tally.values(families.MISSING)})
    return given.tally, seen


def test_a_source_that_fails_later_is_missing_from_then_on_and_no_longer_when_it_works_again(tmp_path: Path) -> None:
    node = Node()
    for second in range(1, 31):
        node.core(at(second), 0, system=10)
    _, seen = followed_in_steps(node, tmp_path, {0: ("systemd",), 10: ("GPU", "systemd"), 20: ("systemd",)})
    assert seen[9] == {"systemd"}
    assert seen[10] == seen[19] == {"GPU", "systemd"}
    assert seen[20] == seen[29] == {"systemd"}


def test_blind_seconds_of_a_source_that_failed_later_count_while_it_fails_and_once(tmp_path: Path) -> None:
    """The recorder reports the gap only when it is over, or with its segment."""
    node = Node()
    for second in range(1, 31):
        node.core(at(second), 0, system=10)
    node.add("gaps", time=at(10), end=at(30), source="GPU", why="it hangs")
    live, _ = followed_in_steps(without_gaps(node), tmp_path / "live", {0: (), 12: ("GPU",)})
    assert value(live, families.GAPS, "GPU") == pytest.approx(17.0)
    both, _ = followed_in_steps(node, tmp_path / "both", {0: (), 12: ("GPU",)})
    assert value(both, families.GAPS, "GPU") == pytest.approx(20.0)


def without_gaps(node: Node) -> Node:
    return Node({name: rows for name, rows in node.tables.items() if name != "gaps"})


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"missing": 3}', b'{"missing": [7, null]}'])
def test_a_damaged_node_file_is_no_missing_source(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "node.json").write_bytes(damage)
    assert MissingSources(tmp_path).read() == ()


def test_whoever_is_started_again_goes_on_where_the_other_stopped(tmp_path: Path) -> None:
    """What was counted is not counted again; what was not is not lost."""
    node = Node()
    for second in range(1, 41):
        node.core(at(second), 0, system=1000)
        node.census(at(second), LIVE, 100, created=10 * second)
        happens(node, second, "nic_reset", "kmsg")
    node_dir = write_segment(tmp_path, node.tables).parents[1]
    whole, rest = followed(node_dir), followed(node_dir, since_us=at(30))
    for name, labels in ((families.SATURATED, ("0",)), (families.KERNEL_EVENTS, ("nic_reset",))):
        assert value(whole, name, *labels) == pytest.approx(40)
        assert value(rest, name, *labels) == pytest.approx(10, abs=1)
    assert value(rest, families.CREATED) == pytest.approx(100, abs=10)


def incident(identity: str, state: str, cause: str = "zombie-memcg", lost: float = 0.0) -> dict[str, Any]:
    gpus = [{"gpu": 3, "seconds_lost": lost}] if lost else []
    return {
        "id": identity, "from": 100.0, "to": 200.0, "state": state, "severity": "critical",
        "causes": [{"pattern": cause, "summary": "core 39 was lost"}], "symptoms": [], "cost": {"gpus": gpus},
    }  # fmt: skip


def test_incidents_by_cause_and_state_and_what_they_cost(tmp_path: Path) -> None:
    node_dir = tmp_path / "node=lab"
    node_dir.mkdir()
    given = context(node_dir)
    books = Books(given, 0)
    books.publish()

    def look(*entries: dict[str, Any]) -> None:
        (node_dir / "incidents.json").write_text(json.dumps({"at": 1, "incidents": entries}))
        books.publish()

    look(incident("a", "open", lost=2.5))
    assert given.tally.values(families.INCIDENT_OPEN) == {("zombie-memcg", "critical"): 1}
    look(incident("a", "open", lost=4.0), incident("b", "open", "fork-storm"))
    look(incident("a", "closed", lost=4.0), incident("b", "open", "fork-storm"), incident("c", "closed", "fork-storm"))
    assert given.tally.values(families.INCIDENT_OPEN) == {("fork-storm", "critical"): 1}
    assert given.tally.values(families.INCIDENTS) == {("zombie-memcg", "critical"): 1, ("fork-storm", "critical"): 2}
    assert value(given.tally, families.GPU_LOST, "3") == pytest.approx(4.0)
    assert value(given.tally, families.LOOKS) == 3
    look(incident("b", "closed", "fork-storm"))
    assert given.tally.values(families.INCIDENT_OPEN) == {}


def test_gpus_as_they_were_last_and_what_their_driver_counts(tmp_path: Path) -> None:
    node = Node()
    first = {"gpu": 0, "state": "ok", "ecc_corrected": 5, "pcie_replays": 0}
    node.add("gpus", time=at(1), **first)
    node.add("gpus", time=at(9), **{**first, "ecc_corrected": 8})
    node.add("gpus", time=at(12), **{**first, "ecc_corrected": 2, "state": "lost"})  # reset: two since then
    node.add("gpus", time=at(1), gpu=900, state="ok")  # no node has so many
    for second, busy in ((2, 90), (3, 95), (70, None)):
        node.add("gpu_seconds", time=at(second), gpu=0, utilisation=busy, power_w=300, sw_thermal_ns=500_000_000)
    node.add("gpu_seconds", time=at(80), gpu=1, utilisation=0, memory_used_bytes=7, temperature_c=41)
    tally = counted(node, tmp_path)
    assert value(tally, families.GPU_ERRORS, "0", "ecc_corrected") == 5
    assert value(tally, families.GPU_ERRORS, "0", "pcie_replays") == 0
    assert value(tally, families.GPU_HELD, "0", "sw_thermal") == pytest.approx(1.5)
    assert value(tally, families.GPU_OK, "0") == 0
    assert value(tally, families.GPU_POWER, "0") == 300
    assert value(tally, families.GPU_UTILISATION, "0") is None  # its newest is 77 s old
    assert value(tally, families.GPU_UTILISATION, "1") == 0
    assert (value(tally, families.GPU_MEMORY_USED, "1"), value(tally, families.GPU_TEMPERATURE, "1")) == (7, 41)
    assert set(tally.values(families.GPU_OK)) == {("0",)}


def test_a_renamed_metric_keeps_its_former_name_and_incidents_have_exemplars(tmp_path: Path) -> None:
    tally = Tally(parts.families())
    tally.add(families.CPU, 3.5, "recorder")
    account = IncidentAccount(tally, tmp_path, since_s=0.0)
    (tmp_path / "incidents.json").write_text(json.dumps({"at": 1, "incidents": []}))
    account.poll()
    found = {"id": "a1b2", "from": 50.0, "to": 60.0, "state": "open", "severity": "critical"}
    (tmp_path / "incidents.json").write_text(json.dumps({"at": 2, "incidents": [found]}))
    account.poll()
    text = page(registry(tally), "application/openmetrics-text; version=1.0.0")[0].decode()
    assert 'zombiescope_process_cpu_seconds_total{process="recorder"} 3.5' in text
    assert 'zombiescope_cpu_seconds_total{process="recorder"} 3.5' in text
    (line,) = [each for each in text.splitlines() if each.startswith("zombiescope_incidents_total{")]
    assert line.endswith('# {incident="a1b2"} 1.0 50.0')
    plain = page(registry(tally), "text/plain")[0].decode()
    assert "# {" not in plain

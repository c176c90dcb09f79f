"""Counters are differences and gauges are changes; one source that cannot be read does not cost the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from zombiescope.kernel import namespaces, vmstat
from zombiescope.recorder import counters as module
from zombiescope.recorder.counters import Counters
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SECOND_US = 1_000_000


class Bench:
    """Counters over a tree that a test writes, second by second."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.now_s, self.read_ns = root, 100, 0
        self.batch, self.sources = Batch(), Sources()
        barrier = Barrier(self.sources, lambda: self.now_s * SECOND_US, lambda: float(self.now_s))
        clock = SimpleNamespace(monotonic=lambda: float(self.now_s), perf_counter_ns=self._perf_counter_ns)
        monkeypatch.setattr(module, "time", clock)
        self.counters = Counters(self.batch, self.sources, barrier, str(root))
        self._clock_ns = 0
        self.put("proc/vmstat", "pgfault 100\nnr_dirty 5\n")
        self.put("proc/meminfo", "MemAvailable: 10 kB\n")

    def _perf_counter_ns(self) -> int:
        self._clock_ns += self.read_ns
        return self._clock_ns

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def second(self) -> dict[str, int]:
        """One tick: name -> value of the rows that it wrote."""
        self.batch._rows.pop(schema.COUNTERS.number, None)
        self.now_s += 1
        self.counters.tick(Tick(0, self.now_s * SECOND_US, SECOND_US))
        names = {row[0]: row[2] for row in self.batch._rows.get(schema.SERIES.number, [])}
        return {names[row[1]]: row[2] for row in self.batch._rows.get(schema.COUNTERS.number, [])}

    def missing(self) -> set[str]:
        return {one.source for one in self.sources.missing}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path, monkeypatch)
    yield made
    made.counters.close()


def test_a_counter_is_what_was_added_and_a_gauge_is_written_when_it_changes(bench: Bench) -> None:
    first = bench.second()
    assert first["nr_dirty"] == 5
    assert "pgfault" not in first
    bench.put("proc/vmstat", "pgfault 130\nnr_dirty 5\n")
    assert bench.second() == {"pgfault": 30}
    bench.put("proc/vmstat", "pgfault 130\nnr_dirty 6\n")
    assert bench.second() == {"nr_dirty": 6}


def test_a_counter_that_was_reset_says_nothing(bench: Bench) -> None:
    bench.second()
    bench.put("proc/vmstat", "pgfault 3\nnr_dirty 5\n")
    assert bench.second() == {}


def test_a_new_segment_numbers_series_anew_and_writes_gauges_again(bench: Bench) -> None:
    bench.second()
    bench.batch._rows.clear()
    bench.counters.restart()
    bench.now_s += 5
    assert bench.second()["mem_available_bytes"] == 10 * 1024
    assert [row[0] for row in bench.batch._rows[schema.SERIES.number]][:1] == [1]


def test_a_source_that_raises_is_missing_and_the_others_are_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(_: bytes) -> dict[str, int | None]:
        raise ValueError("a line of another kind")

    bench.second()
    with monkeypatch.context() as patch:
        patch.setattr(vmstat, "parse", odd)
        bench.put("proc/meminfo", "MemAvailable: 20 kB\n")
        bench.now_s += 5
        assert bench.second()["mem_available_bytes"] == 20 * 1024
    assert "vmstat (reader)" in bench.missing()
    assert "vmstat" not in bench.missing()


def test_what_it_counted_while_it_could_not_be_read_belongs_to_no_tick(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.second()
    bench.put("proc/vmstat", "pgfault 1000100\nnr_dirty 5\n")
    with monkeypatch.context() as patch:
        patch.setattr(vmstat, "parse", lambda _: 1 // 0)
        bench.second()
    assert "pgfault" not in bench.second()
    [(from_us, to_us, _, why)] = [gap for gap in bench.sources.take_ended() if gap[2] == "vmstat (reader)"]
    assert to_us - from_us == SECOND_US
    assert why.startswith("ZeroDivisionError")
    bench.put("proc/vmstat", "pgfault 1000107\nnr_dirty 5\n")
    assert bench.second()["pgfault"] == 7


def test_a_source_that_is_dear_twice_in_a_row_is_read_rarely(bench: Bench) -> None:
    bench.second()
    bench.read_ns = 2 * module.DEAR_NS
    bench.second()
    bench.second()
    bench.read_ns = 0
    bench.put("proc/vmstat", "pgfault 999\nnr_dirty 5\n")
    assert [("pgfault" in bench.second()) for _ in range(10)].index(True) == 9


def test_a_file_that_is_absent_is_missing_until_it_is_there(bench: Bench) -> None:
    (bench.root / "proc/vmstat").unlink()
    bench.second()
    assert "vmstat" in bench.missing()
    bench.put("proc/vmstat", "pgfault 1\n")
    bench.second()
    assert "vmstat" not in bench.missing()


def names(bench: Bench, source: str) -> set[str]:
    return {
        row[2] for row in bench.batch._rows.get(schema.SERIES.number, []) if row[1] == source and row[4] == "counter"
    }


def test_a_counter_that_never_moves_is_named_in_every_segment(bench: Bench) -> None:
    # GIVEN a kernel without NUMA balancing, whose compaction stands still
    bench.put("proc/vmstat", "pgfault 100\nnr_dirty 5\ncompact_stall 0\n")
    for _ in range(2):
        bench.second()
        bench.second()
        # THEN what it has is known, and what it does not have is not
        assert names(bench, "vmstat") == {"pgfault", "compact_stall"}
        bench.batch._rows.clear()
        bench.counters.restart()


def test_rows_of_interrupts_that_the_architecture_has_are_named(bench: Bench) -> None:
    bench.put(
        "proc/interrupts", "      CPU0  CPU1\n 24:  7  0  ITS-MSI 1 Edge  eth0\nIPI0:  3  4  Rescheduling interrupts\n"
    )
    for _ in range(2):
        bench.second()
        assert names(bench, "interrupts") == {"IPI0"}
        bench.batch._rows.clear()
        bench.counters.restart()


def test_names_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 3)
    monkeypatch.setattr(vmstat, "parse", lambda _: {f"made_up_{number}": number for number in range(10)})
    bench.second()
    assert len(names(bench, "vmstat")) <= 3


def test_limits_and_the_clock_in_use_are_levels(bench: Bench) -> None:
    clock = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    bench.put("proc/sys/kernel/pid_max", "32768\n")
    bench.put(clock, "tsc\n")
    first = bench.second()
    assert (first["pid_max"], first["current"]) == (32768, 1)
    bench.put(clock, "hpet\n")
    bench.now_s += 60
    bench.second()
    keys = {row[0]: row[3] for row in bench.batch._rows[schema.SERIES.number]}
    last = {keys[row[1]]: row[2] for row in bench.batch._rows[schema.COUNTERS.number]}
    assert (last["tsc"], last["hpet"]) == (0, 1)
    bench.batch._rows.clear()
    bench.counters.restart()
    bench.now_s += 60
    assert bench.second()["pid_max"] == 32768


def test_numa_is_read_where_there_is_more_than_one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in range(2):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "meminfo").write_text(f"Node {node} MemTotal: 100 kB\nNode {node} MemFree: {node} kB\n")
        (folder / "numastat").write_text("numa_hit 10\nnuma_miss 3\n")
    bench = Bench(tmp_path, monkeypatch)
    assert bench.second()["free_bytes"] in (0, 1024)
    for node in range(2):
        bench.put(f"sys/devices/system/node/node{node}/numastat", "numa_hit 30\nnuma_miss 8\n")
    bench.now_s += 10
    assert bench.second()["numa_miss"] == 5
    bench.counters.close()


def test_a_table_that_becomes_nearly_full_is_worth_one_look(bench: Bench) -> None:
    for files, suspects in ((100, []), (900, ["limits"]), (950, []), (100, []), (990, ["limits"])):
        bench.put("proc/sys/fs/file-nr", f"{files}\t0\t1000\n")
        bench.now_s += 10
        bench.second()
        assert bench.counters.take_suspects() == suspects


# --- a network namespace of its own ---------------------------------------------------------------------------------


def of_cards(bench: Bench) -> set[str]:
    rows = bench.batch._rows.get(schema.SERIES.number, [])
    return {row[3] for row in rows if row[1] == "netdev" and row[3]}


@pytest.mark.parametrize(("reached", "seen"), [("1", {"lo", "eth0"}), (None, set())])
def test_another_network_namespace_is_a_missing_source_and_what_can_be_reached_is_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: str | None, seen: set[str]
) -> None:
    # GIVEN a pod's own network, with a veth, and the node's below process 1
    monkeypatch.setattr(namespaces, "node_network", lambda _: reached)
    node = tmp_path / "proc/1/root" if reached else tmp_path
    monkeypatch.setattr(namespaces, "node_root", lambda _: str(node))
    bench = Bench(tmp_path, monkeypatch)
    try:
        if reached:
            bench.put("proc/1/root/sys/class/net/eth0/device/uevent", "DRIVER=ena\n")
        head = "Inter-| Receive\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
        line = " 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"
        bench.put("proc/net/dev", f"{head}  veth0:{line}    lo:{line}")
        bench.put("proc/1/net/dev", f"{head}  eth0:{line}    lo:{line}")
        bench.counters.note_network(bench.now_s * SECOND_US)
        # WHEN it is recorded
        for _ in range(2):
            bench.second()
            bench.now_s += 60
        # THEN what is counted is the node's, and what cannot be seen is named; its own card is nobody's
        assert of_cards(bench) == seen
        assert "host network namespace" in bench.missing()
        assert "NIC statistics" not in bench.missing()
        assert bench.counters.nics.readings == 0
    finally:
        bench.counters.close()


def test_what_ena_has_left_is_a_level_and_what_it_refused_a_counter(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter(
        {"eth0": {"conntrack_allowance_available": left, "conntrack_allowance_exceeded": refused}}
        for left, refused in ((90_000, 5), (40_000, 9), (70_000, 9))
    )
    monkeypatch.setattr(bench.counters, "_network", "self")
    monkeypatch.setattr(bench.counters.nics, "ask", lambda _: None)
    monkeypatch.setattr(bench.counters.nics, "take", lambda: next(readings, None))
    written = [bench.second() for _ in range(3)]
    assert [one.get("conntrack_allowance_available") for one in written] == [90_000, 40_000, 70_000]
    assert [one.get("conntrack_allowance_exceeded") for one in written] == [None, 4, None]

"""A fault of two cores on a wide node: nothing of it is lost, nothing of the others is invented, and it reads alike."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.made import HZ, SECOND, START_US, Node, write_segment
from tests.helpers.recordings import contents

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.report.document import document
from zombiescope.lab.wide import WidenError, widen
from zombiescope.lab.wide.source import Source
from zombiescope.lab.wide.tile import lay_out
from zombiescope.store import columns
from zombiescope.store.reader import Recording, open_recording

KEPT = Path(__file__).parents[2] / "fixtures" / "recordings"
LATER_US = START_US + 40_000 * SECOND
"""Another day: backgrounds are never of the same time."""
SECONDS, LOOP_S = 12, 7


def samples(node: Node, start_us: int, second: int, cpu: int, task: int, frames: str, share: float = 1.0) -> None:
    stack = node.stack([node.frame(name) for name in frames.split()])
    for number in range(round(HZ * share)):
        node.sample(start_us + second * SECOND + number * SECOND // HZ + 1, cpu, task, stack)


def fault(place: Path) -> Recording:
    """A task holds core 0 in the kernel, and ksoftirqd of that core runs a little."""
    node, at = Node(), START_US
    hog = node.task(700, "smaps-agent", ppid=1, start_ticks=5000, cgroup="/agent")
    soft = node.task(15, "ksoftirqd/0", ppid=2)
    node.task(690, "supervisor", ppid=1)  # a parent that was never sampled
    pages, load = node.series("vmstat", "pgfault"), node.series("loadavg", "tasks", kind="gauge")
    waits, table = node.series("pressure", "some_us", "cpu"), node.series("conntrack", "max", kind="gauge")
    irq = node.series("interrupts", "24", "eth0-rx-0")
    node.count(at + SECOND, load, 100)
    node.count(at + SECOND, table, 262_144)
    node.add("queues", time=at + SECOND, nic="eth0", queue="rx-0", irq=24, cpus="1")
    for second in range(SECONDS):
        end_us = at + (second + 1) * SECOND
        samples(node, at, second, 0, hog, "do_syscall_64 vfs_read show_smaps_rollup smaps_pte_range")
        samples(node, at, second, 0, soft, "kthread handle_softirqs", 0.05)
        node.core(end_us, 0, system=990, samples=99, idle_samples=0, expected_samples=99, max_gap_us=10_200)
        node.core(end_us, 1, user=10, samples=1, idle_samples=98, expected_samples=99, max_gap_us=10_100)
        node.count(end_us, pages, 100)
        node.count(end_us, waits, 300_000)
        node.interrupt(end_us, irq, 1, 40)
        node.census(end_us, 50, 10, created=second, removed=second)
    node.happen(at + 5 * SECOND, "soft_lockup", "kmsg", "critical", "watchdog: CPU#0 stuck", cpu=0, pid=700)
    write_segment(place, node.tables)
    return open_recording(place)


def background(place: Path, *, late: bool = False) -> Recording:
    """Training on both cores; with `late`, its fourth tick covers the fifth second as well."""
    node, at = Node(), LATER_US
    work = [node.task(800 + cpu, "pt_data_worker", tid=800 + cpu, ppid=799, start_ticks=9000) for cpu in (0, 1)]
    pages, load = node.series("vmstat", "pgfault"), node.series("loadavg", "tasks", kind="gauge")
    waits, table = node.series("pressure", "some_us", "cpu"), node.series("conntrack", "max", kind="gauge")
    irq, calls = node.series("interrupts", "24", "eth0-rx-0"), node.series("interrupts", "CAL")
    node.count(at + SECOND, load, 300)
    node.count(at + SECOND, table, 65_536)
    node.add("queues", time=at + SECOND, nic="eth0", queue="rx-0", irq=24, cpus="0")
    for second in range(LOOP_S):
        end_us = at + (second + 1) * SECOND
        for cpu in (0, 1):
            samples(node, at, second, cpu, work[cpu], "do_syscall_64 vfs_write shmem_fault", 0.5)
        node.count(end_us, pages, 1000)
        if late and second == 3:
            continue
        length = 2 if late and second == 4 else 1
        for cpu in (0, 1):
            figures = {"user": 300, "system": 200, "samples": 50, "expected_samples": 99}
            scaled = {name: value * length for name, value in figures.items()}
            node.core(end_us, cpu, interval_us=length * SECOND, max_gap_us=20_000, wait_us=None, **scaled)
            node.interrupt(end_us, calls, cpu, 7 * length)
        node.interrupt(end_us, irq, 0, 11 * length)
        node.count(end_us, waits, 30_000 * length)
        node.census(end_us, 20, 0, created=3 * second, removed=2 * second)
    write_segment(place, node.tables, start_us=LATER_US)
    return open_recording(place)


def spliced(tmp_path: Path, width: int, *, late: bool = False, at: int | None = None) -> Recording:
    with fault(tmp_path / "fault") as one, background(tmp_path / "background", late=late) as other:
        widen(one, [other], width, tmp_path / "wide", at=at)
    return open_recording(tmp_path / "wide")


def totals(recording: Recording, table: str, key: str, value: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in columns.records(recording.table(table)):
        found[row[key]] += row[value] or 0
    return found


def counted(recording: Recording) -> dict[str, int]:
    """What each counter added, by its name."""
    names = {row["series"]: row["name"] for row in columns.records(recording.table("series"))}
    return {names[number]: count for number, count in totals(recording, "counters", "series", "value").items()}


# --- back to two cores -----------------------------------------------------------------------------------------------


def rows_of(recording: Recording) -> dict[str, list[Any]]:
    """Every table; rows of one moment have no order."""
    return {table: sorted(rows, key=repr) for table, rows in contents(recording).items()}


def incidents(recording: Recording) -> list[dict[str, Any]]:
    found = document(diagnose(recording, recording.start_us, recording.end_us + 1))["incidents"]
    for one in found:
        for cause in one["causes"]:
            del cause["fix"]  # it names the recording's place
    return list(found)


def test_on_two_cores_the_fault_is_what_it_was(tmp_path: Path) -> None:
    with fault(tmp_path / "fault") as one:
        widen(one, [], 2, tmp_path / "wide")
        with open_recording(tmp_path / "wide") as again:
            assert rows_of(again) == rows_of(one)
            assert incidents(again) == incidents(one) != []


@pytest.mark.parametrize("name", ["fork-storm", "smaps-reader"])
def test_a_real_recording_on_two_cores_is_diagnosed_as_it_was(name: str, tmp_path: Path) -> None:
    with open_recording(KEPT / f"{name}.zscope") as one:
        widen(one, [], 2, tmp_path / "wide")
        with open_recording(tmp_path / "wide") as again:
            before, after = rows_of(one), rows_of(again)
            differs = {table for table, rows in before.items() if rows != after[table]}
            assert differs <= {"counters"}  # a level that is read twice within the first tick is written once
            assert incidents(again) == incidents(one)
            assert incidents(again)[0]["causes"][0]["pattern"] == name


# --- sixteen ---------------------------------------------------------------------------------------------------------


def test_every_core_has_its_ticks_and_its_samples(tmp_path: Path) -> None:
    with spliced(tmp_path, 16, at=6) as wide:
        assert wide.node["cpus"]["online"] == list(range(16))
        assert wide.end_us == START_US + SECONDS * SECOND
        assert Counter(row["cpu"] for row in columns.records(wide.table("cores"))) == dict.fromkeys(range(16), SECONDS)
        system = totals(wide, "cores", "cpu", "system_ms")
        assert system.pop(6) == 990 * SECONDS
        assert system.pop(7) == 0
        assert set(system.values()) == {200 * SECONDS}
        taken = Counter(columns.numbers(wide.table("samples").column("cpu")).tolist())
        assert taken.pop(6) == (HZ + round(HZ * 0.05)) * SECONDS
        assert 7 not in taken
        assert taken.keys() == set(range(16)) - {6, 7}
        assert set(taken.values()) == {round(HZ * 0.5) * SECONDS}


def test_samples_lie_in_the_ticks_of_their_cores(tmp_path: Path) -> None:
    """As many as the row of the core says, second by second."""
    with spliced(tmp_path, 16) as wide:
        rows = columns.records(wide.table("samples", columns=("time", "cpu")))
        seen = Counter((row["cpu"], (row["time"] - START_US - 1) // SECOND) for row in rows)
        for row in columns.records(wide.table("cores")):
            if row["cpu"] not in (6, 7):
                assert seen[row["cpu"], (row["time"] - START_US - 1) // SECOND] == row["samples"]


def test_what_the_kernel_counts_for_the_node_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    with spliced(tmp_path, 16) as wide:
        added = counted(wide)
        assert added["pgfault"] == SECONDS * (100 + 7 * 1000)
        assert totals(wide, "counters", "series", "value")
        levels = [row for row in columns.records(wide.table("counters")) if row["value"] == 100 + 7 * 300]
        assert levels
        assert added["max"] == 262_144  # one size per kernel
        (last,) = columns.records(wide.table("census"))[-1:]
        assert (last["live"], last["dying"], last["total"]) == (50 + 7 * 20, 10, 60 + 7 * 20)


def test_pressure_is_the_mean_of_the_cores_in_use(tmp_path: Path) -> None:
    with spliced(tmp_path, 16) as wide:
        busy, calm = 1000, 7 * 2 * 500
        each = (300_000 * busy + 30_000 * calm) // (busy + calm)
        assert abs(counted(wide)["some_us"] - SECONDS * each) <= SECONDS


def test_interrupts_stay_with_their_core_and_each_tile_has_devices_of_its_own(tmp_path: Path) -> None:
    with spliced(tmp_path, 16, at=0) as wide:
        names = {row["series"]: row["name"] for row in columns.records(wide.table("series"))}
        by_irq: dict[str, set[int]] = {}
        for row in columns.records(wide.table("interrupts")):
            by_irq.setdefault(names[row["series"]], set()).add(row["cpu"])
        assert by_irq.pop("CAL") == set(range(2, 16))
        assert by_irq == {"24": {1}, **{str(24 + 1000 * tile): {2 * tile} for tile in range(1, 8)}}
        queues = columns.records(wide.table("queues"))
        assert [(row["queue"], row["irq"], row["cpus"]) for row in queues][:3] == [
            ("rx-0", 24, "1"), ("rx-1", 1024, "2"), ("rx-2", 2024, "4"),
        ]  # fmt: skip


def test_every_task_is_somebody_of_its_own(tmp_path: Path) -> None:
    with spliced(tmp_path, 16, at=6) as wide:
        tasks = columns.records(wide.table("tasks"))
        assert len({(row["pid"], row["tid"]) for row in tasks}) == len(tasks)
        assert {row["comm"] for row in tasks} == {"smaps-agent", "ksoftirqd/6", "supervisor", "pt_data_worker"}
        workers = [row for row in tasks if row["comm"] == "pt_data_worker"]
        assert len(workers) == 14
        assert len({row["ppid"] for row in workers}) == 7
        assert {row["ppid"] for row in tasks if row["pid"] == 700} == {1}


def test_events_speak_of_the_core_that_the_fault_has_now(tmp_path: Path) -> None:
    with spliced(tmp_path, 16, at=6) as wide:
        (event,) = columns.records(wide.table("events"))
        assert event["text"] == "watchdog: CPU#6 stuck"
        assert json.loads(event["fields"]) == {"cpu": 6, "pid": 700}


def test_a_late_tick_of_a_background_keeps_its_rate(tmp_path: Path) -> None:
    with spliced(tmp_path, 8, late=True) as wide:
        rows = [row for row in columns.records(wide.table("cores")) if row["cpu"] == 0]
        assert [row["interval_us"] for row in rows] == [SECOND] * SECONDS
        assert {row["system_ms"] for row in rows} == {200}
        assert counted(wide)["pgfault"] == SECONDS * (100 + 3 * 1000)


def test_a_short_tick_of_the_fault_holds_no_whole_second_of_the_others(tmp_path: Path) -> None:
    """A recorder's first and last ticks are short: what a core did in a second is too much for a fifth of one."""
    node = Node()
    ends_us = [200_000, *(200_000 + second * SECOND for second in range(1, 9)), 8_300_000]
    pages = node.series("vmstat", "pgfault")
    for begin, end in zip([0, *ends_us], ends_us, strict=False):
        for cpu in (0, 1):
            node.core(START_US + end, cpu, interval_us=end - begin, user=0, wait_us=None)
        node.count(START_US + end, pages, 1)
    write_segment(tmp_path / "short", node.tables)
    with open_recording(tmp_path / "short") as one, background(tmp_path / "background") as other:
        widen(one, [other], 6, tmp_path / "wide", at=0)
    with open_recording(tmp_path / "wide") as wide:
        for row in columns.records(wide.table("cores")):
            if row["cpu"] > 1:
                assert row["system_ms"] * 1000 == pytest.approx(0.2 * row["interval_us"], rel=0.1)
                assert row["samples"] * SECOND == pytest.approx(50 * row["interval_us"], rel=0.1)
        sampled = len(columns.numbers(wide.table("samples").column("cpu")))
        assert 4 * 8 * round(HZ * 0.5) <= sampled <= 4 * 8.3 * round(HZ * 0.5)
        assert counted(wide)["pgfault"] == pytest.approx(2 * 8.3 * 1000, rel=0.03)


def test_a_part_of_a_background_brings_its_part_of_the_counts(tmp_path: Path) -> None:
    """Three cores beside the fault: one whole background, and half of one."""
    with spliced(tmp_path, 5) as wide:
        assert counted(wide)["pgfault"] == SECONDS * (100 + 1500)
        assert len(set(columns.numbers(wide.table("cores").column("cpu")).tolist())) == 5


def test_copies_of_a_background_do_not_do_the_same_at_once(tmp_path: Path) -> None:
    node = Node()
    task = node.task(9, "burst")
    for second in range(10):
        samples(node, LATER_US, second, 0, task, "do_syscall_64", 1.0 if second == 4 else 0.0)
        for cpu in (0, 1):
            node.core(LATER_US + (second + 1) * SECOND, cpu, user=1000 if second == 4 else 0)
    write_segment(tmp_path / "burst", node.tables, start_us=LATER_US)
    with fault(tmp_path / "fault") as one, open_recording(tmp_path / "burst") as other:
        widen(one, [other], 22, tmp_path / "wide")
    with open_recording(tmp_path / "wide") as wide:
        rows = columns.records(wide.table("cores"))
        at_once = Counter(row["time"] for row in rows if row["user_ms"] == 1000)
        assert max(at_once.values()) <= 4
        assert np.std(list(at_once.values())) < 3


def test_copies_of_one_job_begin_together(tmp_path: Path) -> None:
    with background(tmp_path / "background") as other:
        source = Source(other)
        phases = {tile.phase for tile in lay_out(source, [source], 64, 0, 2.0)}
        assert phases == {0, 1, 2}
        assert len({tile.phase for tile in lay_out(source, [source], 64, 0)}) == LOOP_S


def test_a_gap_that_began_before_the_recording_is_not_known(tmp_path: Path) -> None:
    """A core that sleeps for three seconds is reported as a gap when it wakes; a copy that begins with that moment has
    not seen it sleep, and idle time would not explain the gap."""
    node = Node()
    task = node.task(9, "sleeper")
    for second in range(10):
        busy = 1.0 if second % 4 == 3 else 0.0
        for cpu in (0, 1):
            samples(node, LATER_US, second, cpu, task, "do_syscall_64", busy)
            gap_us = 3_000_000 if busy and second > 3 else 10_000 if busy else 0
            figures = {"samples": 99 if busy else 0, "idle_samples": 0, "expected_samples": 99, "max_gap_us": gap_us}
            node.core(LATER_US + (second + 1) * SECOND, cpu, user=990 if busy else 0, **figures)
    write_segment(tmp_path / "sleeper", node.tables, start_us=LATER_US)
    with fault(tmp_path / "fault") as one, open_recording(tmp_path / "sleeper") as other:
        widen(one, [other], 32, tmp_path / "wide")
    with open_recording(tmp_path / "wide") as wide:
        cpus = {symptom["cpu"] for one in incidents(wide) for symptom in one["symptoms"] if symptom["kind"] == "stall"}
        assert cpus == set()


def test_a_long_recording_has_several_segments_that_explain_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zombiescope.lab.wide.splice.SEGMENT_US", 5 * SECOND)
    with spliced(tmp_path, 4) as wide:
        assert len(wide.segments) == 3
        assert not wide.damage
        for segment in wide.segments:
            stacks = set(columns.numbers(segment.rows(_table("stacks"), None, None, None).column("stack")).tolist())
            used = columns.numbers(segment.rows(_table("samples"), None, None, None).column("stack"))
            assert set(used.tolist()) <= stacks
        assert not [gap for gap in wide.gaps() if gap.source == "recorder"]


def _table(name: str) -> Any:
    from zombiescope.store import schema

    return schema.BY_NAME[name]


# --- what cannot be spliced ------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    with fault(tmp_path / "fault") as one, background(tmp_path / "background") as other:
        with pytest.raises(WidenError, match="nothing to do"):
            widen(one, [], 4, tmp_path / "wide")
        with pytest.raises(WidenError, match="do not fit into 4 from core 3 on"):
            widen(one, [other], 4, tmp_path / "wide", at=3)
        with pytest.raises(WidenError, match="name 1 to"):
            widen(one, [other], 1 << 20, tmp_path / "wide")
        other.node["hz"] = 49
        with pytest.raises(WidenError, match=r"was recorded with 99 Hz every 1 s, .* with 49 Hz"):
            widen(one, [other], 4, tmp_path / "wide")


def test_an_import_has_no_ticks(tmp_path: Path) -> None:
    with fault(tmp_path / "fault") as one:
        one.node["imported"] = {}
        with pytest.raises(WidenError, match="was imported"):
            widen(one, [], 2, tmp_path / "wide")


def test_a_real_background_on_twice_its_cores_counts_twice(tmp_path: Path) -> None:
    """Rates of every table survive: each copy goes once through all of the recording, whatever it begins with."""
    with open_recording(KEPT / "healthy-nccl-threads.zscope") as calm:
        widen(calm, [calm], 32, tmp_path / "wide", at=0)
        with open_recording(tmp_path / "wide") as wide:
            once, twice = counted(calm), counted(wide)
            counters = {row["name"] for row in columns.records(calm.table("series")) if row["kind"] == "counter"}
            sums = {row["name"] for row in columns.records(calm.table("series")) if row["source"] != "pressure"}
            assert {name: twice[name] for name in once if name in counters & sums} == {
                name: 2 * count for name, count in once.items() if name in counters & sums
            }
            for mode in ("user_ms", "system_ms", "softirq_ms", "samples", "softirq_timer", "softnet_processed"):
                figures = (sum(totals(each, "cores", "cpu", mode).values()) for each in (calm, wide))
                assert next(figures) * 2 == next(figures)
            own = sum(totals(calm, "interrupts", "cpu", "count").values())
            assert sum(totals(wide, "interrupts", "cpu", "count").values()) == 2 * own
            seen = len(wide.table("samples")) / len(calm.table("samples"))
            assert 1.99 < seen <= 2.0  # what was sampled before the first tick is not in a copy

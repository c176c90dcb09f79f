"""Perfetto's trace, read with Perfetto's own message definitions."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # type: ignore[import-untyped]  # it ships no types
from tests.helpers import truth
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.schedule import ran, softirq_waited, waited, watched

from zombiescope.query.exports import perfetto
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import Recording, open_recording


def exported(recording: Recording) -> tuple[Any, ExportSamples]:
    samples = ExportSamples(Selection(recording, recording.start_us, recording.end_us + 1, Filters()))
    out = io.BytesIO()
    perfetto.write(samples, out)
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(out.getvalue())
    return trace, samples


def stacks(trace: Any) -> Counter[tuple[int, int, int, int, tuple[str, ...]]]:
    """(time in us, core, pid, tid, names from the outermost) of each sample; every id is known when it is used."""
    names: dict[int, str] = {}
    frames: dict[int, str] = {}
    known: dict[int, tuple[str, ...]] = {}
    found: Counter[tuple[int, int, int, int, tuple[str, ...]]] = Counter()
    for packet in trace.packet:
        data = packet.interned_data
        names |= {each.iid: each.str.decode() for each in data.function_names}
        frames |= {each.iid: names[each.function_name_id] for each in data.frames}
        known |= {each.iid: tuple(frames[one] for one in each.frame_ids) for each in data.callstacks}
        if packet.HasField("perf_sample"):
            one = packet.perf_sample
            stack = known[one.callstack_iid]
            found[packet.timestamp // 1000, one.cpu, one.pid, one.tid, stack] += 1
    return found


def test_every_sample_comes_with_its_stack_its_thread_and_its_core(recording: Recording) -> None:
    trace, samples = exported(recording)
    found = stacks(trace)
    expected = Counter(
        (row.time_us, row.cpu, row.pid, row.tid, tuple(name for name, *_ in row.stack)) for row in truth.rows(recording)
    )
    assert sum(found.values()) == samples.count
    assert found == expected


def test_cores_are_tracks_whose_slices_do_not_overlap(recording: Recording) -> None:
    trace, _ = exported(recording)
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    cores = {row.cpu for row in truth.rows(recording)}
    assert set(tracks.values()) == {f"core {cpu:03d}" for cpu in cores}
    events = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            events[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event.type))
    assert set(events) == set(tracks)
    for of_core in events.values():
        assert [at for at, _ in of_core] == sorted(at for at, _ in of_core)
        assert [kind for _, kind in of_core] == [perfetto.SLICE_BEGIN, perfetto.SLICE_END] * (len(of_core) // 2)


def test_threads_have_names_and_times_are_of_the_wall_clock(recording: Recording) -> None:
    trace, samples = exported(recording)
    (tree,) = [packet.process_tree for packet in trace.packet if packet.HasField("process_tree")]
    named = {thread.tid: thread.name for thread in tree.threads}
    assert named == {
        task.tid: task.comm or "" for task in samples.tasks if task.pid is not None and task.tid is not None
    }
    (clocks,) = [packet.clock_snapshot for packet in trace.packet if packet.HasField("clock_snapshot")]
    assert clocks.primary_trace_clock == clocks.clocks[0].clock_id == perfetto.REALTIME
    first = min(packet.timestamp for packet in trace.packet if packet.HasField("perf_sample"))
    assert recording.start_us <= first // 1000 <= recording.end_us


def test_a_snapshot_of_the_schedule_is_tracks_of_runs_and_waits(tmp_path: Path) -> None:
    """Measured, to the microsecond: kubelet ran for 800 ms in which train.py and the card waited."""
    node = Node()
    kubelet, train = node.task(1893, "kubelet"), node.task(4711, "train.py")
    watched(node, 1, START_US, START_US + SECOND)
    ran(node, 1, kubelet, START_US, START_US + 800_000)
    ran(node, 1, train, START_US + 800_000, START_US + SECOND)
    waited(node, 1, train, START_US + 100_000, START_US + 800_000)
    softirq_waited(node, 1, 3, START_US + 200_000, START_US + 900_000, "eth0")
    write_segment(tmp_path, node.take())
    with open_recording(tmp_path) as found:
        trace, _ = exported(found)
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}
    spans: dict[str, list[int]] = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            at_us = packet.timestamp // 1000 - START_US
            spans[tracks[packet.track_event.track_uuid]].append(at_us)
    assert spans == {
        "core 001 schedule": [0, 800_000, 800_000, 1_000_000],
        "core 001 waits: train.py (pid 4711)": [100_000, 800_000],
        "core 001 waits: eth0": [200_000, 900_000],
    }

"""What an importer hands over is a recording that every view reads."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from zombiescope.imports.rows import FrameRow, ImportReport, SampleRows, TaskRow
from zombiescope.imports.writer import ImportWriter
from zombiescope.query import heatmap
from zombiescope.query.selection import Filters, Selection
from zombiescope.store import compact, schema
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.sample_event import SampleEvent

START = 1_760_000_000_000_000
FRAMES = [
    FrameRow("main", "train", "user"),
    FrameRow("do_syscall_64", "", "kernel"),
    FrameRow("do_idle", "", "kernel"),
    FrameRow("asm_common_interrupt", "", "kernel"),
    FrameRow("ena_io_poll", "ena", "module"),
]
WORKS, IDLES, POLLS = 0, 1, 2


def rows(
    samples: list[tuple[int, int, int, int]],
    events: tuple[SampleEvent, ...] = (SampleEvent("cpu-clock"),),
    period: array[int] | None = None,
) -> SampleRows:
    """Samples as (time_us from START, cpu, stack, event)."""
    columns = [array("q", column) for column in zip(*samples, strict=True)]
    return SampleRows(
        time_us=array("q", [START + time for time in columns[0]]),
        cpu=columns[1],
        task=array("q", [0] * len(samples)),
        stack=columns[2],
        period=period,
        event=columns[3],
        stack_lengths=array("q", [2, 1, 3]),
        stack_frames=array("q", [0, 1, 2, 2, 3, 4]),
        frames=FRAMES,
        tasks=[TaskRow(42, 43, "train", 1)],
        events=list(events),
        idle_samples=1,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "recording"


def imported(place: Path, *parts: SampleRows) -> Recording:
    store = ImportWriter(place, "far")
    outcome = ImportReport()
    for part in parts:
        store.add(part)
        outcome.idle_samples += part.idle_samples
    store.finish(outcome, ["perf.data"])
    return open_recording(place)


def whole(recording: Recording, filters: Filters | None = None) -> Selection:
    return Selection(recording, recording.start_us, recording.end_us + 1, filters or Filters())


def test_idle_cores_are_kept_and_not_shown(place: Path) -> None:
    with imported(place, rows([(0, 0, WORKS, 0), (10, 1, IDLES, 0), (20, 1, POLLS, 0)])) as recording:
        assert len(recording.table("samples")) == 3
        assert whole(recording).counts().sum() == 2
        assert whole(recording, Filters(idle=True)).counts().sum() == 3
        names = [function.name for function in whole(recording).stacks.of(POLLS)]
        assert names == ["do_idle", "asm_common_interrupt", "ena_io_poll"]


def test_the_first_of_several_events_is_shown(place: Path) -> None:
    two = (SampleEvent("cpu-clock"), SampleEvent("sched:sched_switch"))
    with imported(place, rows([(0, 0, WORKS, 0), (10, 1, POLLS, 1), (20, 1, POLLS, 1)], two)) as recording:
        assert whole(recording).counts().sum() == 1
        assert whole(recording, Filters(event="sched:sched_switch")).counts().sum() == 2
        assert whole(recording, Filters(event="cycles")).counts().sum() == 0


def test_a_weight_counts_as_many_samples(place: Path) -> None:
    part = rows([(0, -1, WORKS, 0), (0, -1, POLLS, 0)], (SampleEvent("collapsed", weighted=True),), array("q", [70, 5]))
    with imported(place, part) as recording:
        assert whole(recording).counts().tolist()[:3] == [70, 0, 5]
        assert recording.table("samples").column("cpu").null_count == 2


def test_files_that_overlap_lose_no_row_when_a_window_is_read(place: Path) -> None:
    long = rows([(0, 0, WORKS, 0), (60_000_000, 0, WORKS, 0)])
    short = rows([(1_000_000, 1, POLLS, 0), (2_000_000, 1, POLLS, 0)])
    with imported(place, long, short) as recording:
        window = Selection(recording, START + 50_000_000, START + 70_000_000)
        assert window.counts().sum() == 1
        assert recording.gaps() == []


def test_it_survives_compaction(place: Path) -> None:
    two = (SampleEvent("cpu-clock"), SampleEvent("sched:sched_switch"))
    first = rows([(0, 0, WORKS, 0), (10, 1, IDLES, 0)], two)
    second = rows([(30, 0, POLLS, 1), (40, 1, IDLES, 0)], two)
    imported(place, first, second).close()
    compact.compact(place / "node=far")
    with open_recording(place) as recording:
        assert recording.manifests
        assert not recording.segments
        assert whole(recording).counts().sum() == 1
        assert whole(recording, Filters(event="sched:sched_switch")).counts().sum() == 1
        assert whole(recording, Filters(idle=True, event="cpu-clock")).counts().sum() == 3


def test_a_second_import_stands_beside_the_first(place: Path) -> None:
    imported(place, rows([(0, 0, WORKS, 0)])).close()
    with imported(place, rows([(0, 5, WORKS, 0)])) as recording:
        assert len(recording.table("samples")) == 2
        assert recording.node["cpus"]["online"] == [0, 5]
        assert recording.node["imported"]["files"] == ["perf.data", "perf.data"]


def test_tables_without_ids_are_taken_as_they_are(place: Path) -> None:
    store = ImportWriter(place, "far")
    store.add_table(schema.EVENTS, [(START, "nic_reset", "kernel", "critical", "ena: reset", "{}")])
    store.finish(ImportReport(), ["dmesg.txt"])
    with open_recording(place) as recording:
        assert recording.table("events").column("kind").to_pylist() == ["nic_reset"]


def test_what_only_a_journal_covers_is_blind_for_samples(place: Path) -> None:
    second = 1_000_000
    store = ImportWriter(place, "far")
    store.add_table(
        schema.EVENTS,
        [(START - at * second, "restart", "systemd", "warning", "again", "{}") for at in (3600, 1800, 0)],
    )
    store.add(rows([(at * second, 0, WORKS, 0) for at in range(30)]))
    store.finish(ImportReport(), ["journal.txt", "perf.data"])
    with open_recording(place) as recording:
        assert heatmap.blind(whole(recording)) == ((START - 3600 * second, START),)
        assert heatmap.blind(Selection(recording, START, START + 20 * second, Filters())) == ()

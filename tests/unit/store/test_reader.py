"""Reading a recording: windows, ids over several parts, holes, and nodes that are not what they should be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.recordings import BOOT, SECOND, START_US, contents, write_recording, write_segment

from zombiescope.store import compact, schema
from zombiescope.store.reader import open_recording
from zombiescope.store.store import NotARecordingError


def test_every_sample_is_read_once(tmp_path: Path) -> None:
    written = write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        samples = recording.table("samples")
    times = [time.timestamp() for time in samples.column("time").to_pylist()]
    assert len(times) == written.samples
    assert times == sorted(times)


def test_window_is_half_open_and_exact(tmp_path: Path) -> None:
    write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        every = recording.numpy("cores", columns=["time"])["time"].astype(np.int64)
        start_us, end_us = START_US + 19 * SECOND, START_US + 23 * SECOND
        window = recording.numpy("cores", start_us, end_us, ["time"])["time"].astype(np.int64)
    assert list(window) == [time for time in every if start_us <= time < end_us]
    assert start_us in window
    assert end_us not in window


def test_joins_on_ids_alone_are_right_over_segments(tmp_path: Path) -> None:
    # GIVEN segments that number their stacks and tasks each for itself
    written = write_recording(tmp_path, segment_s=7)
    assert written.incident
    with open_recording(tmp_path) as recording:
        # WHEN the samples of the bad core are joined with names by id
        samples = contents(recording)["samples"]
    # THEN all of them are kubelet's walk, in every segment
    bad = [
        (task, stack)
        for time, cpu, task, stack, *_ in samples
        if cpu == written.incident.cpu and written.incident.from_us <= time.timestamp() * 1e6 < written.incident.to_us
    ]
    assert len(bad) > 500
    assert {task[2] for task, _ in bad} == {"kubelet"}
    assert all("mem_cgroup_nr_lru_pages" in [frame[0] for frame in stack] for _, stack in bad)


def test_a_later_task_row_replaces_the_earlier(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=10)
    with open_recording(tmp_path) as recording:
        tasks = recording.table("tasks").to_pylist()
    assert len(tasks) == len({task["task"] for task in tasks}) == len({task["pid"] for task in tasks})
    assert all(task["exe"] for task in tasks)


def test_ids_are_small_enough_to_index_arrays(tmp_path: Path) -> None:
    write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        stacks = recording.numpy("stacks", columns=["stack"])["stack"]
    assert sorted(stacks) == list(range(len(stacks)))


def test_columns_that_were_not_measured_are_nan(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5)
    with open_recording(tmp_path) as recording:
        cores = recording.numpy("cores", columns=["run_us", "system_ms", "time"])
    assert np.isnan(cores["run_us"]).all()
    assert cores["system_ms"].dtype == np.int64
    assert cores["time"].dtype == np.dtype("datetime64[us]")


def test_an_unknown_table_or_column_names_those_there_are(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5)
    with open_recording(tmp_path) as recording:
        with pytest.raises(KeyError, match="samples"):
            recording.table("sample")
        with pytest.raises(KeyError, match="system_ms"):
            recording.table("cores", columns=["sys"])


def test_pandas_gives_the_same_rows(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5)
    with open_recording(tmp_path) as recording:
        frame = recording.pandas("events")
        assert list(frame["kind"]) == recording.table("events").column("kind").to_pylist()


def test_tables_have_the_names_that_other_libraries_use(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5)
    with open_recording(tmp_path) as recording:
        assert len(recording.to_pandas("cores")) == len(recording.to_numpy("cores")["cpu"])
        assert hasattr(recording.table("cores"), "__arrow_c_stream__")


def test_no_table_imports_pandas(tmp_path: Path) -> None:
    import subprocess
    import sys

    written = write_recording(tmp_path, rollup_days=1)
    compact.compact(written.node_dir, [written.segments[0].name])
    program = f"""
import sys
from zombiescope.store import schema
from zombiescope.store import compact, schema
from zombiescope.store.reader import open_recording
with open_recording({str(tmp_path)!r}) as recording:
    for name in schema.BY_NAME:
        recording.numpy(name, {START_US + SECOND}, {START_US + 45 * SECOND})
    recording.gaps()
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- holes --------------------------------------------------------------------------------------------------


def test_no_gaps_in_an_unbroken_recording(tmp_path: Path) -> None:
    write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        assert recording.gaps() == []


@pytest.mark.parametrize(
    ("boot", "why"), [(BOOT, "the recorder was not running"), ("another", "the node was restarted")]
)
def test_time_between_two_runs_is_a_gap(tmp_path: Path, boot: str, why: str) -> None:
    first = write_recording(tmp_path, seconds=20)
    second = write_recording(tmp_path, seconds=20, start_us=first.end_us + 2 * SECOND, boot=boot)
    with open_recording(tmp_path) as recording:
        gaps = recording.gaps()
    assert [(gap.from_us, gap.to_us, gap.source, gap.why) for gap in gaps] == [
        (first.end_us, second.start_us, "recorder", why)
    ]


def test_segments_that_were_removed_are_a_gap(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=60, segment_s=20)
    written.segments[1].unlink()
    with open_recording(tmp_path) as recording:
        (gap,) = recording.gaps()
    assert gap.why == "not kept: the segments in between were removed"
    assert gap.to_us - gap.from_us == 20 * SECOND


def test_a_source_that_stays_blind_is_one_gap(tmp_path: Path) -> None:
    gap = ("systemd", "no D-Bus")
    for seq in range(3):
        start_us = START_US + seq * 20 * SECOND
        rows = [
            (start_us + 1, start_us + 20 * SECOND - 1, *gap),
            (start_us + 5 * SECOND, start_us + 6 * SECOND, "kmsg", "x"),
        ]
        nothing = [None] * (len(schema.CORES.names) - 3)
        cores = [(start_us + (second + 1) * SECOND, SECOND, 0, *nothing) for second in range(20)]
        write_segment(tmp_path, {"gaps": rows, "cores": cores}, start_us=start_us, seq=seq)
    with open_recording(tmp_path) as recording:
        gaps = recording.gaps()
    assert [(gap.source, (gap.to_us - gap.from_us) // SECOND) for gap in gaps] == [
        ("systemd", 59), ("kmsg", 1), ("kmsg", 1), ("kmsg", 1),
    ]  # fmt: skip


# --- several nodes, no node ---------------------------------------------------------------------------------


def test_one_of_several_nodes_must_be_named(tmp_path: Path) -> None:
    write_recording(tmp_path, node="a", seconds=5)
    write_recording(tmp_path, node="b", seconds=5)
    with pytest.raises(NotARecordingError, match="a, b"):
        open_recording(tmp_path)
    with open_recording(tmp_path, "b") as recording:
        assert recording.name == "b"
    with pytest.raises(NotARecordingError, match="no node c"):
        open_recording(tmp_path, "c")


def test_a_node_folder_can_be_opened_itself(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    with open_recording(written.node_dir) as recording:
        assert recording.name == "lab"
        assert len(recording.table("samples")) == written.samples


def test_nothing_there_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(NotARecordingError, match="zombiescope record"):
        open_recording(tmp_path / "nowhere")
    with pytest.raises(NotARecordingError, match="zombiescope record"):
        open_recording(tmp_path)
    (tmp_path / "file").write_text("not a zip")
    with pytest.raises(NotARecordingError, match="is not a recording"):
        open_recording(tmp_path / "file")


def test_a_recording_without_data_has_its_start(tmp_path: Path) -> None:
    node_dir = tmp_path / "node=lab"
    (node_dir / "log").mkdir(parents=True)
    (node_dir / "node.json").write_text(json.dumps({"started_us": 17}))
    with open_recording(tmp_path) as recording:
        assert recording.start_us == recording.end_us == 17
        assert len(recording.table("samples")) == 0
        assert recording.gaps() == []


def test_a_broken_node_file_is_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    (written.node_dir / "node.json").write_text("{")
    with open_recording(tmp_path) as recording:
        assert recording.node == {}
        assert [entry.file for entry in recording.damage] == ["node.json"]
        assert len(recording.table("samples")) == written.samples


# --- while it is written ------------------------------------------------------------------------------------


def test_a_recording_shows_what_was_there_until_it_is_refreshed(tmp_path: Path) -> None:
    whole = write_recording(tmp_path / "a", seconds=10, segment_s=10)
    data = whole.segments[0].read_bytes()
    node_dir = tmp_path / "b" / "node=lab" / "log"
    node_dir.mkdir(parents=True)
    growing = node_dir / whole.segments[0].name
    growing.write_bytes(data[: len(data) // 2])
    with open_recording(tmp_path / "b") as recording:
        before = len(recording.table("samples"))
        growing.write_bytes(data)
        assert len(recording.table("samples")) == before > 0
        recording.refresh()
        assert len(recording.table("samples")) == whole.samples
        assert recording.damage[1:] == []


def test_reaching_back_adds_what_came_before_and_changes_nothing_that_was_open(tmp_path: Path) -> None:
    # GIVEN a recording of which only the end was opened, and whose newest segment grows meanwhile
    written = write_recording(tmp_path, seconds=40, segment_s=10)
    growing = written.segments[-1]
    data = growing.read_bytes()
    growing.write_bytes(data[: len(data) * 2 // 3])
    with open_recording(tmp_path, since_us=START_US + 25 * SECOND) as recording:
        before = [(row["time"], row["task"], row["stack"]) for row in recording.table("samples").to_pylist()]
        start_us, end_us = recording.start_us, recording.end_us
        growing.write_bytes(data)
        # WHEN it reaches back
        recording.reach_back()
        after = [(row["time"], row["task"], row["stack"]) for row in recording.table("samples").to_pylist()]
        # THEN what was there is there as it was, with the ids that it had, and no later
        assert (recording.start_us < start_us, recording.end_us) == (True, end_us)
        assert len(after) > len(before)
        assert after[-len(before) :] == before
        # AND the older part has names
        names = {row["stack"] for row in recording.table("stacks").to_pylist()}
        assert {stack for _, _, stack in after if stack is not None} <= names


def test_a_segment_that_is_deleted_after_opening_is_still_read(tmp_path: Path) -> None:
    written = write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        for path in written.segments:
            path.unlink()
        assert len(recording.table("samples")) == written.samples


def test_the_clock_set_back_inside_a_segment_hides_nothing(tmp_path: Path) -> None:
    # GIVEN a second segment whose clock is an hour behind the first
    first = write_recording(tmp_path, seconds=20, segment_s=20)
    back = write_recording(
        tmp_path,
        seconds=20,
        segment_s=20,
        start_us=START_US - 3600 * SECOND,
        recorder_started_us=START_US,
        first_seq=1,
    )
    with open_recording(tmp_path) as recording:
        # WHEN a window before the first segment is read THEN its segment is looked at as well
        early = [part.name for part in recording.segments if part.since_us is None]
        assert early == [f"log/{first.segments[0].name}"]
        window = recording.table("samples", back.start_us, back.end_us + 1)
        assert len(window) == back.samples

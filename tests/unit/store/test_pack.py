"""Packs: the same rows in the window, from one file, whatever form the recording had."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import Node
from tests.helpers.recordings import SECOND, START_US, contents, write_recording, write_segment

from zombiescope.query.cgroups import cgroups
from zombiescope.query.cores import cores
from zombiescope.query.history import history
from zombiescope.query.node_counters import last_value
from zombiescope.query.worst import worst_second
from zombiescope.store import compact
from zombiescope.store.pack import pack
from zombiescope.store.reader import open_recording
from zombiescope.store.store import NotARecordingError, Pack

WINDOW = (START_US + 12_345_678, START_US + 41_000_000)


@pytest.mark.parametrize("compacted", ["nothing", "some", "all"])
def test_a_pack_reads_like_the_recording(tmp_path: Path, compacted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "PART_US", 15 * SECOND)
    written = write_recording(tmp_path / "whole", segment_s=5)
    if compacted != "nothing":
        names = [path.name for path in written.segments[: 8 if compacted == "some" else None]]
        compact.compact(written.node_dir, names)
    with open_recording(tmp_path / "whole") as whole:
        size = pack(whole, *WINDOW, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as packed:
            assert contents(packed, *WINDOW) == contents(whole, *WINDOW)
            assert cores(packed, *WINDOW) == cores(whole, *WINDOW)
            assert worst_second(packed, *WINDOW) == worst_second(whole, *WINDOW)
            assert cgroups(packed, *WINDOW) == cgroups(whole, *WINDOW)
            assert packed.gaps(*WINDOW) == whole.gaps(*WINDOW) == []
            assert packed.node["packed"] == {"from_us": WINDOW[0], "to_us": WINDOW[1]}
            assert packed.name == "lab"
            assert packed.damage == []
    assert size == (tmp_path / "x.zscope").stat().st_size


def test_nothing_outside_the_window_is_in_it(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "whole", segment_s=60)
    compact.compact(written.node_dir)
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, *WINDOW, tmp_path / "x.zscope")
        every = whole.table("stacks")
    with open_recording(tmp_path / "x.zscope") as packed:
        assert packed.start_us == WINDOW[0]
        assert packed.end_us == WINDOW[1]
        assert len(packed.table("samples")) == len(packed.table("samples", *WINDOW))
        assert len(packed.table("cores", None, WINDOW[0])) == 0
        assert len(packed.table("stacks")) < len(every)
        used = set(packed.table("samples").column("stack").to_pylist())
        assert used == set(packed.table("stacks").column("stack").to_pylist())


def test_what_holds_at_the_start_comes_along(tmp_path: Path) -> None:
    def leak(second: int, path: str, dying: int) -> tuple[object, ...]:
        return (START_US + second * SECOND, path, dying, 9, 9, 0, 1, "runc", 5, None, None)

    tables: dict[str, list[tuple[Any, ...]]] = {
        "leaks": [leak(1, "/a/*", 5), leak(2, "/b/*", 1), leak(3, "/b/*", 7), leak(50, "/c/*", 1)],
        "queues": [
            (START_US + SECOND, "eth0", "rx-0", 41, "0"),
            (START_US + 2 * SECOND, "eth0", "rx-0", 41, "3"),
        ],
        "series": [(0, "probe", "stat_leaf_ns", "", "gauge"), (1, "vmstat", "pgfault", "", "counter")],
        "counters": [(START_US + SECOND, 0, 111), (START_US + 2 * SECOND, 0, 222), (START_US + SECOND, 1, 5)],
        "census": [(START_US + second * SECOND, "v2", 9, 1, 8, 0, 0, 0, 0) for second in range(1, 60)],
        "gaps": [(START_US + 5 * SECOND, START_US + 45 * SECOND, "kmsg", "overwritten")],
    }
    write_segment(tmp_path / "whole", tables)
    start_us, end_us = START_US + 40 * SECOND, START_US + 60 * SECOND
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, start_us, end_us, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as packed:
            assert [leak.path for leak in cgroups(packed).leaks] == ["/b/*", "/a/*", "/c/*"]
            assert cgroups(packed, start_us, end_us) == cgroups(whole, start_us, end_us)
            assert last_value(packed, "probe", "stat_leaf_ns", end_us) == 222
            assert last_value(packed, "vmstat", "pgfault", end_us) is None  # a counter does not hold
            assert packed.table("queues").column("cpus").to_pylist() == ["3"]
            assert packed.gaps(start_us, end_us) == whole.gaps(start_us, end_us) != []


def test_gpus_and_the_processes_on_them_come_along(tmp_path: Path) -> None:
    node = Node()
    for second in range(1, 60):
        node.gpu_second(START_US + second * SECOND, 0, 97, power_w=690)
    node.gpu(START_US + SECOND, 0)
    node.gpu(START_US + 20 * SECOND, 0, state="lost")
    node.gpu(START_US + SECOND, 1)
    node.gpu_process(START_US + SECOND, 0, 31917, "python3", start_ticks=7)
    node.gpu_process(START_US + SECOND, 1, 31918, "python3", start_ticks=8)
    node.gpu_process(START_US + 9 * SECOND, 1, 31918, "python3", start_ticks=8, ended=True)
    write_segment(tmp_path / "whole", node.tables)
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, START_US + 40 * SECOND, START_US + 60 * SECOND, tmp_path / "x.zscope")
    with open_recording(tmp_path / "x.zscope") as packed:
        assert packed.table("gpus").column("state").to_pylist() == ["ok", "lost"]
        assert packed.table("gpu_processes").column("pid").to_pylist() == [31917]
        assert packed.table("gpu_seconds").column("utilisation_samples").to_pylist() == [[97] * 5] * 20


def test_a_window_that_starts_in_a_hole_says_so(tmp_path: Path) -> None:
    first = write_recording(tmp_path / "whole", seconds=20)
    second = write_recording(tmp_path / "whole", seconds=20, start_us=first.end_us + 60 * SECOND)
    start_us = first.end_us + 30 * SECOND
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, start_us, second.end_us, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as packed:
            assert packed.gaps(start_us) == whole.gaps(start_us)
            assert packed.start_us == start_us


def test_rollups_come_along(tmp_path: Path) -> None:
    write_recording(tmp_path / "whole", rollup_days=3)
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, *WINDOW, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as packed:
            assert history(packed) == history(whole) != []


def test_a_pack_of_a_pack(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "whole")
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, written.start_us, written.end_us + 1, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as once:
            pack(once, *WINDOW, tmp_path / "y.zscope")
            with open_recording(tmp_path / "y.zscope") as twice:
                assert contents(twice, *WINDOW) == contents(whole, *WINDOW)


def test_two_boots_stay_apart(tmp_path: Path) -> None:
    first = write_recording(tmp_path / "whole", seconds=20)
    write_recording(tmp_path / "whole", seconds=20, start_us=first.end_us + 9 * SECOND, boot="later", dying=1)
    with open_recording(tmp_path / "whole") as whole:
        window = (whole.start_us, whole.end_us + 1)
        pack(whole, *window, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as packed:
            assert packed.gaps() == whole.gaps() != []
            assert cgroups(packed).memory == cgroups(whole).memory
            assert contents(packed, *window) == contents(whole, *window)


def test_an_empty_window_leaves_no_file(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "whole", seconds=10)
    with open_recording(tmp_path / "whole") as whole, pytest.raises(ValueError, match="nothing was recorded"):
        pack(whole, written.end_us + 60 * SECOND, written.end_us + 70 * SECOND, tmp_path / "x.zscope")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_members_are_stored_and_readable_by_other_programs(tmp_path: Path) -> None:
    write_recording(tmp_path / "whole", seconds=10)
    with open_recording(tmp_path / "whole") as whole:
        pack(whole, START_US, START_US + 10 * SECOND, tmp_path / "x.zscope")
    with zipfile.ZipFile(tmp_path / "x.zscope") as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert all(info.filename.startswith("node=lab/") for info in archive.infolist())


def test_a_deflated_zip_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("node=lab/node.json", "{}" * 100)
    store = Pack(tmp_path / "x.zip")
    with pytest.raises(NotARecordingError, match="deflated"):
        store.open("node=lab/node.json")
    store.close()

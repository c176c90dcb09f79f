"""Pressure of cgroups: what was added since the last reading, absent on cgroup v1, missing where PSI is off."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.source_bench import SourceBench

from zombiescope.recorder.sources.cgroup_pressure import MOST, SOURCE, CgroupPressure

PATH = "/kubepods.slice/pod1"
LINES = "some avg10=1.00 avg60=1.00 avg300=1.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"


def put(directory: Path, **totals: tuple[int, int]) -> None:
    """Resource -> some and full, in microseconds."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "cgroup.controllers").write_text("cpu io memory\n")
    for resource, (some, full) in totals.items():
        (directory / f"{resource}.pressure").write_text(LINES.format(some, full))


def test_what_was_waited_since_the_last_reading_is_counted(tmp_path: Path) -> None:
    # GIVEN a cgroup that waits for its disk
    bench = SourceBench(CgroupPressure, tmp_path, {PATH: str(tmp_path / "pod1")})
    put(tmp_path / "pod1", io=(1_000, 500), memory=(70, 7), cpu=(9, 0))
    bench.tick(100)
    assert bench.counts == []
    # WHEN ten seconds later it has waited more
    put(tmp_path / "pod1", io=(4_001_000, 2_000_500), memory=(90, 7), cpu=(10, 0))
    bench.tick(110)
    # THEN the difference is written; what `cgroup_stats` has is not written again, nor what did not move
    assert sorted(bench.counts) == [
        (SOURCE, "io_full_us", PATH, 2_000_000),
        (SOURCE, "io_some_us", PATH, 4_000_000),
    ]
    assert bench.gauges == [(SOURCE, "cgroups", None, 1)] * 2
    assert bench.missing == []


def test_a_counter_that_began_again_says_nothing(tmp_path: Path) -> None:
    bench = SourceBench(CgroupPressure, tmp_path, {PATH: str(tmp_path)})
    put(tmp_path, io=(5_000, 5_000))
    bench.tick(100)
    put(tmp_path, io=(10, 10))
    bench.tick(110)
    assert bench.counts == []


def test_on_cgroup_v1_nothing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "memory.limit_in_bytes").write_text("1\n")
    bench = SourceBench(CgroupPressure, tmp_path, {PATH: str(tmp_path)})
    bench.tick(100)
    assert (bench.missing, bench.counts) == ([], [])


def test_where_psi_is_off_it_is_missing_with_the_way_to_get_it(tmp_path: Path) -> None:
    put(tmp_path)
    bench = SourceBench(CgroupPressure, tmp_path, {PATH: str(tmp_path)})
    bench.tick(100)
    assert bench.missing == [("cgroup pressure", "no cgroup has pressure files", "boot with psi=1 (CONFIG_PSI)")]


def test_the_cost_is_bounded_however_many_cgroups_there_are(tmp_path: Path) -> None:
    for number in range(MOST + 10):
        put(tmp_path / str(number), io=(1, 1))
    leaves = {f"/{number}": str(tmp_path / str(number)) for number in range(MOST + 10)}
    bench = SourceBench(CgroupPressure, tmp_path, leaves)
    bench.tick(100)
    assert bench.gauges == [(SOURCE, "cgroups", None, MOST)]

"""A copy of /proc/cgroups."""

from __future__ import annotations

from zombiescope.imports import proc_cgroups
from zombiescope.imports.rows import ImportReport

COPY = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t240\t1\nmemory\t4\t68680\t1\n"


def test_alone_it_tells_how_many_there_are() -> None:
    outcome = ImportReport()
    assert proc_cgroups.read(COPY, 7, None, outcome) == [(7, "v1", 68680, None, None, None, None, None, None)]
    assert any("not known without a list" in note for note in outcome.notes)


def test_with_a_list_of_directories_it_tells_how_many_are_dead() -> None:
    live = proc_cgroups.live_directories(
        "/sys/fs/cgroup/cpu\n/sys/fs/cgroup/memory\n/sys/fs/cgroup/memory/a\n/sys/fs/cgroup/memory/a/\n/etc\n"
    )
    assert live == 2
    (row,) = proc_cgroups.read(COPY, 7, 240, ImportReport())
    assert row[2:5] == (68680, 240, 68440)
    assert proc_cgroups.live_directories("/sys/fs/cgroup\n/sys/fs/cgroup/system.slice\n") == 2


def test_what_cannot_be_read_is_counted() -> None:
    outcome = ImportReport()
    assert proc_cgroups.read("#subsys_name\nmemory 0 many 1\n", 7, None, outcome) == []
    assert sum(outcome.skipped.values()) == 2
    assert proc_cgroups.read("memory\t0\t12\t1\n", 7, None, outcome)[0][1] == "v2"

"""Collapsed stacks in the dialects that people have."""

from __future__ import annotations

import json

from zombiescope.imports.collapsed import CollapsedImport, host_in
from zombiescope.imports.rows import ImportReport, SampleRows


def read(text: str | bytes, piece: int = 1 << 20) -> tuple[SampleRows, ImportReport]:
    data = text if isinstance(text, bytes) else text.encode()
    outcome = ImportReport()
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    (rows,) = CollapsedImport(outcome).read(pieces)
    return rows, outcome


def stacks(rows: SampleRows) -> list[tuple[list[str], int]]:
    ends = [sum(rows.stack_lengths[: at + 1]) for at in range(len(rows.stack_lengths))]
    assert rows.period is not None
    return [
        (
            [rows.frames[at].name for at in rows.stack_frames[ends[stack] - rows.stack_lengths[stack] : ends[stack]]],
            weight,
        )
        for stack, weight in zip(rows.stack, rows.period, strict=True)
    ]


def kinds(rows: SampleRows) -> dict[str, str]:
    return {frame.name: frame.kind for frame in rows.frames}


def test_names_may_hold_spaces() -> None:
    rows, outcome = read("main;operator new(unsigned long);a b 3\nmain 4\n\nmain;x 12345678901234\n", piece=5)
    assert stacks(rows) == [
        (["main", "operator new(unsigned long)", "a b"], 3),
        (["main"], 4),
        (["main", "x"], 12345678901234),
    ]
    assert rows.events[0].weighted
    assert not outcome.skipped


def test_marks_say_the_kind() -> None:
    rows, _ = read("app;main;do_syscall_64_[k];Foo_[j];bar_[i] 3\npy;f.py_[p] 1\n")
    assert kinds(rows) == {"app": "unknown", "main": "unknown", "do_syscall_64": "kernel", "Foo": "jit", "bar": "jit",
                           "py": "unknown", "f.py": "python"}  # fmt: skip


def test_the_kernel_begins_at_its_doors() -> None:
    rows, _ = read("app;main;do_syscall_64;vfs_read 3\nswapper;cpu_startup_entry;do_idle 40\nswapper;do_idle_not 2\n")
    assert kinds(rows)["vfs_read"] == "kernel"
    assert kinds(rows)["main"] == "unknown"
    assert rows.idle_samples == 40


def test_what_gprofiler_writes() -> None:
    head = {"metadata": {"hostname": "n7"}, "container_names_enabled": True, "application_metadata_enabled": True}
    outcome = ImportReport()
    importer = CollapsedImport(outcome)
    lines = f"# {json.dumps(head)}\n0;my-container;python3;main;f_[k] 3\n;;kubelet;g 1\n1;c;appid: x;java;h 1\n"
    (rows,) = importer.read([lines.encode()])
    assert host_in(lines) == "n7"
    assert [rows.tasks[at].comm for at in rows.task] == ["python3", "kubelet", "java"]
    assert not outcome.skipped


def test_fractions_zero_and_too_much() -> None:
    rows, outcome = read("a 1.6\nb 0.2\nc 1e3\nd 99999999999999999999999\ne -4\nno count here\n")
    assert stacks(rows) == [(["a"], 2), (["c"], 1000)]
    assert outcome.skipped == {
        "stacks whose count is 0": 1, "stacks whose count is beyond 2^53": 1, "lines that are not a collapsed stack": 2,
    }  # fmt: skip
    assert any("rounded" in note for note in outcome.notes)


def test_of_two_counts_the_first_is_taken() -> None:
    rows, outcome = read("a;b 10 20\na;c 3 4\n")
    assert stacks(rows) == [(["a", "b"], 10), (["a", "c"], 3)]
    assert any("two counts" in note for note in outcome.notes)


def test_bytes_that_are_no_utf8() -> None:
    rows, _ = read(b"a\xff;b 1\r\n")
    assert stacks(rows) == [(["a\\xff", "b"], 1)]

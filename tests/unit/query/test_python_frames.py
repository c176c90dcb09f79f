"""Python functions on the stacks of samples: whose, when, and what they replace."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.query import python_frames
from zombiescope.query.exports import collapsed, firefox, otlp, pprof, speedscope
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.python_frames import NEAR_US
from zombiescope.query.selection import EVERYTHING, Filters, Selection
from zombiescope.store.compact import compact
from zombiescope.store.reader import Recording, open_recording

TRAINER, WORKER = 70, 71
MILLISECOND = 1000


@pytest.fixture
def node() -> Node:
    """A trainer whose machine's stack reaches the interpreter, and one of its threads whose does not."""
    made = Node()
    outer, run = made.frame("main", "user", "python3.11"), made.frame("_PyEval_EvalFrameDefault", "user", "python3.11")
    inner, kernel = made.frame("list_sort", "user", "python3.11"), made.frame("do_syscall_64")
    train, step = made.frame("train", "python", "job/train.py"), made.frame("step", "python", "job/train.py")
    task, thread = made.task(TRAINER, "python3"), made.task(TRAINER, "python3", tid=WORKER)
    whole, cut = made.stack([outer, run, inner, kernel]), made.stack([inner])
    made.python(START_US + SECOND, task_tid=TRAINER, frames=[train, step], lines=[10, 20],
                until_us=START_US + 2 * SECOND, looks=11)  # fmt: skip
    made.python(START_US + SECOND, task_tid=WORKER, frames=[train], lines=[11], until_us=START_US + 3 * SECOND, looks=3)
    for at_ms in range(0, 4000, 10):
        made.sample(START_US + at_ms * MILLISECOND, 0, task, whole)
        made.sample(START_US + at_ms * MILLISECOND, 1, thread, cut)
    return made


@pytest.fixture
def recording(node: Node, tmp_path: Path) -> Path:
    write_segment(tmp_path / "rec", node.tables)
    return tmp_path / "rec"


def stacks(recording: Recording, filters: Filters = EVERYTHING, span_s: tuple[float, float] = (0, 4)) -> Counter[str]:
    first, last = (START_US + round(second * SECOND) for second in span_s)
    selection = Selection(recording, first, last, filters)
    counts, known = selection.counts(), selection.stacks
    return Counter({
        ";".join(function.name for function in known.of(row)): int(count)
        for row, count in enumerate(counts.tolist()) if count
    })  # fmt: skip


NATIVE = "main;_PyEval_EvalFrameDefault;list_sort;do_syscall_64"


def test_the_interpreter_gives_way_to_what_it_interprets(recording: Path) -> None:
    with open_recording(recording) as opened:
        found = stacks(opened)
    assert set(found) == {NATIVE, "train;step;list_sort;do_syscall_64", "list_sort", "train;list_sort"}
    assert found["train;step;list_sort;do_syscall_64"] == 111, "a second, and 50 ms on either side of it"
    assert found["train;list_sort"] == 11 + 11, "looks a second apart: the first and the last"
    assert sum(found.values()) == 800


def test_a_look_further_away_than_fifty_milliseconds_says_nothing(recording: Path) -> None:
    assert NEAR_US == 50_000
    with open_recording(recording) as opened:
        early = stacks(opened, span_s=(0, 0.94))
        late = stacks(opened, Filters(tids=frozenset({TRAINER})), span_s=(2.06, 4))
    assert set(early) == {NATIVE, "list_sort"}
    assert set(late) == {NATIVE}


def test_with_and_without(recording: Path) -> None:
    with open_recording(recording) as opened:
        only, without = stacks(opened, Filters(python=True)), stacks(opened, Filters(python=False))
    assert set(only) == {"train;step;list_sort;do_syscall_64", "train;list_sort"}
    assert without == {NATIVE: 400, "list_sort": 400}


def test_a_function_is_found_by_its_name(recording: Path) -> None:
    import re

    with open_recording(recording) as opened:
        assert sum(stacks(opened, Filters(match=re.compile("^step$"))).values()) == 111
        assert sum(stacks(opened, Filters(match=re.compile("^step$"), python=False)).values()) == 0


def test_it_is_the_same_when_the_log_has_become_parquet(recording: Path) -> None:
    with open_recording(recording) as opened:
        before = stacks(opened)
    (node_dir,) = recording.glob("node=*")
    compact(node_dir)
    with open_recording(recording) as opened:
        assert opened.manifests
        assert stacks(opened) == before


def test_windows_without_python_cost_nothing(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_recording(recording) as opened:
        monkeypatch.setattr(python_frames, "samples_in", lambda *_: pytest.fail("samples were read"))
        assert python_frames.load(opened, [(START_US, START_US + SECOND // 2)]).looks is None


def exported(recording: Recording) -> ExportSamples:
    return ExportSamples(Selection(recording, START_US, START_US + 4 * SECOND))


def test_exports_mark_them_as_python(recording: Path) -> None:
    with open_recording(recording) as opened:
        out = io.BytesIO()
        collapsed.write(exported(opened), out, annotate=True)
        assert b"train_[p];step_[p];list_sort;do_syscall_64_[k]" in out.getvalue()
        out = io.BytesIO()
        firefox.write(exported(opened), out)
        written = gzip.decompress(out.getvalue()) if out.getvalue()[:2] == b"\x1f\x8b" else out.getvalue()
        assert "Python" in [each["name"] for each in json.loads(written)["meta"]["categories"]]
        out = io.BytesIO()
        speedscope.write(exported(opened), out)
        frames = json.loads(out.getvalue())["shared"]["frames"]
        assert {"name": "step", "file": "job/train.py"} in frames
        for module, mark in ((pprof, b"[python]"), (otlp, b"cpython")):
            out = io.BytesIO()
            module.write(exported(opened), out)
            data = gzip.decompress(out.getvalue()) if out.getvalue()[:2] == b"\x1f\x8b" else out.getvalue()
            assert mark in data
            assert b"job/train.py" in data


def test_a_thread_has_one_root_whether_a_look_was_near_or_not(tmp_path: Path) -> None:
    # GIVEN complete stacks of a thread that is looked at in the second half only
    node = Node()
    start, run = (node.frame(name, "user", "python3.11") for name in ("_start", "_PyEval_EvalFrameDefault"))
    leaf = node.frame("PjitFunction", "user", "jaxlib.so")
    task, stack = node.task(TRAINER, "python3"), node.stack([start, run, leaf])
    cut = node.stack([start, leaf])
    module = node.frame("<module>", "python", "job/jx.py")
    node.python(START_US + 2 * SECOND, task_tid=TRAINER, frames=[module], lines=[20],
                until_us=START_US + 4 * SECOND, looks=21)  # fmt: skip
    for at_ms in range(0, 4000, 10):
        node.sample(START_US + at_ms * MILLISECOND, 0, task, cut if at_ms % 100 == 0 else stack)
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as opened:
        found = stacks(opened)
    assert {name.partition(";")[0] for name in found} == {"_start"}
    assert set(found) == {
        "_start;_PyEval_EvalFrameDefault;PjitFunction", "_start;<module>;PjitFunction", "_start;PjitFunction",
    }  # fmt: skip
    assert all(name.count("_start") == 1 for name in found)

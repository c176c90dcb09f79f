"""Samples as every format gets them: equal tasks and stacks have one number, whichever part they are in."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.helpers import truth
from tests.helpers.boxes import write_boxes
from tests.helpers.truth import imported

from zombiescope.query.exports import firefox, otlp, pprof
from zombiescope.query.exports.push import slices
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.selection import Filters
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.sample_event import SampleEvent


def test_every_sample_comes_once_with_all_that_is_known(odd: Recording) -> None:
    samples = truth.samples(odd)
    found: Counter[object] = Counter()
    for batch in samples.batches():
        assert (batch.time_us[1:] >= batch.time_us[:-1]).all()
        for time, cpu, task, number in zip(
            batch.time_us.tolist(), batch.cpu.tolist(), batch.task.tolist(), samples.numbers(batch.stack), strict=True
        ):
            who = samples.tasks[task]
            functions = (samples.stacks.functions[each] for each in samples.functions(int(number)))
            stack = tuple((each.name, each.module or None, each.kind) for each in functions)
            found[time, None if cpu < 0 else cpu, who.pid, who.tid, who.comm, who.unit, stack] += 1
    assert found == Counter(map(tuple, truth.rows(odd)))
    assert samples.count == 404


def test_equal_stacks_and_tasks_of_two_parts_are_one(odd: Recording) -> None:
    samples = truth.samples(odd)
    samples.everything()
    assert samples.distinct == len(truth.STACKS) + 1, "and the one that is not known"
    assert len(samples.tasks) == len(truth.TASKS) + 1


def test_a_clock_stands_for_time_and_a_weight_for_samples(tmp_path: Path) -> None:
    events = [SampleEvent("cpu-clock:ppp"), SampleEvent("cycles"), SampleEvent("collapsed", weighted=True)]
    with imported(tmp_path, events, [0, 1, 2], [5000, 77, 12]) as recording:
        samples = truth.samples(recording, Filters(every_event=True))
        batch = samples.everything()
        assert [samples.events[each] for each in batch.event.tolist()] == [
            SampleEvent("cpu-clock:ppp"), SampleEvent("cycles"), SampleEvent("collapsed", weighted=True)
        ]  # fmt: skip
        assert samples.weights(batch).tolist() == [1, 1, 12]
        assert samples.periods(batch).tolist() == [5000, 77, 12]
        assert [event.is_clock for event in samples.events] == [True, True, False, False]
        assert samples.count == 14
        first = truth.samples(recording)
        assert len(first.everything()) == 1, "without every_event it is the first event alone"


def test_the_rate_tells_what_a_sample_stands_for(odd: Recording) -> None:
    samples = truth.samples(odd)
    assert samples.period_ns == 10_101_010
    assert set(samples.periods(samples.everything()).tolist()) == {10_101_010}


@pytest.mark.parametrize("hz", [None, 0, "fast"])
def test_a_rate_that_is_not_known_is_none(tmp_path: Path, hz: object) -> None:
    place = truth.write_odd(tmp_path)
    node = place / "node=lab" / "node.json"
    node.write_text(json.dumps(json.loads(node.read_text()) | {"hz": hz}))
    with open_recording(place) as recording:
        samples = truth.samples(recording)
        assert samples.period_ns is None
        assert set(samples.periods(samples.everything()).tolist()) == {-1}


@pytest.mark.parametrize("every_us", [1_000_000, 7_000_000, 10**9])
def test_windows_hold_every_sample_once_and_in_their_span(recording: Recording, every_us: int) -> None:
    found = list(slices(truth.samples(recording), every_us))
    times = sorted(time for window in found for time in window.rows.time_us.tolist())
    assert times == sorted(row.time_us for row in truth.rows(recording))
    starts = [window.start_us for window in found]
    assert starts == sorted(set(starts)), "no span comes twice"
    for window in found:
        assert window.end_us - window.start_us == every_us
        assert window.start_us % every_us == 0
        assert window.start_us <= window.rows.time_us.min()
        assert window.rows.time_us.max() < window.end_us


@pytest.fixture
def boxes(tmp_path: Path) -> Iterator[Recording]:
    with open_recording(write_boxes(tmp_path / "boxes")) as opened:
        yield opened


def test_a_task_is_named_by_its_container_and_pod(boxes: Recording) -> None:
    tasks = {task.comm: task for task in truth.samples(boxes).tasks}
    assert [tasks[comm].owner for comm in ("python3", "nginx", "kubelet")] == [
        "ml/train-0/main", "web", "kubelet.service"
    ]  # fmt: skip
    assert tasks["python3"].container_labels == {
        "container.name": "main",
        "container.image.name": "registry.local:5000/trainer",
        "container.image.tags": ("2",),
        "k8s.pod.name": "train-0",
        "k8s.namespace.name": "ml",
    }


@pytest.mark.parametrize(("write", "unpack"), [(pprof.write, gzip.decompress), (otlp.write, bytes)])
def test_labels_of_containers_are_in_the_files_of_others(
    boxes: Recording, write: Callable[[ExportSamples, BinaryIO], None], unpack: Callable[[bytes], bytes]
) -> None:
    out = BytesIO()
    write(truth.samples(boxes), out)
    written = unpack(out.getvalue())
    for text in (b"container.name", b"k8s.pod.name", b"k8s.namespace.name", b"container.image.name", b"train-0"):
        assert text in written


def test_a_process_of_firefox_is_of_a_container_by_name(boxes: Recording) -> None:
    out = BytesIO()
    firefox.write(truth.samples(boxes), out)
    written = gzip.decompress(out.getvalue()) if out.getvalue()[:2] == b"\x1f\x8b" else out.getvalue()
    assert b"python3 (ml/train-0/main)" in written
    assert b"cri-containerd-" not in written

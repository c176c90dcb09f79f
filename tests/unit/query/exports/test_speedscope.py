"""speedscope opens the export, and what it finds in it is what was recorded."""

from __future__ import annotations

import json
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers import truth, viewer
from tests.helpers.truth import imported

from zombiescope.query.exports import collapsed, perf_script, pprof, speedscope
from zombiescope.query.exports.formats import By
from zombiescope.store.reader import Recording
from zombiescope.store.sample_event import SampleEvent


def exported(recording: Recording, by: By = "core") -> bytes:
    out = BytesIO()
    speedscope.write(truth.samples(recording), out, by=by, title="lab <1>")
    return out.getvalue()


def document(recording: Recording, by: By = "core") -> dict[str, Any]:
    found = json.loads(exported(recording, by))
    assert isinstance(found, dict)
    return found


def stacks(found: dict[str, Any], profile: dict[str, Any]) -> list[tuple[str, ...]]:
    frames = [frame["name"] for frame in found["shared"]["frames"]]
    return [tuple(frames[each] for each in stack) for stack in profile["samples"] if stack]


@pytest.mark.parametrize("by", ["core", "process", "thread"])
def test_every_stack_and_count(odd: Recording, by: By) -> None:
    found = document(odd, by)
    counted = Counter(stack for profile in found["profiles"] for stack in stacks(found, profile))
    assert counted == truth.by_stack(truth.rows(odd))
    assert all(len(profile["samples"]) == len(profile["weights"]) for profile in found["profiles"])
    assert {"name": "do_syscall_64", "file": "[kernel.kallsyms]"} in found["shared"]["frames"]


def test_a_core_is_a_line_of_time_with_gaps(recording: Recording) -> None:
    found = document(recording)
    rows = truth.rows(recording)
    for profile in found["profiles"]:
        mine = sorted(row.time_us for row in rows if f"core {row.cpu}" == profile["name"])
        at, times = mine[0], []
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            times += [at] if stack else []
            at += weight
        assert times == mine, "a sample is drawn where it was taken"
        assert profile["unit"] == "microseconds"
        assert profile["endValue"] == sum(profile["weights"])


def test_without_a_clock_a_sample_counts(tmp_path: Path) -> None:
    with imported(tmp_path, [SampleEvent("collapsed", weighted=True)], [0, 0], [5, 7]) as recording:
        (profile,) = document(recording)["profiles"]
    assert (profile["unit"], profile["weights"], profile["name"]) == ("none", [5, 7], "core not known")


def test_speedscope_opens_it(recording: Recording, tmp_path: Path, needs: Needs) -> None:
    shown = viewer.opened(needs, tmp_path, exported(recording), "lab.speedscope.json")
    per_core = Counter(f"core {row.cpu}" for row in truth.rows(recording))
    assert set(shown) == {*per_core, ""}
    busiest = per_core.most_common(1)[0][0]
    assert shown[""].strip() == busiest
    for core, count in per_core.items():
        assert float(shown[core].removesuffix("s")) == pytest.approx(count / 99, rel=0.01)


def test_speedscope_opens_perf_script_text(odd: Recording, tmp_path: Path, needs: Needs) -> None:
    out = BytesIO()
    perf_script.write(truth.samples(odd), out)
    shown = viewer.opened(needs, tmp_path, out.getvalue(), "lab.linux-perf.txt")
    # A name that ends in a number is one of a thread to speedscope.
    threads = {(row.comm, row.pid, row.tid) for row in truth.rows(odd) if row.pid and row.comm != "Web Content 7"}
    assert {f"{comm or f':{tid}'} pid: {pid} tid: {tid}" for comm, pid, tid in threads} <= set(shown)


def test_speedscope_opens_pprof_and_collapsed(recording: Recording, tmp_path: Path, needs: Needs) -> None:
    out = BytesIO()
    pprof.write(truth.samples(recording), out)
    viewer.opened(needs, tmp_path, out.getvalue(), "cpu.pb.gz")
    out = BytesIO()
    collapsed.write(truth.samples(recording), out)
    viewer.opened(needs, tmp_path, out.getvalue(), "lab.collapsed.txt")


def test_the_viewer_fails_on_what_is_no_profile(tmp_path: Path, needs: Needs) -> None:
    with pytest.raises(AssertionError, match="did not open"):
        viewer.opened(needs, tmp_path, b'{"not": "a profile"}', "no.json")

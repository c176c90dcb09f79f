"""Healthy is quiet: recordings of what nodes do all day, made by the laboratory's healthy loads, raise no warning.

Two cores, kernel 6.18, cgroup v1, packed with --redact; other programs ran beside them on the same machine. They are
recorded again with `zombiescope lab score --only healthy-NAME --keep DIR` and `zombiescope pack --redact`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.facts import Facts
from zombiescope.lab.scenario import every
from zombiescope.store.reader import open_recording

BACKGROUNDS = Path(__file__).parents[2] / "fixtures" / "backgrounds"
RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"
LARGEST_BYTES = 300_000
WINDOW_US, STEP_US = 20_000_000, 2_700_000
WHO = {
    "collectives": {"ring-proxy-0", "ring-proxy-1"},
    "compile": {"cc1"},
    "containers": {"runtime", "sed"},
    "dataloader": {"trainer", "data-worker"},
    "pods": {"pod-stats", "prober"},
    "reading": {"file-reader", "map-reader"},
    "training": {"trainer"},
    "web": {"web-server", "web-client"},
    "writing": {"checkpointer"},
}
"""The programs that make each of them what it is."""


def packed(name: str) -> Path:
    return BACKGROUNDS / f"{name}.zscope"


def test_every_healthy_load_that_really_runs_is_kept() -> None:
    loads = {one.id.removeprefix("healthy-") for one in every() if one.kind == "healthy"}
    assert loads == WHO.keys() == {path.stem for path in BACKGROUNDS.iterdir()}
    assert all(packed(name).stat().st_size <= LARGEST_BYTES for name in loads)


@pytest.mark.parametrize("name", WHO)
def test_a_healthy_load_raises_no_warning(name: str) -> None:
    with open_recording(packed(name)) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
    said = [f"{one.severity}: {one.causes[0].summary if one.causes else one.id}" for one in found.incidents]
    assert [text for text in said if not text.startswith("info")] == []
    assert not found.blind


@pytest.mark.parametrize("name", ["compile-farm", "gpu-training", "nccl-threads", "page-cache"])
def test_no_part_of_a_real_wide_node_raises_a_warning(name: str) -> None:
    """Sixteen cores and a GPU that deliver no sample of idle cores: a window may begin in the middle of anything."""
    said = []
    with open_recording(RECORDINGS / f"healthy-{name}.zscope") as recording:
        for from_us in range(recording.start_us, recording.end_us - WINDOW_US // 2, STEP_US):
            found = diagnose(recording, from_us, min(from_us + WINDOW_US, recording.end_us + 1), live=True)
            said += [
                one.causes[0].summary if one.causes else one.id for one in found.incidents if one.severity != "info"
            ]
    assert said == []


@pytest.mark.parametrize("name", WHO)
def test_a_recording_shows_the_load_that_it_is_named_after(name: str) -> None:
    with open_recording(packed(name)) as recording:
        facts = Facts(recording, recording.start_us, recording.end_us + 1)
        assert WHO[name] <= facts.samples.comms
        assert 25 <= facts.seconds <= 70
        assert facts.cores is not None
        assert np.nanmean(facts.cores.busy) > 0.1


def test_pods_and_containers_are_counted() -> None:
    with open_recording(packed("pods")) as recording:
        assert len(Facts(recording, recording.start_us, recording.end_us).recent_containers) >= 200
    with open_recording(packed("containers")) as recording:
        made = Facts(recording, recording.start_us, recording.end_us).cgroup_rates(0, recording.end_us)
    assert made is not None
    assert 0.5 <= made[0].rate <= 2

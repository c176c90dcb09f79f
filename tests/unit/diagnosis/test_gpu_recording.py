"""A real H200: the trainer's core is shared with six busy loops for ten seconds. What the recording of it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.query import gpu_use
from zombiescope.store.reader import open_recording

STARVED = Path(__file__).parents[2] / "fixtures" / "recordings" / "gpu-starved.zscope"


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    with open_recording(STARVED) as recording:
        return diagnose(recording, recording.start_us, recording.end_us + 1)


def test_it_says_who_took_the_core_and_what_the_gpu_lost(found: Diagnosis) -> None:
    (starved,) = [one for one in found.incidents if one.causes[0].pattern == "trainer-starved"]
    assert "core 15 was taken by 6 processes of python3.11 for 10 s" in starved.causes[0].summary
    assert starved.causes[0].confidence > 0.6
    assert starved.cost is not None
    (loss,) = starved.cost.losses
    assert (loss.gpu, round(loss.usual), round(loss.now)) == (0, 14, 2)
    assert 7 <= loss.lost_s <= 10


def test_nothing_else_is_lost_on_the_gpu(found: Diagnosis) -> None:
    # GIVEN a minute and a half of training, of which ten seconds were starved
    assert sum(one.cost is not None and one.cost.lost_s > 0 for one in found.incidents) == 1


def test_its_seconds_are_all_there() -> None:
    with open_recording(STARVED) as recording:
        (series,) = gpu_use.load(recording, recording.start_us, recording.end_us + 1).values()
    measured = np.count_nonzero(~np.isnan(series.figures["utilisation"]))
    assert measured >= 0.9 * series.seconds > 80

"""Incidents of late ranks: one for each rank and cause, with the line and the native function of a hang."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.made import write_segment
from tests.unit.query.test_gpu_account import Trainer, at
from tests.unit.query.test_late_ranks import job
from tests.unit.query.test_native_waits import NCCL, SLEEP, native

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.store.reader import open_recording


def diagnosed(made: Trainer, place: Path) -> Diagnosis:
    write_segment(place, made.node.tables)
    with open_recording(place) as recording:
        return diagnose(recording, recording.start_us, recording.end_us)


def test_two_ranks_of_one_name_are_two_incidents(tmp_path: Path) -> None:
    # GIVEN two ranks that are late one after the other, as processes of the same name
    def away(rank: int, look: int) -> str:
        late = (rank == 1 and 50 <= look < 200) or (rank == 3 and 300 <= look < 450)
        return "evaluate" if look % 5 == 0 else "data" if late and look % 5 < 4 else "collective"

    found = diagnosed(job(away, seconds=50), tmp_path)
    late = [one for one in found.incidents if one.causes[0].pattern == "late-rank"]
    assert sorted(one.causes[0].culprit.pid or 0 for one in late if one.causes[0].culprit) == [801, 803]


def test_a_rank_that_is_late_for_another_reason_later_is_another_incident(tmp_path: Path) -> None:
    def away(rank: int, look: int) -> str:
        late = rank == 1 and (50 <= look < 200 or 300 <= look < 450)
        return "evaluate" if look % 5 == 0 else "collective" if not late or look % 5 > 3 else "data"

    made = job(away, seconds=50)
    made.node.wait(
        at(45), at(30), "pt_data_worker", 880, kind="stopped", resource="python3:801", state="T"
    )  # fmt: skip
    found = diagnosed(made, tmp_path)
    words = sorted(symptom.facts["cause"] for one in found.incidents for symptom in one.symptoms
                   if symptom.kind == "rank_late")  # fmt: skip
    assert words == ["data", "stopped"]


def test_a_hang_names_the_line_and_the_native_function_of_both_sides(tmp_path: Path) -> None:
    def away(rank: int, look: int) -> str:
        return "step" if (rank == 1 and look >= 100) or (look < 100 and look % 5 == 0) else "collective"

    made = job(away, seconds=45)
    for second in range(12, 45, 2):
        for rank in range(4):
            native(made, 800 + rank, SLEEP if rank == 1 else NCCL[:1], second)
    (one,) = diagnosed(made, tmp_path).incidents
    text = one.symptoms[0].text
    assert one.severity == "critical"
    assert "rank 1" in text
    assert "main, train.py:13, in clock_nanosleep (libc.so.6)" in text
    assert "train.py:14, in c10d::ProcessGroupNCCL::WorkNCCL::wait (libtorch_cuda.so)" in text

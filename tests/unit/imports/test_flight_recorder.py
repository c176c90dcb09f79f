"""Dumps of PyTorch's flight recorder: written by three ranks of PyTorch 2.13, of which rank 1 did not come to the
fourth all_reduce; and hostile ones."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cli import Cli
from tests.unit.query.test_job_report import write

from zombiescope.imports import flight_recorder
from zombiescope.imports.flight_recorder import Behind, NotADumpError

DUMPS = Path(__file__).parents[2] / "fixtures/flight_recorder"


def behind(place: Path) -> list[Behind]:
    return list(flight_recorder.behind(flight_recorder.read(path) for path in flight_recorder.files(place)))


def test_the_rank_that_did_not_come_is_one_collective_behind() -> None:
    (one,) = behind(DUMPS)
    assert (one.rank, one.waiting, one.others.sequence, one.others.name) == (1, 2, 4, "gloo:all_reduce")
    assert one.at is not None
    assert (one.at.sequence, one.at.place) == (3, "step, train.py:10")


def test_a_rank_without_a_dump_is_missing(tmp_path: Path) -> None:
    for rank in (0, 2):
        shutil.copy(DUMPS / f"trace_{rank}", tmp_path)
    (one,) = behind(tmp_path)
    assert (one.rank, one.at) == (1, None)


def test_a_rank_in_another_collective_is_told(tmp_path: Path) -> None:
    for rank in range(3):
        said = pickle.loads((DUMPS / "trace_0").read_bytes())
        if rank == 2:
            said["entries"][-1]["profiling_name"] = "gloo:broadcast"
        (tmp_path / f"trace_{rank}").write_bytes(pickle.dumps(said))
    (one,) = behind(tmp_path)
    assert (one.rank, one.at and one.at.name, one.others.name) == (2, "gloo:broadcast", "gloo:all_reduce")


def test_json_says_the_same(tmp_path: Path) -> None:
    for rank in range(3):
        said = pickle.loads((DUMPS / f"trace_{rank}").read_bytes())
        (tmp_path / f"trace_{rank}.json").write_text(json.dumps(said))
    assert [one.rank for one in behind(tmp_path)] == [1]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/zombiescope-was-here",)


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"{", pickle.dumps(Evil()), pickle.dumps([1]), pickle.dumps({"entries": 7}), pickle.dumps(3)[:-1],
     b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f."],
)  # fmt: skip
def test_what_is_no_dump_is_refused_and_runs_nothing(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace_0"
    path.write_bytes(data)
    with pytest.raises(NotADumpError):
        flight_recorder.read(path)
    assert not Path("/tmp/zombiescope-was-here").exists()


@pytest.mark.parametrize(
    "entry",
    [None, 7, {}, {"collective_seq_id": "4"}, {"collective_seq_id": 4}, {"collective_seq_id": 4, "process_group": []},
     {"collective_seq_id": True, "process_group": ["0"]},
     {"collective_seq_id": 4, "process_group": [None], "frames": 3}],
)  # fmt: skip
def test_odd_entries_are_passed_over(entry: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace_0"
    path.write_bytes(pickle.dumps({"entries": [entry], "pg_config": {"0": None, "": {"ranks": ["x", None]}}}))
    assert all(one.sequence == 4 for one in flight_recorder.read(path).last.values())


def test_the_command_reads_them_beside_the_recordings(tmp_path: Path) -> None:
    write(tmp_path / "fleet", "a", range(4, 8), 0.0)
    found = Cli(tmp_path)("fleet", "job", "fleet", "--job", "7", "--dumps", str(DUMPS), "--no-why", "--json").document
    assert [(one["rank"], one["group"]) for one in found["flight_recorder"]] == [(1, "0")]
    done = Cli(tmp_path)("fleet", "job", "fleet", "--job", "7", "--dumps", "fleet/node=a/node.json")
    assert done.code == 1
    assert "Traceback" not in done.err

"""Which rank a process is, by its environment: launchers, forged values, and what is never read."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from zombiescope.kernel import rank_environment
from zombiescope.kernel.rank_environment import MOST_BYTES, Rank, parse, rank

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "10.0.0.4", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (TORCHRUN, Rank(3, 8, 1, "10.0.0.4:29500", "torch")),
        ({**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}, Rank(3, 8, 1, "10.0.0.4:29500", "torch")),
        ({**TORCHRUN, "TORCHELASTIC_RUN_ID": "llama-7"}, Rank(3, 8, 1, "llama-7", "torchrun")),
        ({**TORCHRUN, "SLURM_JOB_ID": "71", "SLURM_STEP_ID": "0"}, Rank(3, 8, 1, "71.0", "slurm")),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16", "SLURM_LOCALID": "5", "SLURM_JOB_ID": "71"},
         Rank(5, 16, 5, "71", "slurm")),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "prterun-a-1@1"},
         Rank(2, 4, None, "prterun-a-1@1", "mpi")),
        ({"JOB_COMPLETION_INDEX": "6"}, Rank(6, None, None, None, "kubernetes")),
        ({"RAY_JOB_ID": "02000000"}, Rank(None, None, None, "02000000", "ray")),
        ({"MASTER_ADDR": "10.0.0.4"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_each_launcher_says_it_in_its_own_words(variables: dict[str, str], expected: Rank | None) -> None:
    assert rank(variables) == expected


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("/slurm/uid_1000/job_71/step_0/task_0", "71.0"),
        ("/system.slice/slurmstepd.scope/job_71/step_batch/user/task_0", "71"),
        ("/system.slice/slurmstepd.scope/job_71/step_extern", "71"),
    ],
)
def test_what_the_cgroup_says_of_slurm_wins_over_what_the_process_claims(cgroup: str, job: str) -> None:
    said = rank({"RANK": "0", "SLURM_JOB_ID": "9"}, cgroup)
    assert said is not None
    assert (said.kind, said.job) == ("slurm", job)


@pytest.mark.parametrize("value", ["-1", "99999999999", "1e3", "٣", "0x1", "", "3\x1b[31m"])
def test_a_forged_rank_is_none(value: str) -> None:
    said = rank(parse(f"RANK={value}\0MASTER_ADDR=a\0".encode()))
    assert said is None


def test_only_the_names_are_read_and_only_the_first_of_each() -> None:
    data = b"PASSWORD=secret\0RANK=1\0RANK=2\0AWS_SECRET_ACCESS_KEY=x\0MASTER_ADDR=" + b"a" * 129 + b"\0WORLD_SIZE\0"
    assert parse(data) == {"RANK": "1"}


def test_a_huge_environment_is_read_up_to_a_bound() -> None:
    assert parse(b"A=" + b"x" * MOST_BYTES + b"\0RANK=1\0") == {}


def test_of_a_real_process() -> None:
    given = {"RANK": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "HOME": "/nowhere"}
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=given)
    try:
        os.waitid(os.P_PID, process.pid, os.WNOHANG | os.WEXITED)
        found: dict[str, str] = {}
        while not found and process.poll() is None:  # it is not executed yet
            found = rank_environment.read(process.pid)
            found = found if found.get("RANK") == "2" else {}
        assert found == {name: value for name, value in given.items() if name != "HOME"}
    finally:
        process.kill()
        process.communicate()
    assert rank_environment.read(process.pid) == {}

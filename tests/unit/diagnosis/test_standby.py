"""The process that looks: loaded once, a fork for each look, and nothing that a look does takes it along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import START_US
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import standby
from zombiescope.recorder.doctor_process import ENVIRONMENT
from zombiescope.store import incident_file

STAND_IN = """
import os, sys, time
from pathlib import Path
from zombiescope.diagnosis import live, standby
def look(node_dir, from_us):
    {body}
live.look = look
standby.LOOK_S = {limit_s}
sys.exit(standby.main(sys.argv[1:]))
"""


class Standby:
    def __init__(self, node_dir: Path, *program: str) -> None:
        command = [sys.executable, "-P", *(program or ("-m", "zombiescope.diagnosis.standby")), str(node_dir)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | ENVIRONMENT
        )
        self.ready = self.answer()
        assert self.ready["ready"] is True

    def answer(self) -> dict[str, Any]:
        """The first line that is no beat."""
        while "beat" in (said := self.line()):
            pass
        return said

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        return said

    def look(self, from_us: int = START_US) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(b"%d\n" % from_us)
        self.process.stdin.flush()
        return self.answer()

    def end(self) -> str:
        _, err = self.process.communicate(timeout=60)
        return err.decode()


@pytest.fixture
def node_dir(tmp_path: Path) -> Path:
    scene = Scene().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog("do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages", "kubelet")
    return scene.write(tmp_path) / "node=lab"


def stand_in(node_dir: Path, body: str, limit_s: float = 60.0) -> Standby:
    return Standby(node_dir, "-c", STAND_IN.format(body=body, limit_s=limit_s))


@pytest.fixture
def doctor(node_dir: Path) -> Iterator[Standby]:
    made = Standby(node_dir)
    yield made
    made.process.kill()
    made.end()


def test_it_holds_no_pages_of_libraries_while_it_waits(doctor: Standby) -> None:
    rollup = Path(f"/proc/{doctor.process.pid}/smaps_rollup").read_text()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
    assert kilobytes["Rss"] - kilobytes["Anonymous"] < 20_000
    assert doctor.look()["exit"] == 0


def test_a_look_writes_incidents_says_them_and_answers(doctor: Standby, node_dir: Path) -> None:
    first = doctor.look()
    assert (first["exit"], first["new"]) == (0, 1)
    assert first["cpu_us"] > 0
    assert first["total_cpu_us"] > first["cpu_us"]
    assert first["rss_bytes"] > 10**7
    (known,) = incident_file.read(node_dir)
    assert doctor.look()["new"] == 0
    assert doctor.end().count(known["id"]) == 1, "it is said once, and it ends with its input"
    assert doctor.process.returncode == 0


def test_a_warm_look_costs_less_than_loading_what_it_needs(doctor: Standby) -> None:
    doctor.look()
    again = doctor.look()
    loading_us = again["total_cpu_us"] - 2 * again["cpu_us"] - doctor.ready["selftest"]["cpu_us"]
    assert again["cpu_us"] < loading_us / 2


def test_a_look_loads_nothing_that_is_not_loaded_and_never_pandas(node_dir: Path) -> None:
    pytest.importorskip("pandas")
    program = (
        "import sys\nfrom pathlib import Path\nfrom zombiescope.diagnosis import live, standby\n"
        "standby.load()\nloaded = set(sys.modules)\nlive.look(Path(sys.argv[1]), int(sys.argv[2]))\n"
        "print(*sorted(set(sys.modules) - loaded))\n"
    )
    command = [sys.executable, "-P", "-c", program, str(node_dir), str(START_US)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {name.partition(".")[0] for name in done.stdout.split()}
    assert not heavy & {"pandas", "numpy", "pyarrow", "zombiescope"}, done.stdout


def test_a_look_that_raises_says_what_and_where_and_the_next_one_is_tried(node_dir: Path) -> None:
    doctor = stand_in(node_dir, "if from_us == 1: raise KeyError('no such thing')\n    return live.Looked([], [])")
    failed = doctor.look(1)
    assert failed["exit"] == 1
    assert "KeyError: 'no such thing'" in failed["why"]
    assert doctor.look(2)["exit"] == 0
    doctor.end()


def test_a_look_that_hangs_is_killed(node_dir: Path) -> None:
    doctor = stand_in(node_dir, "if from_us == 1: time.sleep(600)\n    return live.Looked([], [])", limit_s=0.2)
    assert doctor.look(1)["exit"] == -9
    doctor.process.kill()
    doctor.end()


def test_a_look_that_takes_too_much_memory_fails_alone(node_dir: Path) -> None:
    doctor = stand_in(node_dir, "if from_us == 1: bytearray(2 << 30)\n    return live.Looked([], [])")
    failed = doctor.look(1)
    assert failed["exit"] == 1
    assert "MemoryError" in failed["why"]
    assert doctor.look(2)["exit"] == 0
    doctor.end()


def test_a_look_that_crashes_takes_nobody_along(node_dir: Path) -> None:
    doctor = stand_in(node_dir, "if from_us == 1: os.abort()\n    return live.Looked([], [])")
    assert doctor.look(1)["exit"] == -6
    assert doctor.look(2)["exit"] == 0
    doctor.end()


def test_it_never_waits_behind_everybody_and_is_killed_before_others(doctor: Standby) -> None:
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    theirs = os.getpriority(os.PRIO_PROCESS, doctor.process.pid)
    assert theirs == min(mine, standby.PRIORITY) if os.geteuid() == 0 else theirs <= mine
    assert int(Path(f"/proc/{doctor.process.pid}/oom_score_adj").read_text()) == 800


def test_it_has_one_thread_to_fork_from(doctor: Standby) -> None:
    doctor.look()
    threads = [(task / "comm").read_text().strip() for task in Path(f"/proc/{doctor.process.pid}/task").iterdir()]
    assert len(threads) == 1, threads


def test_a_pass_ends_with_the_process_that_made_it_however_that_ends(node_dir: Path) -> None:
    doctor = stand_in(node_dir, "time.sleep(600)")
    assert doctor.process.stdin is not None
    doctor.process.stdin.write(b"1\n")
    doctor.process.stdin.flush()
    while (pid := doctor.line()["pass"]) is None:
        pass
    doctor.process.kill()
    doctor.end()
    end_s = time.monotonic() + 20
    while _runs(pid) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_a_pass_tells_how_far_it_has_got(node_dir: Path) -> None:
    loop = "for _ in range(30): steps.step('a table'); time.sleep(0.1)"
    body = f"from zombiescope.store import steps\n    {loop}\n    return live.Looked([], [])"
    doctor = stand_in(node_dir, body)
    assert doctor.process.stdin is not None
    doctor.process.stdin.write(b"1\n")
    doctor.process.stdin.flush()
    beats = []
    while "beat" in (said := doctor.line()):
        beats.append((said["beat"], said["stage"]))
    assert said["exit"] == 0
    told = [number for number, stage in beats if stage == "a table"]
    assert len(set(told)) >= 3
    assert told == sorted(told)
    doctor.end()

"""The experiment on a real core: a hog is convicted of what its victim waits for, and neighbours of it are not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.fix import freezer
from zombiescope.fix.experiment import SURE, Answer, Experiment
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.measures import CgroupsMade, Waiting
from zombiescope.kernel import cpu
from zombiescope.kernel.cgroup import hierarchies, of_controller

pytestmark = [pytest.mark.kernel, pytest.mark.long, pytest.mark.timeout(180)]

NAME = "zombiescope-test-experiment"
# Both outweigh whatever else runs on this machine, so that the victim waits for the hog and for little else.
FIRST = "import os, time; os.sched_setaffinity(0, {%d}); os.setpriority(os.PRIO_PROCESS, 0, -20)\n"
VICTIM = FIRST + "while True:\n    time.sleep(0.002)\n    sum(range(20000))"
HOG = (
    FIRST
    + """
while True:
    end = time.monotonic() + 0.01
    while time.monotonic() < end: pass
    time.sleep(0.01)
"""
)
IDLE = "import os, time; os.sched_setaffinity(0, {%d})\nwhile True: time.sleep(0.05)"
MAKER = """
import os, sys, time
while True:
    os.mkdir(sys.argv[1]); os.rmdir(sys.argv[1]); time.sleep(0.005)
"""


@pytest.fixture
def core(needs: Needs) -> int:
    needs.root()
    needs.perf_events()
    needs.tracefs()
    return max(cpu.online() or (0,))


@contextmanager
def running(name: str, source: str, *arguments: str) -> Iterator[tuple[Frozen, int]]:
    """A program in a cgroup that can be frozen."""
    hierarchy = of_controller("freezer", hierarchies())
    if hierarchy is None or hierarchy.mount is None:
        pytest.skip("needs the freezer of cgroup v1")
    place = Path(hierarchy.mount) / f"{NAME}-{name}"
    place.mkdir(exist_ok=True)
    with subprocess.Popen([sys.executable, "-c", source, *arguments]) as process:
        try:
            (place / "cgroup.procs").write_text(str(process.pid))
            found = freezer.plan(f"/{NAME}-{name}")
            assert found is not None
            yield found, process.pid
        finally:
            process.kill()
            process.wait()
            end = time.monotonic() + 10
            while freezer.pids(str(place)):
                assert time.monotonic() < end
                time.sleep(0.02)
            place.rmdir()


def tried(suspect: Frozen, core: int, victim: int) -> Answer:
    return Experiment(suspect, Waiting([core], suspect.directory, frozenset({victim}), cards=False)).run()


def test_the_hog_is_convicted_of_what_others_wait_for_and_three_neighbours_are_not(core: int) -> None:
    with ExitStack() as stack:
        _, victim = stack.enter_context(running("victim", VICTIM % core))
        hog, _ = stack.enter_context(running("hog", HOG % core))
        decoys = [stack.enter_context(running(f"decoy{number}", IDLE % core))[0] for number in range(3)]
        convicted = tried(hog, core, victim)
        # Whatever else runs here makes the victim wait too; then it is not the hog alone, and that is what is said.
        assert convicted.p_value <= SURE, convicted
        assert convicted.word in ("stopped", "contributes"), convicted
        for decoy in decoys:
            assert tried(decoy, core, victim).word != "stopped"


def test_who_makes_cgroups_is_convicted(core: int, tmp_path: Path) -> None:
    hierarchy = of_controller("freezer", hierarchies())
    assert hierarchy is not None
    place = f"{hierarchy.mount}/{NAME}-made"
    with running("maker", MAKER, place) as (maker, _):
        try:
            answer = Experiment(maker, CgroupsMade()).run()
        finally:
            if Path(place).is_dir():
                Path(place).rmdir()
    assert answer.word == "stopped", answer
    assert answer.p_value <= SURE

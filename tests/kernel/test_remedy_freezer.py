"""A suspect is frozen on a real kernel, and goes on whatever happens to whoever froze it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs

from zombiescope.fix import experiment, freezer
from zombiescope.fix.dead_man import DeadMan
from zombiescope.fix.experiment import Experiment
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.step import ActionFailedError
from zombiescope.kernel.cgroup import hierarchies, of_controller
from zombiescope.kernel.process import read_stat

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(60)]

NAME = "zombiescope-test-freezer"
COUNTS = (
    "import sys, time\nn = 0\nwhile True:\n    n += 1\n    open(sys.argv[1], 'w').write(str(n))\n    time.sleep(0.01)"
)
OWNER = """
import sys, time
from zombiescope.fix import freezer
from zombiescope.fix.dead_man import DeadMan
from zombiescope.fix.experiment import Experiment
from zombiescope.fix.freezer import Frozen
with DeadMan(float(sys.argv[2])) as switch:
    freezer.freeze(Frozen.from_json(sys.argv[1]), switch.arm)
    print(switch.pid, flush=True)
    time.sleep(60)
"""


@contextmanager
def suspect(needs: Needs, tmp_path: Path, controller: str) -> Iterator[tuple[Frozen, int]]:
    """A process that writes a number a hundred times a second, in a cgroup of its own."""
    needs.root()
    hierarchy = of_controller(controller, hierarchies())
    if hierarchy is None or hierarchy.mount is None:
        needs.lack(f"needs the {controller} controller of cgroup v1")
    place = Path(hierarchy.mount) / NAME
    place.mkdir(exist_ok=True)
    with subprocess.Popen([sys.executable, "-c", COUNTS, str(tmp_path / "n")]) as process:
        try:
            (place / "cgroup.procs").write_text(str(process.pid))
            until((tmp_path / "n").exists)
            yield _plan(controller), process.pid
        finally:
            process.kill()
            process.wait()
            until(lambda: not freezer.pids(str(place)))
            place.rmdir()


def _plan(controller: str) -> Frozen:
    found = freezer.plan(f"/{NAME}")
    assert found is not None
    assert found.kind == {"freezer": "freezer", "memory": "signals"}[controller]
    return found


def until(done: Callable[[], object], within_s: float = 15) -> None:
    end = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def moves(tmp_path: Path) -> bool:
    """Whether it counts on: two looks, a tenth of a second apart."""
    first = (tmp_path / "n").read_text()
    time.sleep(0.2)
    return (tmp_path / "n").read_text() != first


@pytest.mark.parametrize("controller", ["freezer", "memory"])
def test_it_stands_still_and_goes_on(needs: Needs, tmp_path: Path, controller: str) -> None:
    with suspect(needs, tmp_path, controller) as (plan, _), DeadMan(30) as switch:
        frozen = freezer.freeze(plan, switch.arm)
        until(lambda: freezer.is_frozen(frozen))
        assert not moves(tmp_path)
        freezer.thaw(frozen)
        until(lambda: moves(tmp_path))


@pytest.mark.parametrize("controller", ["freezer", "memory"])
def test_it_goes_on_when_whoever_froze_it_is_killed(needs: Needs, tmp_path: Path, controller: str) -> None:
    with suspect(needs, tmp_path, controller) as (plan, pid):
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, plan.to_json(), "50"], stdout=subprocess.PIPE, start_new_session=True
        )
        assert owner.stdout is not None
        switch = int(owner.stdout.readline())
        assert not moves(tmp_path)
        os.killpg(owner.pid, signal.SIGKILL)  # its whole group, as a terminal or a supervisor would
        owner.wait()
        owner.stdout.close()
        until(lambda: moves(tmp_path))
        until(lambda: read_stat(switch) is None or read_stat(switch).state == "Z")  # type: ignore[union-attr]
        stat = read_stat(pid)
        assert stat is not None
        assert stat.state not in "Tt"


def test_it_goes_on_when_the_time_is_over_though_its_owner_hangs(needs: Needs, tmp_path: Path) -> None:
    with suspect(needs, tmp_path, "freezer") as (plan, _), DeadMan(1.5) as switch:
        freezer.freeze(plan, switch.arm)
        until(lambda: not freezer.is_frozen(plan))
        assert moves(tmp_path)


def test_it_goes_on_when_the_switch_is_told_to_end(needs: Needs, tmp_path: Path) -> None:
    with suspect(needs, tmp_path, "freezer") as (plan, _), DeadMan(50) as switch:
        freezer.freeze(plan, switch.arm)
        os.kill(switch.pid, signal.SIGTERM)
        until(lambda: not freezer.is_frozen(plan))
        until(lambda: not switch.is_alive)


def test_it_goes_on_within_a_second_though_its_owner_is_stopped_in_the_middle_of_a_freeze(
    needs: Needs, tmp_path: Path
) -> None:
    with suspect(needs, tmp_path, "freezer") as (plan, _), DeadMan(600) as switch:
        freezer.freeze(plan, lambda one: switch.arm(one, 0.5))
        until(lambda: not freezer.is_frozen(plan))  # nobody thawed it: we only wait, as one that hangs does
        until(lambda: moves(tmp_path))
        freezer.freeze(plan, lambda one: switch.arm(one, 30.0))
        freezer.thaw(plan)
        switch.disarm()
        assert switch.is_alive


class Number:
    """What the suspect counts."""

    what, unit, grows = "numbers written", "numbers", False

    def __init__(self, place: Path) -> None:
        self._place, self._last = place, 0.0

    def __enter__(self) -> Number:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> float:
        text = self._place.read_text()
        self._last = float(text) if text else self._last  # it is just being written
        return self._last

    def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
        return [last - first for first, last in spans]


def test_an_experiment_ends_at_once_when_somebody_kills_the_switch(
    needs: Needs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    armed = DeadMan.arm

    def kill_later(self: DeadMan, frozen: Frozen, limit_s: float | None = None) -> None:
        armed(self, frozen, limit_s)
        killed.append(self.pid)

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        if killed:
            os.kill(killed.pop(), signal.SIGKILL)

    monkeypatch.setattr(DeadMan, "arm", kill_later)
    with suspect(needs, tmp_path, "freezer") as (plan, _):
        with pytest.raises(ActionFailedError, match="switch"):
            Experiment(plan, Number(tmp_path / "n"), wait=wait).run()
        until(lambda: not freezer.is_frozen(plan))


def test_who_writes_the_numbers_is_convicted_with_a_p_value_and_goes_on(needs: Needs, tmp_path: Path) -> None:
    with suspect(needs, tmp_path, "freezer") as (plan, _):
        answer = Experiment(plan, Number(tmp_path / "n")).run()
        assert answer.word == "stopped", answer
        assert answer.p_value <= experiment.SURE
        assert f"p = {answer.p_value:.2g}" in answer.text
        until(lambda: moves(tmp_path))


def test_one_that_has_nothing_to_do_with_it_is_not_convicted(needs: Needs, tmp_path: Path) -> None:
    """Somebody else writes the numbers."""
    (tmp_path / "other").mkdir()
    with suspect(needs, tmp_path, "freezer") as (plan, _):
        command = [sys.executable, "-c", COUNTS, str(tmp_path / "other" / "n")]
        with subprocess.Popen(command) as culprit:
            try:
                until((tmp_path / "other" / "n").exists)
                answer = Experiment(plan, Number(tmp_path / "other" / "n")).run()
            finally:
                culprit.kill()
        assert answer.word in ("went-on", "unknown"), answer


def test_whoever_carries_our_session_is_not_frozen() -> None:
    membership = Path("/proc/self/cgroup").read_text().splitlines()
    path = next(line.split(":", 2)[2] for line in membership if ":memory:" in line or line.startswith("0::"))
    found = freezer.plan(path)
    if found is None:
        pytest.skip("this process is in the root of every hierarchy")
    assert freezer.holds_us(found)

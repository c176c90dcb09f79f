"""Zombies on a real kernel, released by a plan: page cache by reclaim, files in memory by deleting them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.zombies import ZombieFarm, zombie_farm

from zombiescope.fix import log, reclaim_worker, zombie_steps
from zombiescope.fix.actions import make
from zombiescope.fix.apply import apply
from zombiescope.fix.pins import find_pins
from zombiescope.fix.reclaim import Parent, Reclaimed, refusal, surviving_parent
from zombiescope.fix.step import Step
from zombiescope.fix.zombie_steps import candidate_survivors as candidates
from zombiescope.fix.zombie_steps import parent_steps
from zombiescope.kernel.cgroup import hierarchies, of_controller
from zombiescope.model.plans.plan import Plan

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

NAME = "zombiescope-test-remedy"
COUNT = 5_000
NOISE = 100
"""Cgroups that the rest of the machine makes and loses meanwhile."""


@contextmanager
def page_cache_farm(mount: Path) -> Iterator[ZombieFarm]:
    """As zombie_farm, but the pins are on a disk."""
    parent, pins = mount / NAME, Path(tempfile.mkdtemp(prefix=f"{NAME}-", dir="/var/tmp"))
    parent.mkdir(exist_ok=True)
    farm = ZombieFarm(parent, pins)
    try:
        yield farm
    finally:
        shutil.rmtree(pins, ignore_errors=True)
        for child in parent.glob("job-*"):
            with suppress(OSError):
                child.rmdir()
        parent.rmdir()


def survivor() -> Parent:
    hierarchy = of_controller("memory", hierarchies())
    assert hierarchy is not None
    found = surviving_parent(hierarchy, f"/{NAME}/job-*")
    assert found is not None
    return found


def applied(tmp_path: Path, steps: list[Step], consent: Callable[[Step], bool] = lambda _: True) -> Plan:
    plan = Plan("incident:test", "release them", tuple(steps), "zombie-memcg", "here")
    with log.opened(tmp_path / "log") as held:
        return apply(plan, held, consent)


def settled(count: Callable[[], int | None], to: int, within_s: float = 20) -> int:
    """What is counted when it has come down to `to`, or after so long: the kernel releases by a worker of its own."""
    end = time.monotonic() + within_s
    while (now := count()) is None or (now > to and time.monotonic() < end):
        time.sleep(0.1)
    return now


@pytest.mark.parametrize("count", [300, pytest.param(COUNT, marks=pytest.mark.long)])
def test_every_page_cache_zombie_is_released(
    needs: Needs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    mount = needs.memory_cgroup()
    made: list[Reclaimed] = []
    keep = reclaim_worker.reclaim

    def kept(*arguments: object) -> Reclaimed:
        made.append(keep(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(reclaim_worker, "reclaim", kept)
    with page_cache_farm(mount) as farm:
        before = survivor().count()
        assert before is not None
        farm.leak(count)
        parent = survivor()
        leaked = parent.count()
        assert leaked is not None
        assert leaked >= before + count - NOISE
        assert refusal(parent) is None
        done = applied(tmp_path, list(parent_steps(parent)))
        assert [step.state for step in done.changes] == ["applied"]
        assert settled(parent.count, before) <= before + NOISE // 10
        assert made[0].freed >= count - NOISE // 10
        assert made[0].ended == "nothing more is released"


def test_files_in_memory_are_named_with_who_has_them_open_and_deleted_by_consent(needs: Needs, tmp_path: Path) -> None:
    mount = needs.memory_cgroup()
    needs.file("/proc/kpagecgroup")
    count = 500
    with zombie_farm(mount, NAME) as farm:
        before = survivor().count()
        assert before is not None
        farm.leak(count)
        with _holding(farm.pins / "7") as holder:
            parent = survivor()
            # WHEN somebody has one of the files open THEN reclaim is refused, and every file is named
            assert "tmpfs keeps them" in (refusal(parent) or "")
            parent = _until_offline(parent, count)
            steps = list(parent_steps(parent))
            assert not any(step.id.startswith("zombies.reclaim") for step in steps)
            (used,) = [step for step in steps if step.protects == str(farm.pins / "7")]
            assert any(f"pid {holder.pid}" in line for line in used.touches)
            (unused,) = [step for step in steps if step.protects == str(farm.pins)]
            assert f"{count - 1:,} files" in unused.does
            # AND without consent nothing goes
            refused = applied(tmp_path, [unused], lambda _: False)
            assert refused.steps[0].state == "skipped"
            assert len(os.listdir(farm.pins)) == count  # noqa: PTH208
            # AND with consent those that nobody has open are deleted, and their cgroups released
            assert applied(tmp_path, [unused]).steps[0].state == "applied"
            assert os.listdir(farm.pins) == ["7"]  # noqa: PTH208
            assert settled(parent.count, before + 1) <= before + 1 + NOISE // 10
        # AND the last one goes when it is named, though it was open
        assert used.action is not None
        assert applied(tmp_path, [used]).steps[0].state == "applied"
        assert not (farm.pins / "7").exists()


def test_a_file_that_somebody_opened_after_the_plan_is_not_deleted(needs: Needs, tmp_path: Path) -> None:
    mount = needs.memory_cgroup()
    needs.file("/proc/kpagecgroup")
    with zombie_farm(mount, NAME) as farm:
        farm.leak(3)
        parent = survivor()
        parent = _until_offline(parent, 3)
        (step,) = [step for step in parent_steps(parent) if step.action is not None]
        with _holding(farm.pins / "1"):
            done = applied(tmp_path, [step])
        assert done.steps[0].state == "failed"
        assert "has one of these files open now" in done.steps[0].why
        assert len(os.listdir(farm.pins)) == 3  # noqa: PTH208


def test_a_file_that_took_the_place_of_the_one_shown_is_left_alone(needs: Needs) -> None:
    mount = needs.memory_cgroup()
    needs.file("/proc/kpagecgroup")
    with zombie_farm(mount, NAME) as farm:
        farm.leak(1)
        parent = survivor()
        parent = _until_offline(parent, 1)
        (step,) = [step for step in parent_steps(parent) if step.action is not None]
        assert step.action is not None
        again = make(step.action.kind, step.action.arguments())  # as the log brings it back
        other = farm.pins / "other"
        other.write_text("of somebody else")
        other.rename(farm.pins / "0")
        assert again.is_applied()
        again.apply()
        assert (farm.pins / "0").read_text() == "of somebody else"


def test_a_living_cgroup_full_of_cache_is_not_touched_by_what_has_nothing_to_do_with_it(
    needs: Needs, tmp_path: Path
) -> None:
    # GIVEN zombies below one parent, and beside it a living cgroup of somebody else, full of cache
    mount = needs.memory_cgroup()
    with page_cache_farm(mount) as farm, _cached(mount, "zombiescope-test-neighbour", 8 << 20) as neighbour:
        farm.leak(50)
        hierarchy = of_controller("memory", hierarchies())
        assert hierarchy is not None
        had = _file_bytes(neighbour)
        assert had >= 4 << 20
        # WHEN nothing says where the zombies of the incident were THEN nothing is done, and where to look is told
        (told,) = zombie_steps.steps([])
        assert (told.kind, told.action) == ("advice", None)
        # AND WHEN the ledger says it THEN that parent alone is reclaimed from
        steps = list(zombie_steps.steps([f"/{NAME}/job-*"]))
        assert [step.id for step in steps if step.action is not None] == [f"zombies.reclaim:/{NAME}"]
        done = applied(tmp_path, steps)
        assert [step.state for step in done.changes] == ["applied"]
        assert _file_bytes(neighbour) >= had - (64 << 10)


def test_where_nothing_is_held_any_more_that_is_said(needs: Needs) -> None:
    mount = needs.memory_cgroup()
    with page_cache_farm(mount):
        (told,) = zombie_steps.steps([f"/{NAME}/job-*"])
        assert (told.kind, told.action) == ("advice", None)
        assert "hold no page cache" in told.does


def test_what_it_costs_the_parent_itself_is_told(needs: Needs) -> None:
    mount = needs.memory_cgroup()
    with page_cache_farm(mount) as farm:
        farm.leak(20)
        if survivor().version != 1:
            needs.lack("cgroup2 does not tell the parent's own cache from that of the dead")
        _read_in(farm.parent, farm.pins / "own", 4 << 20)
        (step,) = [step for step in parent_steps(survivor()) if step.action is not None]
        own = next(line for line in step.touches if "of its page cache are dropped too" in line)
        assert int(own.split()[0].replace(",", "")) >= 2 << 20


def test_places_to_look_at_are_found_without_a_recorder(needs: Needs) -> None:
    mount = needs.memory_cgroup()
    with zombie_farm(mount, NAME) as farm:
        farm.leak(100)
        hierarchy = of_controller("memory", hierarchies())
        assert hierarchy is not None
        assert f"/{NAME}" in [parent.path for parent in candidates(hierarchy)]
        (told,) = zombie_steps.steps([])
        assert any(line.startswith(f"/{NAME}: ") for line in told.touches)


READS = """
import os, sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
with open(sys.argv[2], "wb") as file:
    file.write(os.urandom(int(sys.argv[3])))
    os.fsync(file.fileno())
"""


def _read_in(cgroup: Path, file: Path, size: int) -> None:
    subprocess.run([sys.executable, "-c", READS, str(cgroup), str(file), str(size)], check=True, timeout=30)


@contextmanager
def _cached(mount: Path, name: str, size: int) -> Iterator[Path]:
    """A cgroup below a parent whose page cache is full, and a process that lives in it."""
    parent, pins = mount / name, Path(tempfile.mkdtemp(prefix=f"{name}-", dir="/var/tmp"))
    living = parent / "living"
    living.mkdir(parents=True)
    _read_in(living, pins / "data", size)
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        try:
            (living / "cgroup.procs").write_text(str(process.pid))
            yield living
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(pins, ignore_errors=True)
            end = time.monotonic() + 10
            while (living / "cgroup.procs").read_text().strip() and time.monotonic() < end:
                time.sleep(0.05)
            living.rmdir()
            parent.rmdir()


def _file_bytes(cgroup: Path) -> int:
    """Page cache, when the statistics have caught up."""
    time.sleep(2.5)
    stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    return int(stat.get("cache", stat.get("file", "0")))


@contextmanager
def _holding(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    script = "import sys, time; f = open(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def _until_offline(parent: Parent, count: int) -> Parent:
    """A removed cgroup goes offline by a worker of the kernel, and until then its pages name the cgroup itself; few
    pages are in memory.stat after two seconds."""
    inode, end = Path(parent.directory).stat().st_ino, time.monotonic() + 20
    while time.monotonic() < end:
        now = survivor()
        if now.held is not None and now.held.shmem_bytes and len(find_pins(inode).pins) == count:
            break
        time.sleep(0.2)
    return survivor()

"""The laboratory on the real machine: a run from beginning to end, and that nothing of it is left, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.kernel import cgroup
from zombiescope.lab import leftovers
from zombiescope.lab.requirements import lacks
from zombiescope.lab.sandbox import MARK
from zombiescope.lab.scenario import by_id

pytestmark = pytest.mark.kernel

LAB = [sys.executable, "-m", "zombiescope.commands.main", "lab"]
MOMENTS_S = 20.0
# These change by themselves, or are commands and not settings.
VOLATILE = ("kernel/random", "fs/", "kernel/ns_last_pid", "kernel/pty", "vm/drop_caches", "vm/compact_memory",
            "net/netfilter/nf_conntrack_count", "kernel/perf_event_max_sample_rate", "user/")  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """What a scenario could leave behind; other tests may run beside, so processes and files by the lab's name."""

    cgroups: frozenset[str]
    mounts: frozenset[str]
    networks: frozenset[str]
    processes: frozenset[str]
    files: frozenset[str]
    sysctls: tuple[tuple[str, bytes], ...]

    @classmethod
    def now(cls) -> Machine:
        mounts = [Path(one.mount) for one in cgroup.hierarchies() if one.mount]
        places = [place for place in (Path("/tmp"), Path("/dev/shm")) if place.is_dir()]
        return cls(
            frozenset(str(path) for mount in mounts for path in mount.iterdir() if path.is_dir()),
            frozenset(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
            frozenset(_networks()),
            frozenset(_of_the_lab()),
            frozenset(str(path) for place in places for path in place.iterdir() if path.name.startswith(MARK)),
            tuple(_sysctls()),
        )


def _networks() -> Iterator[str]:
    """Network namespaces: those of processes, and those that a file keeps."""
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        with suppress(OSError):
            yield str(link.readlink())
    yield from (f"/run/netns/{path.name}" for path in Path("/run/netns").glob("*"))


def _of_the_lab() -> Iterator[str]:
    """By their cgroup or their command line; a scenario's program carries its script there, and its forks do too."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            mine = MARK in (entry / "cgroup").read_text() or MARK in command
        except OSError:
            continue
        if int(entry.name) != os.getpid() and (mine or "zombiescope.lab" in command or "wait_for_the_word" in command):
            yield f"{entry.name} {command[:80]}"


def _sysctls() -> Iterator[tuple[str, bytes]]:
    for path in sorted(Path("/proc/sys").rglob("*")):
        if (
            path.is_file()
            and not str(path.relative_to("/proc/sys")).startswith(VOLATILE)
            and path.stat().st_mode & 0o444
        ):
            try:
                yield str(path), path.read_bytes()
            except OSError:
                continue


@pytest.fixture
def machine(needs: Needs) -> Machine:
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    leftovers.remove(leftovers.find())
    return Machine.now()


def wait_for(what: str, done: object) -> None:
    end = time.monotonic() + MOMENTS_S
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_a_run_names_the_fault_and_leaves_nothing(needs: Needs, machine: Machine) -> None:
    for missing in lacks(by_id("mount-storm")):
        needs.lack(str(missing))
    done = subprocess.run(
        [*LAB, "run", "mount-storm", "--yes", "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    found = json.loads(done.stdout)
    assert found["schema"] == "zombiescope.lab/1"
    assert found["scenario"] == "mount-storm"
    assert found["expected"]["pattern"] == found["found"]["pattern"] == "mount-storm"
    assert found["found"]["culprit"].startswith("mount-reader")
    assert found["pass"] is True
    assert done.returncode == 0
    assert found["onset_to_named_s"] is None or found["onset_to_named_s"] > 0
    assert Machine.now() == machine


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("scenario", ["zombie-tmpfs", "packet-flood"])
def test_a_run_that_is_ended_half_way_leaves_nothing(
    needs: Needs, machine: Machine, scenario: str, number: signal.Signals
) -> None:
    for missing in lacks(by_id(scenario)):
        needs.lack(str(missing))
    with subprocess.Popen([*LAB, "run", scenario, "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find(scenario).processes)
        process.send_signal(number)
        assert process.wait(60) == 130
    assert Machine.now() == machine


def test_a_run_whose_recorder_dies_half_way_says_so_and_leaves_nothing(needs: Needs, machine: Machine) -> None:
    """An exception in the middle of the fault."""
    for missing in lacks(by_id("packet-flood")):
        needs.lack(str(missing))
    with subprocess.Popen([*LAB, "run", "packet-flood", "--yes"], stderr=subprocess.PIPE, text=True) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find("packet-flood").processes)
        recorder = next(int(one.split()[0]) for one in _of_the_lab() if "zombiescope.recorder" in one)
        os.kill(recorder, signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 1
    assert "the recorder ended early" in said
    assert "Traceback" not in said
    assert Machine.now() == machine


def test_a_fault_that_dies_half_way_leaves_nothing(needs: Needs, machine: Machine) -> None:
    for missing in lacks(by_id("packet-flood")):
        needs.lack(str(missing))
    with subprocess.Popen([*LAB, "run", "packet-flood", "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's program", lambda: leftovers.find("packet-flood").processes)
        for pid in leftovers.find("packet-flood").processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert process.wait(60) != 0
    assert Machine.now() == machine


def test_a_run_that_is_killed_takes_everything_with_it(needs: Needs, machine: Machine) -> None:
    """The supervisor is told by the kernel (PR_SET_PDEATHSIG), and cleans up by itself; so does the recorder."""
    with subprocess.Popen([*LAB, "run", "zombie-tmpfs", "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find("zombie-tmpfs").processes)
        process.kill()
        process.wait()
    wait_for("everything but the recording is gone", lambda: not Machine.now().processes)
    assert not leftovers.find().cgroups
    left = leftovers.find()
    assert [path.parent for path in left.directories] == [Path("/dev/shm")], "only the recording: it has no owner now"
    leftovers.remove(left)
    assert Machine.now() == machine


def test_clean_mends_what_a_killed_supervisor_left(needs: Needs, machine: Machine) -> None:
    with subprocess.Popen([*LAB, "run", "zombie-tmpfs", "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find("zombie-tmpfs").processes)
        supervisor = next(int(one.split()[0]) for one in _of_the_lab() if "zombiescope.lab.supervisor" in one)
        os.kill(supervisor, signal.SIGKILL)
        process.kill()
        process.wait()
    assert leftovers.find().cgroups
    done = subprocess.run(
        [*LAB, "clean", "--keep-images", "--json"], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["removed"]["cgroups"]
    assert Machine.now() == machine

"""`check` on this machine: real hogs, real zombies of both kinds, a real quota; as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording
from tests.helpers.unprivileged import unprivileged
from tests.helpers.zombies import zombie_farm

from zombiescope.kernel import cgroup

pytestmark = pytest.mark.kernel

CHECK = [sys.executable, "-m", "zombiescope.cli.main", "check"]
FARM = "zombiescope-test-check"
NAMED = "open('/proc/self/comm', 'w').write('{}');"
AUTOGROUP = Path("/proc/self/autogroup")  # where there is one, the priority of a process counts only inside its session
IN_THE_KERNEL = (
    NAMED.format("kernelhog") + "import os; os.sched_setaffinity(0, {1}); os.setpriority(os.PRIO_PROCESS, 0, -20);"
    "os.path.exists('/proc/self/autogroup') and open('/proc/self/autogroup', 'w').write('-20');"
    "zero = os.open('/dev/zero', os.O_RDONLY); room = [bytearray(1 << 24)]\n"
    "while True: os.readv(zero, room)"
)
SPIN = NAMED.format("spinner") + "import sys; open(sys.argv[1] + '/cgroup.procs', 'w').write('0')\nwhile True: pass"
LIMIT_S = 60.0


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", *arguments], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def limited(needs: Needs) -> Iterator[Path]:
    """A cgroup that may use a fifth of a core, and gets it before others get theirs."""
    hierarchy = cgroup.of_controller("cpu", cgroup.hierarchies())
    if hierarchy is None or hierarchy.mount is None:
        needs.lack("needs a mounted cpu controller")
    assert hierarchy is not None
    place = Path(str(hierarchy.mount)) / FARM
    try:
        place.mkdir(exist_ok=True)
        if hierarchy.version == 2:
            (place / "cpu.max").write_text("20000 100000")
            (place / "cpu.weight").write_text("10000")
        else:
            (place / "cpu.cfs_quota_us").write_text("20000")
            (place / "cpu.shares").write_text("262144")
    except OSError as error:
        needs.lack(f"needs a cpu controller that can be used: {error.strerror}")
    try:
        yield place
    finally:
        end = time.monotonic() + 5
        while place.exists() and time.monotonic() < end:
            with suppress(OSError):
                place.rmdir()


def autogroup_nice() -> str | None:
    """None where there are no autogroups, or where this process is in none: its file is there then, and empty."""
    try:
        words = AUTOGROUP.read_text().split()
    except FileNotFoundError:
        return None
    return words[-1] if words else None


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """The document of one check, during which all of it happens."""
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    if (os.cpu_count() or 1) < 2:
        needs.lack("needs two CPUs")
    child = os.fork()
    if child == 0:
        os._exit(0)
    with ExitStack() as stack:
        stack.callback(os.waitpid, child, 0)
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, {0})  # the hogs have the other core, and nothing of ours shall wait for it
        if nice := autogroup_nice():
            stack.callback(AUTOGROUP.write_text, nice)
            AUTOGROUP.write_text("-15")  # nor for others on a busy machine
        farm = stack.enter_context(zombie_farm(mount, FARM))
        for _ in range(2):  # others may want that core too
            stack.enter_context(running(IN_THE_KERNEL))
        stack.enter_context(running(SPIN, str(stack.enter_context(limited(needs)))))
        check = subprocess.Popen([*CHECK, "--for", "4s", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stack.callback(check.kill)
        end = time.monotonic() + LIMIT_S
        while check.poll() is None and time.monotonic() < end:
            farm.leak(5)
            time.sleep(0.2)
        out, err = check.communicate(timeout=1)
    assert check.returncode == 3, err
    assert not err
    document: dict[str, Any] = json.loads(out)
    return document


def rules(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["rule"]: finding for finding in reversed(told["findings"])}


def test_the_core_that_the_kernel_held_is_named_with_who_and_where(told: dict[str, Any]) -> None:
    assert told["schema"] == "zombiescope.check/1"
    core = next(core for core in told["cores"] if core["cpu"] == 1)
    assert core["longest_saturation_s"] >= 1
    assert core["hog"]["comm"] == "kernelhog"
    assert any("zero" in frame for frame in core["hog"]["path"])
    finding = rules(told)["core-saturated"]
    assert "kernelhog" in finding["why"]
    assert finding["severity"] in ("warning", "critical")
    assert told["seconds"] >= 4
    assert told["to"] - told["from"] == pytest.approx(told["seconds"])


def test_zombie_cgroups_are_counted_with_who_made_them(told: dict[str, Any]) -> None:
    (line,) = [line for line in told["cgroups"]["makers"] if FARM in line["path"] and line["creator"]["comm"]]
    assert line["creator"]["comm"] == "leaky"
    # The window may begin between the two: then a removal is seen whose creation was before it.
    assert line["created"] >= 10
    assert line["removed"] >= 10
    assert line["dying"] >= 10
    assert told["cgroups"]["growth"]["dying"] >= 10
    memory = told["cgroups"]["memory"]
    assert memory["total"] == memory["live"] + memory["dying"]
    assert rules(told)["dying-cgroups-grow"]["severity"] == "warning"


def test_defunct_processes_are_the_other_kind(told: dict[str, Any]) -> None:
    assert told["defunct"]["lasting"] >= 1
    assert os.getpid() in {parent["pid"] for parent in told["defunct"]["parents"]}
    assert "another kind of zombie" in told["defunct"]["note"]


def test_a_quota_that_is_used_up_is_named(told: dict[str, Any]) -> None:
    (one,) = [one for one in told["throttled"] if one["cgroup"] == f"/{FARM}"]
    assert one["quota_cores"] == pytest.approx(0.2)
    assert one["ratio"] > 0.5
    assert one["seconds"] > 1
    assert FARM in rules(told)["throttled"]["why"]


def test_what_is_not_measured_is_null_and_the_rest_is_a_ratio(told: dict[str, Any]) -> None:
    for core in told["cores"]:
        ratios = [core[mode] for mode in ("user", "system", "irq", "softirq", "steal", "iowait", "idle", "busy")]
        assert all(ratio is None or 0 <= ratio <= 1 for ratio in ratios)
    for resource in ("cpu", "memory", "io"):
        assert told["pressure"][resource]["some"] is None or 0 <= told["pressure"][resource]["some"] <= 1
    assert all(set(one) == {"source", "why", "grant"} for one in told["missing"])


def test_an_ordinary_user_sees_what_it_may_and_is_told_the_rest(needs: Needs, tmp_path: Path) -> None:
    needs.root()
    needs.binary("setpriv", "util-linux")
    command = [*unprivileged(), *CHECK, "--for", "1s", "--fail-on", "critical"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd="/")
    assert done.returncode in (0, 3), done.stderr
    assert not done.stderr
    text = " ".join(done.stdout.split())
    assert "stalls, and who held a core, cannot be seen without stack samples" in text
    assert "who makes and removes cgroups cannot be seen" in text
    assert "memory cgroups tracked" in text
    blind = text.partition("blind to ")[2]
    assert blind.startswith("stack samples, ")
    assert "sudo zombiescope check" in blind
    assert "CAP_PERFMON" in blind
    assert "CAP_SYSLOG" in blind


def test_a_recorder_that_runs_is_not_disturbed_and_nothing_is_left(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    runtime, scratch = tmp_path / "runtime", tmp_path / "scratch"
    scratch.mkdir()
    here = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(runtime), "TMPDIR": str(scratch)}
    with recording(tmp_path / "r") as recorder:
        published = (runtime / "recorder.json").read_text()
        # WHEN a check runs beside it, and another is terminated in the middle
        done = subprocess.run([*CHECK, "--for", "1s", "--json"], capture_output=True, env=here, timeout=LIMIT_S)
        assert done.returncode in (0, 3), done.stderr
        assert json.loads(done.stdout)["cores"]
        assert not done.stderr
        with subprocess.Popen([*CHECK, "--for", "1m"], env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as cut:
            end = time.monotonic() + LIMIT_S
            while not list(scratch.glob("zombiescope-check-*/node=*/node.json")) and time.monotonic() < end:
                time.sleep(0.05)
            cut.send_signal(signal.SIGTERM)
            cut.communicate(timeout=LIMIT_S)
        assert cut.returncode == 130
        # THEN the recorder is still the one that is found here, and it has gone on
        assert (runtime / "recorder.json").read_text() == published
        assert (runtime / "mark.sock").exists()
        recorder.wait_for_frames(1)
        assert recorder.stop()["lost"] == 0
    assert not list(scratch.iterdir())


def test_on_a_terminal_it_shows_what_it_sees_while_it_looks(needs: Needs) -> None:
    needs.perf_events()
    ours, theirs = pty.openpty()
    with subprocess.Popen([*CHECK, "--for", "1s", "--json"], stdout=subprocess.PIPE, stderr=theirs) as check:
        os.close(theirs)
        shown = _all_of(ours)
        out, _ = check.communicate(timeout=LIMIT_S)
    assert json.loads(out)["schema"] == "zombiescope.check/1"
    assert b"looking at " in shown
    assert b"s left" in shown


def _all_of(terminal: int) -> bytes:
    """What is written to a terminal until its other end is closed, which is an error."""
    shown = b""
    with suppress(OSError):
        while piece := os.read(terminal, 65536):
            shown += piece
    os.close(terminal)
    return shown

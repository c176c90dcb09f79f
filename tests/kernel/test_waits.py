"""Storage that hangs on the real kernel: a FUSE daemon, a loop device on it, a file system that is frozen.

Each fault is a process of its own in a mount namespace of its own, hangs for a bounded time and then lets go by itself,
whatever becomes of the test. NFS is not in every kernel: tests/node/test_nfs.py has it. Nor is device mapper: what is
known of that is in fixtures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.machine import of_the_lab
from tests.helpers.recorder_process import recording

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.lab import leftovers
from zombiescope.lab.requirements import lacks
from zombiescope.lab.scenario import by_id
from zombiescope.query.waiting import WaitingTask, waiting
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(300)]

LAB = [sys.executable, "-m", "zombiescope.cli.main", "lab"]
HANGS_S = 28
SCENARIOS = ("storage-hang", "writeback-stall", "swap-thrash")

PREAMBLE = """
import ctypes, fcntl, os, subprocess, sys, threading, time
from zombiescope.lab.fuse_server import FuseServer
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x00020000) == 0
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
place, seconds = sys.argv[1], float(sys.argv[2])
def served():
    server, ends = FuseServer(64 << 20), [0.0]
    server.mount(place)
    server.delay_s = lambda _: max(0.0, ends[0] - time.monotonic())
    threading.Thread(target=server.serve, daemon=True).start()
    return ends
def child(name, work):
    pid = os.fork()
    if pid == 0:
        open("/proc/self/comm", "w").write(name)
        try:
            work()
        finally:
            os._exit(0)
    return pid
def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
"""

LOOKS_UP = """
ends = served()
os.stat(place + "/data")
time.sleep(14)  # as long as it takes until the helper has looked at what is mounted
ends[0] = time.monotonic() + seconds
pids = [child("looker", lambda: os.stat(place + "/data")) for _ in range(2)]
print("hangs", flush=True)
for pid in pids:
    os.waitpid(pid, 0)
"""

LOOP = """
ends = served()
loop = run("losetup", "--find", "--show", "--read-only", place + "/data")
print(loop, file=sys.stderr, flush=True)
try:
    os.pread(os.open(loop, os.O_RDONLY), 4096, 0)
    ends[0] = time.monotonic() + seconds
    pid = child("reader", lambda: os.pread(os.open(loop, os.O_RDONLY), 4096, 32 << 20))
    print("hangs", flush=True)
    os.waitpid(pid, 0)
finally:
    run("losetup", "--detach", loop)
"""

FROZEN = """
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
image = os.environ["IMAGE"]
run("mkfs.ext4", "-q", image)
run("mount", "-o", "loop", image, place)
top = os.open(place, os.O_RDONLY)
file = os.open(place + "/data", os.O_RDWR | os.O_CREAT)
os.write(file, b"x")
fcntl.ioctl(top, FIFREEZE, 0)
try:
    pid = child("writer", lambda: os.write(file, b"y"))
    print("hangs", flush=True)
    time.sleep(seconds)
finally:
    fcntl.ioctl(top, FITHAW, 0)
os.waitpid(pid, 0)
os.close(top)
os.close(file)
run("umount", place)
"""


@pytest.fixture
def machine(needs: Needs) -> None:
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    if not Path("/dev/fuse").exists():
        needs.lack("a kernel with FUSE (/dev/fuse)")
    for scenario in SCENARIOS:
        leftovers.remove(leftovers.find(scenario))


@contextmanager
def hanging(script: str, place: Path, seconds: float = HANGS_S) -> Iterator[None]:
    """The fault, from the moment it hangs until it has let go and is gone."""
    place.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + script, str(place), str(seconds)], stdout=subprocess.PIPE, text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "IMAGE": f"{place}.img"},
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "hangs\n"
        yield
        assert process.wait(seconds + 60) == 0


def seen(directory: Path) -> tuple[list[WaitingTask], Diagnosis]:
    with open_recording(directory) as found:
        return waiting(found, found.start_us, found.end_us + 1), diagnose(found, found.start_us, found.end_us + 1)


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.usefixtures("machine")
def test_a_run_of_the_laboratory_names_it_and_leaves_nothing(scenario: str, needs: Needs) -> None:
    for missing in lacks(by_id(scenario)):
        needs.lack(str(missing))
    done = subprocess.run([*LAB, "run", scenario, "--yes", "--json"], capture_output=True, text=True, timeout=200,
                          check=False)  # fmt: skip
    found = json.loads(done.stdout)
    assert found["found"]["pattern"] == scenario, found["found"]
    assert found["pass"] is True, found
    assert not leftovers.find(scenario)
    assert not [one for one in of_the_lab() if scenario in one]
    for table in ("/proc/swaps", "/proc/self/mountinfo"):
        assert f"zombiescope-lab-{scenario}" not in Path(table).read_text()


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_a_daemon_that_hangs_is_named_although_its_callers_are_in_state_s(needs: Needs, tmp_path: Path) -> None:
    needs.binary("unshare", "util-linux")
    # GIVEN a recorder that sees FUSE's connections, as every systemd node mounts them
    mounts = 'mount -t fusectl none /sys/fs/fuse/connections && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", mounts, "sh")
    with recording(tmp_path / "rec", prefix=prefix) as recorder:
        # WHEN tasks ask for a file in another mount namespace, whose daemon hangs for longer than its rounds
        with hanging(LOOKS_UP, tmp_path / "mnt", 75):
            pass
        recorder.stop()
    # THEN they are found in state S, with the mount and the process that serves it
    tasks, found = seen(tmp_path / "rec")
    assert {(task.comm, task.state, task.kind, task.resource) for task in tasks} == {
        ("looker", "S", "fuse", str(tmp_path / "mnt"))
    }
    causes = [incident.causes[0] for incident in found.incidents if incident.causes[0].pattern == "storage-hang"]
    assert causes
    assert causes[0].culprit is not None
    assert causes[0].culprit.comm == "python"


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_a_loop_device_on_a_daemon_that_hangs_stands_still_with_it(needs: Needs, tmp_path: Path) -> None:
    needs.binary("losetup", "mount")
    with recording(tmp_path / "rec") as recorder:
        with hanging(LOOP, tmp_path / "mnt"):
            pass
        recorder.wait_for_frames(2)
        recorder.stop()
    tasks, found = seen(tmp_path / "rec")
    reader = [task for task in tasks if task.comm == "reader"]
    assert {(task.state, task.kind, task.resource) for task in reader} == {("D", "fuse", str(tmp_path / "mnt"))}
    (hang,) = [one for one in found.incidents if one.causes and one.causes[0].pattern == "storage-hang"]
    assert {symptom.kind for symptom in hang.symptoms} >= {"tasks_wait", "disk_stalled"}
    assert str(tmp_path / "mnt") in hang.causes[0].summary


@pytest.mark.long
@pytest.mark.usefixtures("machine")
def test_a_file_system_that_stays_frozen_is_named(needs: Needs, tmp_path: Path) -> None:
    needs.binary("mkfs.ext4", "e2fsprogs")
    with (tmp_path / "mnt.img").open("wb") as image:
        image.truncate(32 << 20)
    with recording(tmp_path / "rec") as recorder:
        with hanging(FROZEN, tmp_path / "mnt", 65):
            pass
        recorder.wait_for_frames(2)
        recorder.stop()
    tasks, found = seen(tmp_path / "rec")
    writer = [task for task in tasks if task.comm == "writer"]
    assert {(task.state, task.kind) for task in writer} == {("D", "frozen")}
    assert (writer[0].resource or "").startswith("loop")
    named = [one.causes[0].summary for one in found.incidents if one.causes and one.causes[0].pattern == "storage-hang"]
    assert any("is frozen" in one for one in named), named


@pytest.mark.usefixtures("machine")
def test_a_sync_of_much_on_a_disk_that_works_is_no_incident(tmp_path: Path) -> None:
    """D for seconds, and progress."""
    work = 'for n in 1 2 3; do head -c 300000000 /dev/zero > "$0/$n" && sync "$0/$n"; done; rm -f "$0"/[123]'
    with recording(tmp_path / "rec") as recorder:
        recorder.wait_for_frames(3)
        subprocess.run(["sh", "-c", work, str(tmp_path)], check=True, timeout=120)
        recorder.wait_for_frames(2)
        recorder.stop()
    _, found = seen(tmp_path / "rec")
    storage = {"tasks_wait", "disk_stalled", "writeback_stalled"}
    loud = [one for one in found.incidents if one.severity != "info" and {s.kind for s in one.symptoms} & storage]
    assert not loud

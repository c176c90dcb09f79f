"""Who waits for what: the thing is named and not its victims, and whatever goes on is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.diagnosis.report.terminal import lines
from zombiescope.store.hangs import hangs

SERVER = "fs-01.internal:/data"
NFS = "entry_SYSCALL_64_after_hwframe;do_syscall_64;nfs_file_read;nfs_readahead;rpc_wait_bit_killable"


def at(second: float) -> int:
    return START_US + round(second * SECOND)


LOOKS = (9, 14, 19)
THREE = (31, 32, 33)


def wait(scene: Scene, kind: str | None, resource: str | None, *, looks: tuple[int, ...] = LOOKS, since: float = 4,
         pids: tuple[int, ...] = THREE, comm: str = "trainer", **known: Any) -> Scene:  # fmt: skip
    for second in looks:
        for pid in pids:
            more = {"alike": len(pids), "wchan": "io_schedule", **known}
            scene.made.wait(at(second), at(since), comm, pid, kind=kind, resource=resource, **more)
    return scene


def disk(scene: Scene, device: str, seconds: range = range(20), **figures: int) -> Scene:
    for second in seconds:
        scene.made.disk(at(second + 1), device, **figures)
    return scene


def only(found: Diagnosis) -> Incident:
    (incident,) = found.incidents
    return incident


def quiet(found: Diagnosis) -> bool:
    return not [one for one in found.incidents if one.severity != "info"]


# --- what is named ---------------------------------------------------------------------------------------------------


def test_tasks_on_a_file_server_that_does_not_answer(tmp_path: Path) -> None:
    # GIVEN two hundred tasks that have waited for NFS since second 4, of which rows say some
    scene = wait(Scene(), "nfs", SERVER, moves=0, alike=200, frames=NFS, wchan="rpc_wait_bit_killable")
    for second in (5, 18):
        scene.made.mount(at(second), "nfs4", SERVER, "/data", answered=1_000, resent=second)
    scene.event("nfs_not_responding", "nfs: server fs-01.internal not responding, still trying", 12, "warning",
                server="fs-01.internal")  # fmt: skip
    # THEN the server is named, not a task; with the kernel's own line in the same incident
    incident = only(scene.diagnose(tmp_path))
    cause = incident.causes[0]
    assert cause.pattern == "storage-hang"
    assert cause.summary.startswith(f"nfs {SERVER} does not answer: 200 tasks wait (trainer) for")
    assert {symptom.kind for symptom in incident.symptoms} == {"tasks_wait", "event"}
    assert cause.culprit is None
    facts = [link.fact for link in cause.chain]
    assert "the server answered 0 requests in that time" in facts
    assert any("nfs_readahead > rpc_wait_bit_killable" in fact for fact in facts)
    assert cause.proof == "kernel"
    assert incident.symptoms[0].victim == "trainer"


def test_a_kind_of_server_that_was_never_seen_to_hang_says_so(tmp_path: Path) -> None:
    scene = wait(Scene(), "lustre", "10.0.0.1@tcp:/scratch", moves=0, alike=20, wchan="ptlrpc_set_wait")
    cause = only(scene.diagnose(tmp_path)).causes[0]
    assert (cause.pattern, cause.proof) == ("storage-hang", "literature")
    assert cause.confidence <= 0.6


def test_a_daemon_of_fuse_is_named_and_what_frees_its_callers(tmp_path: Path) -> None:
    scene = wait(Scene(), "fuse", "/mnt/s3", daemon="s3fs:4711", state="S", wchan="request_wait_answer")
    scene.made.mount(at(15), "fuse.s3fs", "bucket", "/mnt/s3", device="0:52", waiting=7)
    cause = only(scene.diagnose(tmp_path)).causes[0]
    assert (cause.pattern, cause.proof) == ("storage-hang", "kernel")
    assert cause.summary.startswith("the FUSE file system at /mnt/s3 does not answer: 3 tasks wait (trainer) for 15 s")
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.pid) == ("s3fs", 4711)
    steps = [str(step) for step in cause.fix.steps]
    assert any("writing 1 to /sys/fs/fuse/connections/52/abort frees everybody" in step for step in steps)
    assert not [step for step in cause.fix.steps if step.touches], "nothing that changes the node is given to be run"
    assert "its daemon has not answered 7 requests" in [link.fact for link in cause.chain]


def test_a_disk_that_stands_still_is_named_although_nobody_was_seen_waiting(tmp_path: Path) -> None:
    scene = disk(Scene(), "nvme1n1", range(5), reads=50)
    disk(scene, "nvme1n1", range(5, 20), in_flight=31)
    incident = only(scene.diagnose(tmp_path))
    assert incident.causes[0].pattern == "storage-hang"
    assert "the disk nvme1n1 does not answer" in incident.causes[0].summary
    assert [symptom.seconds for symptom in incident.symptoms] == [15.0]


def test_two_disks_are_two_incidents(tmp_path: Path) -> None:
    scene = Scene()
    for device, pid in (("nvme1n1", 31), ("nvme2n1", 41)):
        disk(wait(scene, "disk", device, pids=(pid,), moves=0), device, range(4, 20), in_flight=1)
    named = [incident.causes[0].summary for incident in scene.diagnose(tmp_path).incidents]
    assert len(named) == 2
    assert {"nvme1n1" in one for one in named} == {True, False}


def test_a_loop_device_on_a_mount_that_hangs_is_a_part_of_it(tmp_path: Path) -> None:
    # GIVEN tasks that wait for a loop device, which the recorder traced to the mount that its file is on
    scene = wait(Scene(), "fuse", "/mnt/s3", daemon="s3fs:4711")
    disk(scene, "loop3", range(4, 20), in_flight=9)
    scene.made.mount(at(9), "loop", "/mnt/s3", "loop3", device="fuse.s3fs")
    # AND the kernel's own thread for it, which was not traced
    wait(scene, "disk", "loop3", comm="kworker/u8:3+loop3", pids=(77,), kernel_thread=1)
    # THEN it is one incident, and the mount is named
    incident = only(scene.diagnose(tmp_path))
    assert {symptom.kind for symptom in incident.symptoms} == {"tasks_wait", "disk_stalled"}
    assert incident.causes[0].summary.startswith("the FUSE file system at /mnt/s3 does not answer")


def test_a_hung_task_is_told_with_what_it_waits_for(tmp_path: Path) -> None:
    scene = disk(wait(Scene(), "disk", "sda", since=-120, moves=0), "sda", in_flight=4)
    line = "INFO: task trainer:31 blocked for more than 120 seconds."
    scene.event("hung_task", line, 10, comm="trainer", pid=31, seconds=120)
    incident = only(scene.diagnose(tmp_path))
    assert incident.causes[0].pattern == "storage-hang"
    assert incident.severity == "critical"


def test_a_task_that_waits_for_a_lock_is_told_by_where_it_waits(tmp_path: Path) -> None:
    scene = wait(Scene(), "lock", None, since=-30, pids=(31,), frames="do_syscall_64;rwsem_down_write_slowpath")
    cause = only(scene.diagnose(tmp_path)).causes[0]
    assert cause.pattern == "hung-task"
    assert cause.summary.startswith("trainer waits for a lock in the kernel, for 49 s")


def test_whoever_is_busy_meanwhile_has_nothing_to_do_with_it(tmp_path: Path) -> None:
    # GIVEN a disk that hangs, and a program that takes a core in the kernel in the same seconds
    scene = wait(Scene().vmstat(), "fuse", "/mnt/s3", daemon="s3fs:4711")
    scene.hog("do_syscall_64 __x64_sys_getdents64 iterate_dir offset_readdir", "lister", from_s=2, to_s=18)
    found = scene.diagnose(tmp_path)
    (hang,) = [one for one in found.incidents if one.causes[0].pattern == "storage-hang"]
    assert {symptom.kind for symptom in hang.symptoms} == {"tasks_wait"}
    assert hang.causes[0].hog.comm is None


def test_hostile_names_stay_one_line_and_no_command(tmp_path: Path) -> None:
    name = "-rf /;\x1b[31m\nreboot"
    scene = wait(Scene(), "nfs", f"{name}:/x", comm=name, moves=0)
    found = scene.diagnose(tmp_path)
    cause = only(found).causes[0]
    assert not [step for step in cause.fix.steps if step.command is not None and "reboot" in step.line]
    text = markdown(found, "a node", str)
    assert "\x1b" not in text


# --- what is left alone ----------------------------------------------------------------------------------------------


def test_a_sync_on_a_slow_disk_that_works_is_no_incident(tmp_path: Path) -> None:
    # GIVEN a sync that waits for its journal for 15 s, on a disk that completes a request every second
    scene = wait(Scene(), "journal", "sda", pids=(31,), comm="sync", moves=1, wchan="jbd2_log_wait_commit")
    disk(scene, "sda", in_flight=30, writes=1, written_bytes=4096, busy_ms=1000)
    assert quiet(scene.diagnose(tmp_path))


def test_a_tape_like_disk_that_completes_something_every_eight_seconds_is_no_incident(tmp_path: Path) -> None:
    scene = Scene()
    for second in range(20):
        scene.made.disk(at(second + 1), "st0", in_flight=1, reads=1 if second % 8 == 0 else 0, busy_ms=1000)
    assert scene.diagnose(tmp_path).incidents == ()


def test_a_request_that_is_counted_as_in_flight_for_ever_is_no_incident(tmp_path: Path) -> None:
    assert disk(Scene(), "md127", in_flight=1).diagnose(tmp_path).incidents == ()


def test_a_large_checkpoint_slowed_down_to_its_disk_is_no_incident(tmp_path: Path) -> None:
    scene = wait(Scene(), "writeback", "nvme0n1", moves=1, wchan="balance_dirty_pages", bytes_per_s=130_000_000)
    disk(scene, "nvme0n1", in_flight=64, writes=800, written_bytes=400_000_000, busy_ms=1000)
    assert quiet(scene.diagnose(tmp_path))


def test_a_compile_that_waits_for_pages_is_no_incident(tmp_path: Path) -> None:
    # GIVEN tasks that were each found in a wait twice, and went on before the third look
    scene = Scene()
    for pid, second in ((31, 6), (32, 12), (33, 18)):
        wait(scene, "disk", "vda", looks=(second,), since=second - 5, pids=(pid,), comm="cc1", moves=1)
    disk(scene, "vda", in_flight=2, reads=900, busy_ms=700)
    assert quiet(scene.diagnose(tmp_path))


def test_memory_that_goes_out_and_does_not_come_back_is_no_thrashing(tmp_path: Path) -> None:
    assert quiet(Scene().vmstat(pswpin=20, pswpout=50_000).diagnose(tmp_path))


@pytest.mark.parametrize(("waited_us", "thrashes"), [(40_000, True), (4_000, False)])
def test_thrashing_counts_by_the_core_and_not_by_the_node(tmp_path: Path, waited_us: int, thrashes: bool) -> None:
    # GIVEN sixteen cores that compute, among which the kernel divides the time that tasks waited for memory
    scene = Scene(cpus=16).vmstat(pswpin=20_000, pswpout=20_000)
    scene.counter("pressure", "some_us", waited_us, "memory", calm_per_s=waited_us)
    for cpu in range(16):
        scene.mode(cpu, user=0.9)
    found = scene.diagnose(tmp_path)
    assert ("swap-thrash" in {cause.pattern for one in found.incidents for cause in one.causes}) == thrashes


def test_two_seconds_of_swap_are_no_thrashing(tmp_path: Path) -> None:
    scene = Scene().vmstat(pswpin=1_000, pswpout=1_000)  # for six seconds
    assert quiet(scene.diagnose(tmp_path))


@pytest.mark.parametrize(
    ("kind", "seconds", "moves", "kernel_thread", "expected"),
    [
        ("nfs", 9.0, False, False, False),
        ("nfs", 11.0, False, False, True),
        ("fuse", 11.0, None, False, True),
        ("disk", 60.0, True, False, False),
        ("disk", 121.0, True, False, True),
        ("frozen", 12.0, None, False, False),
        ("frozen", 21.0, None, False, True),
        ("gpu", 20.0, None, False, False),
        ("gpu", 31.0, None, False, True),
        ("lock", 31.0, None, True, False),  # some drivers' threads wait for ever
        ("disk", 11.0, False, True, True),  # a journal's thread on a disk that stands still
        (None, 20.0, None, False, False),
        (None, 31.0, None, False, True),
        ("paused", 9_999.0, None, False, False),
        ("vfork", 9_999.0, None, False, False),
        ("writeback", 9_999.0, True, False, False),
    ],
)
def test_what_counts_as_a_hang(
    kind: str | None, seconds: float, moves: bool | None, kernel_thread: bool, expected: bool
) -> None:
    assert hangs(kind, seconds, moves, kernel_thread=kernel_thread) is expected


def test_the_reports_have_it(tmp_path: Path) -> None:
    found = wait(Scene(), "fuse", "/mnt/s3", daemon="s3fs:4711").diagnose(tmp_path)
    assert "the FUSE file system at /mnt/s3 does not answer" in markdown(found, "a node", str)
    printed = "".join(piece[0] for line in lines(found, str) for piece in (*line.head, *line.text))
    assert "the FUSE file system at /mnt/s3 does not answer" in printed

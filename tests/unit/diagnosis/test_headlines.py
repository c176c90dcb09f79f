"""What the kernel or a driver announces heads its incident, and nobody who merely ran is named beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.incident import Actor, Incident
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.log_formats import event_of

CALL = " ".join(SYSCALL)
WALK = f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
XID = "NVRM: Xid (PCI:0000:81:00): 79, pid=1122, name=python3, GPU has fallen off the bus."


def printed(scene: Scene, text: str, at_s: float = 11, level: int = 3) -> Scene:
    """A line of the kernel's log, as the recorder would keep it."""
    event = event_of(KmsgRecord(level, 0, 1, 1, text))
    assert event is not None
    return scene.event(event.kind, event.text, at_s, event.severity, **event.fields)


def trains(cpus: int) -> Scene:
    """A node that computes on all cores but the first, with a little kernel time of everybody, as any has."""
    scene = Scene(cpus=cpus).vmstat().census(240, 30)
    for cpu in range(1, cpus):
        scene.hog("", "python", cpu=cpu, pid=500 + cpu, from_s=0, to_s=20, share=0.95)
        scene.hog(f"{CALL} do_futex", "python", cpu=cpu, pid=500 + cpu, from_s=0, to_s=20, share=0.05)
    return scene


@pytest.mark.parametrize(
    ("line", "pattern", "headline"),
    [
        (XID, "gpu-fault", "the GPU at 0000:81:00 fell off the bus (Xid 79)"),
        (XID.replace("79", "31"), "gpu-fault",
         "the GPU at 0000:81:00 accessed unmapped memory (MMU fault), in python3 (Xid 31)"),
        ("NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.", "gpu-fault",
         "the GPU at 0000:81:00 fell off the bus (Xid 79)"),
        ("NVRM: Xid (PCI:0000:81:00): 999, whatever", "gpu-fault",
         "the GPU at 0000:81:00 reported an error (Xid 999)"),
        ("pcieport 0000:00:01.0: AER: device recovery failed", "machine-fault",
         "the PCIe port 0000:00:01.0 reported an error"),
        ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "machine-fault",
         "the memory controller MC0 corrected a memory error"),
        ("I/O error, dev nvme1n1, sector 2048 op 0x0:(READ) flags 0x0", "disk-fault",
         "the disk nvme1n1 failed to read or write (I/O error)"),
        ("nvme nvme1: I/O 22 QID 3 timeout, aborting", "disk-fault", "the disk nvme1 did not answer in time"),
        ("INFO: task rsync:42 blocked for more than 120 seconds.", "hung-task",
         "rsync was blocked for more than 120 s and could not be interrupted"),
        ("ena 0000:20:03.0 eth0: The device has detected an unhealthy state, reset is requested", "hardware-nic-reset",
         "the network card eth0 was reset by its driver: the card itself asked for it; the cores that serve it had "
         "time, so look at the card and its host, not at this node"),
        ("Memory cgroup out of memory: Killed process 18513 (python3) total-vm:82092kB, anon-rss:16000kB, file-rss:0kB",
         "oom-kill", None),
        ("Kernel panic - not syncing: Hard LOCKUP", "unknown-kernel-hog",
         "Kernel panic - not syncing: Hard LOCKUP; no known pattern matches"),
        ("watchdog: Watchdog detected hard LOCKUP on cpu 0", "unknown-kernel-hog",
         "core 0 took no interrupt for seconds (hard lockup); no known pattern matches"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cpus", [2, 16])
def test_an_announced_incident_is_headed_by_it_and_has_no_hog(
    line: str, pattern: str, headline: str | None, cpus: int, tmp_path: Path
) -> None:
    (incident,) = printed(trains(cpus), line).diagnose(tmp_path).incidents
    cause = incident.causes[0]
    assert cause.pattern == pattern
    assert headline in (None, cause.summary)
    assert cause.hog == Actor()
    assert "busy" not in cause.summary
    assert not [link for link in cause.chain if link.step == "hog"]
    # AND the line stands there as it was printed
    assert cause.chain[0].fact == line


def test_a_soft_lockup_names_the_core_and_who_held_it(tmp_path: Path) -> None:
    scene = trains(4).hog(f"{CALL} do_something_new", "kubelet", cpu=0, pid=77)
    printed(scene, "watchdog: BUG: soft lockup - CPU#0 stuck for 23s! [kubelet:77]")
    (incident,) = scene.diagnose(tmp_path).incidents
    said = incident.causes[0].summary
    assert said.startswith("core 0 was stuck in the kernel for 23 s: kubelet did not let go of it (soft lockup)")
    assert incident.causes[0].hog.comm == "kubelet"


def test_a_lost_gpu_has_nothing_to_do_with_whoever_walks_cgroups(tmp_path: Path) -> None:
    scene = Scene().vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent").hog(WALK, "kubelet")
    found = printed(scene, XID, 8).diagnose(tmp_path).incidents
    assert {one.causes[0].pattern for one in found} == {"zombie-memcg", "gpu-fault"}
    assert {len(one.symptoms) > 0 and _kinds(one) for one in found} == {"event", "core_saturated kernel_hog"}


def test_two_gpus_are_two_incidents_and_one_that_fails_again_is_one(tmp_path: Path) -> None:
    scene = printed(printed(trains(2), XID, 8), XID.replace("81:00", "41:00"), 8)
    printed(scene, XID, 9)
    found = scene.diagnose(tmp_path).incidents
    assert sorted(one.causes[0].summary.split()[3] for one in found) == ["0000:41:00", "0000:81:00"]


@pytest.mark.parametrize(("code", "severity"), [(13, "warning"), (79, "critical"), (92, "info"), (999, "critical")])
def test_how_bad_an_xid_is_comes_from_its_code(code: int, severity: str, tmp_path: Path) -> None:
    scene = printed(trains(2), f"NVRM: Xid (PCI:0000:81:00): {code}, pid=7, name=train, something")
    (incident,) = scene.diagnose(tmp_path).incidents
    # a cause that is confirmed makes it a warning at least
    assert incident.severity == (severity if severity != "info" else "warning")
    assert (incident.causes[0].culprit is not None) == (severity == "warning")


@pytest.mark.parametrize("severity", ["info", "warning"])
def test_a_line_that_nobody_has_listed_is_no_symptom(severity: str, tmp_path: Path) -> None:
    # GIVEN a storm of forks, and a line that recorders before this one called a warning
    scene = Scene().counter("stat", "processes", 1_000)
    for number in range(20):
        at_s = 5 + number * 0.3
        scene.hog(f"{CALL} kernel_clone copy_process", "sh", pid=5000 + number, ppid=700, from_s=at_s, to_s=at_s + 0.3)
    scene.event("kernel_log", "memory.oom_control is deprecated", 8, severity)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert "deprecated" not in " ".join(link.fact for link in incident.causes[0].chain)
    assert "event" not in {symptom.kind for symptom in incident.symptoms}


def test_such_a_line_alone_is_no_incident(tmp_path: Path) -> None:
    assert printed(trains(2), "memory.oom_control is deprecated", level=4).diagnose(tmp_path).incidents == ()


# --- the card and the cores that serve it ----------------------------------------------------------------------------

RESET = "ena 0000:20:03.0 eth0: Trigger reset is on"
KEEP_ALIVE = "ena 0000:20:03.0 eth0: Keep alive watchdog timeout, 6004 msecs since last keep alive."


@pytest.mark.parametrize("cpus", [2, 16, 192])
def test_training_on_the_cores_that_serve_the_card_refutes_nothing(cpus: int, tmp_path: Path) -> None:
    (incident,) = printed(trains(cpus).serves("eth0", f"0-{cpus - 1}"), RESET).diagnose(tmp_path).incidents
    assert [cause.pattern for cause in incident.causes] == ["hardware-nic-reset"]


@pytest.mark.parametrize("cpus", [2, 16])
def test_kernel_work_on_a_core_that_serves_the_card_refutes_it(cpus: int, tmp_path: Path) -> None:
    scene = trains(cpus).serves("eth0", "0").hog(f"{CALL} do_something_new", "kubelet", cpu=0, pid=77)
    (incident,) = printed(scene, KEEP_ALIVE).diagnose(tmp_path).incidents
    assert "hardware-nic-reset" in {one.pattern for one in incident.ruled_out}
    assert incident.causes[0].hog.comm == "kubelet"


@pytest.mark.parametrize("cpus", [2, 16])
def test_kernel_work_on_another_core_is_another_incident(cpus: int, tmp_path: Path) -> None:
    scene = trains(cpus).serves("eth0", "1").hog(f"{CALL} do_something_new", "kubelet", cpu=0, pid=77)
    found = printed(scene, KEEP_ALIVE).diagnose(tmp_path).incidents
    assert [one.causes[0].pattern for one in found] == ["hardware-nic-reset", "unknown-kernel-hog"]
    assert found[0].causes[0].hog == Actor()


def test_where_it_is_not_known_which_cores_serve_it_nothing_is_refuted(tmp_path: Path) -> None:
    scene = trains(4).hog(f"{CALL} do_something_new", "kubelet", cpu=0, pid=77)
    (incident,) = printed(scene, RESET).diagnose(tmp_path).incidents
    assert "hardware-nic-reset" not in {one.pattern for one in incident.ruled_out}


def test_a_driver_that_names_the_device_wins_over_a_core_that_was_held(tmp_path: Path) -> None:
    scene = trains(4).census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent").serves("eth0", "0")
    scene.hog(WALK, "kubelet", cpu=0, pid=77)
    printed(scene, "ena 0000:20:03.0 eth0: The device has detected an unhealthy state, reset is requested", 10.5)
    found = printed(scene, RESET, 10.6).diagnose(tmp_path).incidents
    by_pattern = {one.causes[0].pattern: one for one in found}
    assert by_pattern.keys() == {"hardware-nic-reset", "zombie-memcg"}
    assert len(by_pattern["hardware-nic-reset"].symptoms) == 2


def test_the_core_that_noticed_a_timeout_is_not_the_core_that_caused_it(tmp_path: Path) -> None:
    """Since kernel 6.5 the watchdog says on which core it ran."""
    scene = Scene().vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent").hog(WALK, "kubelet")
    printed(scene, "ena 0000:20:03.0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 1 timed out 5123 ms")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "zombie-memcg"


def _kinds(incident: Incident) -> str:
    return " ".join(sorted({symptom.kind for symptom in incident.symptoms}))


# --- the first sentence ----------------------------------------------------------------------------------------------


def first_sentence(scene: Scene, place: Path) -> str:
    return scene.diagnose(place).incidents[0].causes[0].summary


@pytest.mark.parametrize("cpus", [2, 16, 192])
def test_the_first_clause_says_what_was_lost(cpus: int, tmp_path: Path) -> None:
    scene = Scene(cpus=cpus).vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    assert first_sentence(scene.hog(WALK, "kubelet"), tmp_path) == (
        "core 1 starved for 6 s: kubelet walks 68,440 dead memory cgroups leaked by ecs-agent (240 in use)"
    )


def test_several_lost_cores_are_counted(tmp_path: Path) -> None:
    scene = Scene(cpus=8).vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    for cpu in (1, 2, 3):
        scene.hog(WALK, "kubelet", cpu=cpu, tid=1200 + cpu, unit="kubelet.service")
    assert first_sentence(scene, tmp_path).startswith("3 cores starved for up to 6 s: kubelet (kubelet.service) ")


def test_groups_are_plural_and_have_names(tmp_path: Path) -> None:
    scene = Scene(cores=False)
    for number in range(12):
        at_s = 5 + number * 0.5
        scene.hog(f"{CALL} do_something_new", "worker", pid=5000 + number, ppid=700, from_s=at_s, to_s=at_s + 0.5)
    found = scene.diagnose(tmp_path).incidents[0]
    assert found.causes[0].summary.startswith("12 tasks named worker were busy in the kernel")
    assert [symptom.text for symptom in found.symptoms if symptom.kind == "kernel_hog"] == [
        "12 tasks named worker used 1.00 cores in the kernel for 6.0 s, on core 1"
    ]


@pytest.mark.parametrize(("parent", "named"), [(True, "make"), (False, "a process that was not sampled")])
def test_the_children_of_one_parent_are_called_so(parent: bool, named: str, tmp_path: Path) -> None:
    scene = Scene(cores=False)
    for number in range(12):
        at_s, comm = 5 + number * 0.5, f"cc{number}"
        scene.hog(f"{CALL} do_something_new", comm, pid=5000 + number, ppid=700, from_s=at_s, to_s=at_s + 0.5)
    if parent:
        scene.hog("", "make", pid=700, cpu=0, share=0.1)
    texts = [symptom.text for one in scene.diagnose(tmp_path).incidents for symptom in one.symptoms]
    assert any(text.startswith(f"the children of {named} used ") for text in texts), texts
    assert not [text for text in texts if "pid" in text]

"""The machine itself: heat, memory, PCIe, clocks, lockups, limits. What a healthy one does raises no warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.scenes import Scene

from zombiescope.diagnosis import printed_stacks
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.log_formats import event_of
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording


def log(scene: Scene, *lines: str, at_s: float = 11) -> Scene:
    """Lines as the kernel prints them, through the tables that the recorder uses."""
    for line in lines:
        event = event_of(KmsgRecord(3, 0, 1, 1, line))
        if event is not None:
            fields = {**event.fields, "line": event.known} if event.known else event.fields
            scene.event(event.kind, event.text, at_s=at_s, severity=event.severity, **fields)
    return scene


def minutes(node: Node, place: Path) -> Diagnosis:
    write_segment(place, node.tables)
    with open_recording(place) as recording:
        return diagnose(recording, recording.start_us, recording.end_us + 1)


def at(reading: int) -> int:
    return START_US + (reading + 1) * 10 * SECOND


# --- heat ------------------------------------------------------------------------------------------------------------


def heated(readings: range, added: int, name: str) -> Node:
    node = Node()
    alive = node.series("vmstat", "pgfault")
    number = node.series("thermal", name, "package 1")
    for reading in range(60):
        node.count(at(reading), alive, 1000)
        if reading in readings:
            node.count(at(reading), number, added)
    return node


@pytest.mark.parametrize(
    ("name", "added"), [("package_throttle_total_time_ms", 3000), ("core_throttle_count", 40)]
)  # fmt: skip
def test_heat_that_lasts_is_told_with_its_package(name: str, added: int, tmp_path: Path) -> None:
    [incident] = minutes(heated(range(30, 36), added, name), tmp_path).incidents
    assert (incident.severity, incident.causes[0].pattern) == ("warning", "cpu-throttled")
    assert "package 1" in incident.causes[0].summary
    assert incident.causes[0].confidence <= 0.6


@pytest.mark.parametrize(
    ("name", "added"), [("package_throttle_total_time_ms", 300), ("core_throttle_count", 4)]
)  # fmt: skip
def test_a_short_blip_is_nothing(name: str, added: int, tmp_path: Path) -> None:
    assert minutes(heated(range(30, 31), added, name), tmp_path).incidents == ()


def test_the_new_wording_lasts_and_the_old_one_may_be_a_blip(tmp_path: Path) -> None:
    old = "CPU12: Package temperature above threshold, cpu clock throttled (total events = 3)"
    new = "CPU12: Package temperature is above threshold, cpu clock is throttled (total events = 3)"
    assert (
        log(Scene(), old, f"mce: {old}", "CPU12: Core temperature/speed normal").diagnose(tmp_path / "o").incidents
        == ()
    )
    [incident] = log(Scene(), new).diagnose(tmp_path / "n").incidents
    assert incident.causes[0].pattern == "cpu-throttled"


# --- errors of the hardware ------------------------------------------------------------------------------------------

CE = "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x4a1 offset:0x0)"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (CE.replace(" CE ", " UE "), "the memory module CPU_SrcID#0_MC#0_Chan#1_DIMM#0 could not correct"),
        ("pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:18:00.0", "PCIe device 0000:18:00.0"),
        (
            "pcieport 0000:00:01.0: AER: Multiple Uncorrectable (Non-Fatal) error message received from 0000:18:00.0",
            "PCIe device 0000:18:00.0",
        ),
        ("mce: [Hardware Error]: CPU 5: Machine Check Exception: 5 Bank 8: be00000000800400", "core 5"),
        (
            "Memory failure: 0x4a1fe: Sending SIGBUS to python3:4711 due to hardware memory corruption",
            "page 0x4a1fe, and python3 was killed",
        ),
        ("{1}[Hardware Error]: event severity: fatal", "the hardware reported an error"),
        ("mlx5_core 0000:18:00.0: Port module event[error]: module 0, Cable error, High Temperature", "0000:18:00.0"),
    ],
)
def test_what_was_not_corrected_is_told_with_the_name_of_the_part(line: str, names: str, tmp_path: Path) -> None:
    [incident] = log(Scene(), line).diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "machine-fault"
    assert names in incident.causes[0].summary


@pytest.mark.parametrize(
    "line",
    [
        CE,
        "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
        "pcieport 0000:00:01.0: AER: Correctable error message received from 0000:01:00.0",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        "pcieport 0000:00:01.0: AER: enabled with IRQ 25",
        "mce: [Hardware Error]: Machine check events logged",
        "mce: [Hardware Error]: CPU 5: Machine Check: 0 Bank 8: 8c00004000010093",
        "{1}[Hardware Error]: event severity: corrected",
        "CPU3: Package power limit notification (total events = 12)",
        "clocksource: Switched to clocksource tsc",
        "mlx5_core 0000:18:00.0: mlx5_pcie_event:304:(pid 1290): Detected insufficient power on the PCIe slot (27W).",
    ],
)
def test_one_line_of_a_healthy_machine_raises_nothing(line: str, tmp_path: Path) -> None:
    assert log(Scene(), line).diagnose(tmp_path).incidents == ()


def test_errors_that_are_corrected_again_and_again_are_told_with_the_module(tmp_path: Path) -> None:
    scene = Scene()
    for second in range(12):
        log(scene, CE, at_s=4 + second)
    [incident] = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "machine-fault"
    assert "CPU_SrcID#0_MC#0_Chan#1_DIMM#0" in incident.causes[0].summary


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the skew is",
        "clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable because the skew is too large:",
        "Clocksource tsc unstable (delta = 62504512 ns)",
        "tsc: Marking TSC unstable due to clocksource watchdog",
    ],
)
def test_a_clock_that_was_given_up_is_told(line: str, tmp_path: Path) -> None:
    scene = log(Scene(), line).gauge("clocksource", "current", 1, "hpet")
    [incident] = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "clocksource-fallback"
    assert "hpet" in incident.causes[0].summary


def test_a_late_watchdog_is_no_bad_clock(tmp_path: Path) -> None:
    line = "clocksource: timekeeping watchdog on CPU3: wd-tsc-wd excessive read-back delay of 1234000ns vs. limit"
    assert log(Scene(), line).diagnose(tmp_path).incidents == ()


def test_a_slow_clock_from_the_start_is_a_remark(tmp_path: Path) -> None:
    remarks = Scene().gauge("clocksource", "current", 1, "acpi_pm").diagnose(tmp_path).remarks
    assert [one.kind for one in remarks] == ["slow_clock"]
    assert Scene().gauge("clocksource", "current", 1, "kvm-clock").diagnose(tmp_path / "kvm").remarks == ()


# --- lockups ---------------------------------------------------------------------------------------------------------

SOFT = (
    "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [kubelet:4711]",
    "Modules linked in: nvidia_uvm(OE) veth xt_conntrack",
    "CPU: 3 PID: 4711 Comm: kubelet Tainted: G             L    5.4.0-1024-aws #24",
    "RIP: 0010:mem_cgroup_nr_lru_pages+0x45/0x90",
    "Call Trace:",
    " ? __switch_to_asm+0x34/0x70",
    " memcg_numa_stat_show+0x17b/0x1f0",
    " seq_read+0xf6/0x400",
)
SPINS = (
    "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [python3:811]",
    "CPU: 3 UID: 0 PID: 811 Comm: python3 Not tainted 6.18.0 #1",
    "RIP: 0010:native_queued_spin_lock_slowpath+0x64/0x2a0",
    "Call Trace:",
    " <TASK>",
    " _raw_spin_lock+0x29/0x30",
    " lock_for_everybody+0x10/0x20",
    "NMI backtrace for cpu 7",
    "CPU: 7 UID: 0 PID: 77 Comm: leaky agent Not tainted 6.18.0 #1",
    "RIP: 0010:holds_it+0x11/0x20",
    " walks_all+0x1/0x2 [leaky]",
)
OLD = (
    "BUG: soft lockup - CPU#3 stuck for 22s! [java:4242]",
    "CPU: 3 PID: 4242 Comm: java Not tainted 3.10.0-1160.el7.x86_64 #1",
    "RIP: 0010:[<ffffffff8118b1a0>]  [<ffffffff8118b1a0>] shrink_slab+0x20/0x30",
    "Call Trace:",
    " [<ffffffff8118b1f0>] ? do_try_to_free_pages+0x1/0x2",
    " [<ffffffff8118b200>] try_to_free_pages+0x10/0x20",
)
RCU = (
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "rcu: \t5-....: (5249 ticks this GP) idle=2f5c/1/0x4000000000000000 softirq=309/309 fqs=2563",
    "\t(detected by 2, t=5252 jiffies, g=9229, q=11)",
    "Sending NMI from CPU 2 to CPUs 5:",
    "NMI backtrace for cpu 5",
    "CPU: 5 PID: 99 Comm: bad_driver Not tainted 6.1.0 #1",
    "pc : endless_loop+0x1b4/0x370",
)


@pytest.mark.parametrize(
    ("lines", "culprit", "function"),
    [
        (SOFT, "kubelet", "mem_cgroup_nr_lru_pages"),
        (SPINS, "leaky agent", "holds_it"),
        (OLD, "java", "shrink_slab"),
        (RCU, "bad_driver", "endless_loop"),
    ],
    ids=["5.4", "6.18 spinning", "3.10", "rcu, arm64"],
)
def test_the_culprit_is_in_the_stack_that_the_kernel_printed(
    lines: tuple[str, ...], culprit: str, function: str, tmp_path: Path
) -> None:
    found = log(Scene(), *lines).diagnose(tmp_path).incidents
    [cause] = [cause for incident in found for cause in incident.causes if cause.pattern == "lockup"]
    assert culprit in cause.summary
    assert function in cause.summary
    assert any(function in link.fact for link in cause.chain)


def test_who_spins_is_a_victim_and_nobody_is_blamed_where_no_holder_was_printed(tmp_path: Path) -> None:
    found = log(Scene(), *SPINS[:7]).diagnose(tmp_path).incidents
    [cause] = [cause for incident in found for cause in incident.causes if cause.pattern == "lockup"]
    assert cause.culprit is None
    assert "waits in native_queued_spin_lock_slowpath" in cause.summary


def test_a_hostile_command_name_and_a_flood_of_stacks_are_bounded() -> None:
    nasty = "CPU: 3 PID: 4711 Comm: Comm: x\x1b[31m PID: 9 Tainted: G L 5.4"
    events = [Event(n, "kernel_log", "kmsg", "info", nasty if n % 3 == 0 else f" f{n}+0x1/0x2") for n in range(20_000)]
    stacks = printed_stacks.printed(events, 0, 20_000)
    assert len(stacks) <= printed_stacks.MOST_BLOCKS
    assert all(len(one.frames) <= printed_stacks.MOST_FRAMES for one in stacks)
    assert printed_stacks.culprit([], 3) is None


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "severity"), [(10_000, None), (27_000, None), (28_500, "warning"), (32_700, "critical")]
)  # fmt: skip
def test_tasks_near_their_limit_are_told(used: int, severity: str | None, tmp_path: Path) -> None:
    scene = Scene().gauge("loadavg", "tasks", used).gauge("limits", "pid_max", 32_768)
    scene.gauge("limits", "threads_max", 200_000)
    found = scene.diagnose(tmp_path).incidents
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all(one.causes[0].pattern == "limit-exhausted" for one in found)


def test_open_files_near_their_limit_are_told(tmp_path: Path) -> None:
    scene = Scene().gauge("limits", "files_open", 900_000).gauge("limits", "files_max", 1_000_000)
    [incident] = scene.diagnose(tmp_path).incidents
    assert "open files" in incident.causes[0].summary


def test_a_rejected_fork_names_the_cgroup(tmp_path: Path) -> None:
    [incident] = log(Scene(), "cgroup: fork rejected by pids controller in /kubepods/pod1").diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "limit-exhausted"
    assert incident.causes[0].culprit is not None
    assert incident.causes[0].culprit.cgroup == "/kubepods/pod1"


# --- memory of the kernel, NUMA --------------------------------------------------------------------------------------


def grown(per_reading: int, available: int, reclaimed: bool = False) -> Node:
    node = Node()
    total, free, slab = (
        node.series("meminfo", name, None, "gauge")
        for name in ("mem_total_bytes", "mem_available_bytes", "slab_unreclaimable_bytes")
    )
    for reading in range(60):
        saw = reading % 20 if reclaimed else reading
        for number, value in ((total, 1 << 40), (free, available), (slab, (10 << 30) + saw * per_reading)):
            node.count(at(reading), number, value)
    return node


def test_slab_that_grows_without_end_is_told_by_when_memory_is_gone(tmp_path: Path) -> None:
    [incident] = minutes(grown(1 << 30, 200 << 30), tmp_path).incidents
    assert incident.causes[0].pattern == "slab-growth"
    assert "memory lasts 0.6 h" in incident.causes[0].summary


def test_slab_that_is_given_back_or_lasts_for_days_is_nothing(tmp_path: Path) -> None:
    assert minutes(grown(1 << 30, 200 << 30, reclaimed=True), tmp_path / "saw").incidents == ()
    assert minutes(grown(1 << 20, 900 << 30), tmp_path / "slow").incidents == ()


def test_a_node_that_is_full_of_files_while_nothing_misses_is_nothing(tmp_path: Path) -> None:
    scene = Scene()
    for node, free in (("node 0", 1 << 30), ("node 1", 90 << 30)):
        scene.gauge("numa_memory", "total_bytes", 128 << 30, node).gauge("numa_memory", "free_bytes", free, node)
        scene.counter("numa", "numa_hit", 50_000, node, calm_per_s=50_000)
        scene.counter("numa", "numa_miss", 20, node, calm_per_s=20)
    assert scene.diagnose(tmp_path).incidents == ()


# --- AMD and Arm: cooling devices and frequencies --------------------------------------------------------------------


def running(busy: int, **levels: list[int]) -> Node:
    """Ten minutes on sixteen cores of one package; each level is read every ten seconds and written when it changes."""
    node = Node()
    alive = node.series("vmstat", "pgfault")
    for reading in range(60):
        node.count(at(reading), alive, 1000)
        for name, values in levels.items():
            number = node.series("cpufreq", name, "node" if name == "cooled" else "package 0", "gauge")
            if reading < len(values) and (reading == 0 or values[reading] != values[reading - 1]):
                node.count(at(reading), number, values[reading])
        for second in range(10):
            for cpu in range(4):
                node.core(at(reading) - (9 - second) * SECOND, cpu, user=busy * 10, idle_ms=1000 - busy * 10)
    return node


FULL, LOW = 3_700_000, 1_400_000


@pytest.mark.parametrize(
    ("busy", "levels", "said"),
    [
        (90, {"cooled": [0] * 30 + [2] * 6 + [0]}, "the cooling of 2 processors is on"),
        (90, {"limit": [FULL] * 30 + [LOW] * 30}, "the frequency limit of package 0 fell from 3.70 GHz to 1.40 GHz"),
        (90, {"base": [2_400_000], "speed": [FULL, FULL + 1] * 15 + [LOW] * 6 + [FULL]}, "ran at 1.40 GHz for 60 s"),
        (90, {"cooled": [0] * 30 + [1] + [0]}, None),
        (90, {"limit": [FULL] * 60}, None),
        (90, {"limit": [LOW] * 60}, None),
        (5, {"base": [2_400_000], "speed": [FULL] * 30 + [LOW] * 30}, None),
        (90, {"speed": [FULL] * 30 + [LOW] * 30}, None),
    ],
    ids=["cooling", "limit fell", "slow and busy", "a blip", "no limit", "always limited", "slow and idle", "no base"],
)
def test_a_processor_without_counters_of_heat_shows_it_by_its_frequencies(
    tmp_path: Path, busy: int, levels: dict[str, list[int]], said: str | None
) -> None:
    found = minutes(running(busy, **levels), tmp_path).incidents
    told = [(one.causes[0].pattern, one.causes[0].summary) for one in found if one.causes]
    if said is None:
        assert "cpu-throttled" not in {pattern for pattern, _ in told}
        return
    [(pattern, summary)] = told
    assert pattern == "cpu-throttled"
    assert said in summary

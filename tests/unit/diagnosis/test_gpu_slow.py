"""A GPU that is slow by itself, one whose input is too slow, and those that only look like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.training import FROM_S, TO_S, TRAINER, WORKER, Training

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Incident

WIDTHS = [(2, 1), (16, 1), (192, 16)]


def only(found: Diagnosis) -> Incident:
    (incident,) = found.incidents
    return incident


def read_every(node: Training, every_s: int, gpu: int = 0, **figures: Any) -> Training:
    """As the driver is asked: a counter has what came since the last reading, and the seconds between have nothing."""
    for second in range(0, 60, every_s):
        hurts = FROM_S < second <= TO_S
        node.slowed(gpu, second, second + 1, **{k: v * every_s if hurts else 0 for k, v in figures.items()})
    return node


@pytest.mark.parametrize(("cpus", "gpus"), WIDTHS)
@pytest.mark.parametrize(("counter", "said"), [("hw_thermal_ns", "too hot"), ("power_brake_ns", "power brake")])
def test_clocks_that_are_held_down_are_the_gpus_own(
    counter: str, said: str, cpus: int, gpus: int, tmp_path: Path
) -> None:
    last = gpus - 1
    node = read_every(Training(cpus=cpus, gpus=gpus), 5, last, **{counter: 800_000_000}).use(last, 50)
    incident = only(node.diagnose(tmp_path))
    cause = incident.causes[0]
    assert (cause.pattern, incident.severity) == ("gpu-slow", "warning")
    assert cause.summary.startswith(f"GPU {last} held its clocks down for 8 s: ")
    assert said in cause.summary
    assert (cause.hog.comm, cause.culprit) == (None, None)
    assert incident.cost is None or incident.cost.losses == ()


@pytest.mark.parametrize("figures", [{"power_cap_ns": 900_000_000}, {"sync_boost_ns": 900_000_000}, {"reasons": 4}])
def test_a_power_cap_is_what_full_load_looks_like(figures: dict[str, int], tmp_path: Path) -> None:
    node = Training(usual=99)
    node.slowed(0, 0, 60, **figures)
    assert node.diagnose(tmp_path).incidents == ()


def test_heat_that_the_driver_regulates_is_one_where_the_clock_fell(tmp_path: Path) -> None:
    same = Training().slowed(0, 0, 60, clock_sm_mhz=1900, sw_thermal_ns=900_000_000)
    assert same.diagnose(tmp_path / "same").incidents == ()
    fell = Training().slowed(0, 0, 60, clock_sm_mhz=1900, sw_thermal_ns=0)
    fell.slowed(0, clock_sm_mhz=1200, sw_thermal_ns=900_000_000, temperature_c=88)
    incident = only(fell.diagnose(tmp_path / "fell"))
    assert incident.causes[0].summary.endswith("its driver keeps it from getting too hot, at 88 °C")


def test_where_nothing_is_counted_the_reasons_tell(tmp_path: Path) -> None:
    node = Training().slowed(0, 0, 60, reasons=0).slowed(0, reasons=0x8)
    assert "slowdown" in only(node.diagnose(tmp_path)).causes[0].summary


@pytest.mark.parametrize(
    ("change", "said", "severity"),
    [
        ({"ecc_uncorrected": 2}, "GPU 0 had 2 memory errors that could not be corrected", "warning"),
        ({"remap_failed": 1}, "GPU 0 could not replace a bad row of its memory", "critical"),
        ({"state": "lost"}, "GPU 0 is lost: its driver does not reach it any more", "critical"),
        ({"recovery_action": 2}, "the driver of GPU 0 asks for a recovery (reboot)", "critical"),
    ],
)
def test_what_changed_about_a_gpu(change: dict[str, Any], said: str, severity: str, tmp_path: Path) -> None:
    node = Training()
    node.node.gpu(START_US + 41 * SECOND, 0, **change)
    incident = only(node.diagnose(tmp_path))
    assert (incident.causes[0].summary, incident.severity) == (said, severity)
    assert incident.causes[0].fix.summary


def test_what_was_so_before_and_what_we_could_not_read_are_no_incident(tmp_path: Path) -> None:
    node = Training()
    node.node.tables["gpus"] = []
    for at_s in (0, 30, 41):
        node.node.gpu(START_US + at_s * SECOND, 0, ecc_uncorrected=7, ecc_corrected=at_s, remap_pending=1)
    node.node.gpu(START_US + 42 * SECOND, 0, state="unreadable", ecc_uncorrected=None, ecc_corrected=None)
    node.node.gpu(START_US + 44 * SECOND, 0, ecc_uncorrected=0)
    assert node.diagnose(tmp_path).incidents == ()


# --- the input -------------------------------------------------------------------------------------------------------


def fed(cpus: int, busy: float, during: float | None = None) -> Training:
    """A trainer with four workers, on cores of their own."""
    node = Training(cpus=cpus, usual=50)
    for number in range(4):
        pid, cpu = WORKER + 10 + number, (8 + number) % cpus
        node.runs(pid, "pt_data_worker", cpu, busy, ppid=TRAINER)
        if during is not None:
            node.runs(pid, "pt_data_worker", cpu, during, FROM_S, TO_S + 5)
    node.runs(WORKER, "pt_data_worker", 6, 0.0)
    return node


@pytest.mark.parametrize("cpus", [16, 192])
def test_a_job_that_always_waits_for_its_input_is_a_note(cpus: int, tmp_path: Path) -> None:
    found = fed(cpus, 0.99).diagnose(tmp_path)
    assert found.incidents == ()
    (note,) = found.noted
    assert note.startswith("GPU 0 (train.py) waits for its input: its 4 workers ran 9")


@pytest.mark.parametrize("cpus", [16, 192])
def test_an_input_that_became_too_slow_is_an_incident_without_a_hog(cpus: int, tmp_path: Path) -> None:
    incident = only(fed(cpus, 0.5, 0.99).use(0, 20, FROM_S, TO_S + 5).diagnose(tmp_path))
    cause = incident.causes[0]
    assert (cause.pattern, incident.severity, cause.culprit) == ("input-bound", "warning", None)
    assert cause.summary == "the input of GPU 0 became too slow: its 4 workers are busy all the time"


def test_an_evaluation_has_workers_of_its_own(tmp_path: Path) -> None:
    node = fed(16, 0.5, 0.0).use(0, 20, FROM_S, TO_S + 5)
    for number in range(4):
        node.runs(WORKER + 50 + number, "pt_data_worker", 12 + number, 0.99, FROM_S, TO_S + 5, ppid=TRAINER)
    found = node.diagnose(tmp_path)
    assert (found.incidents, found.noted) == ((), ())


def test_workers_with_time_to_spare_are_not_the_limit(tmp_path: Path) -> None:
    found = fed(16, 0.5).use(0, 20).diagnose(tmp_path)
    assert (found.incidents, found.noted) == ((), ())


# --- clocks that somebody locked --------------------------------------------------------------------------------------


def locked(mhz: int = 345, reasons: int = 0, celsius: int = 37, limit: int | None = 87, used: int = 97) -> Training:
    """As nvidia-smi -lgc 345,345 leaves it from second 20 on: read every ten seconds, and counted as thermal."""
    node = Training(usual=used)
    for second in range(0, 60, 10):
        low = second >= 20
        node.slowed(0, second, second + 1, clock_sm_mhz=mhz if low else 1980, temperature_c=celsius, reasons=reasons,
                    sw_thermal_ns=9_900_000_000 if low else 0, hw_thermal_ns=0, power_brake_ns=0)  # fmt: skip
    if limit is not None:
        node.node.count(START_US + SECOND, node.node.series("gpu", "slowdown_c", "0", "gauge"), limit)
    return node


@pytest.mark.parametrize("limit", [87, None])
@pytest.mark.parametrize("reasons", [0, 0x2, 0x20, 0x40])
def test_locked_clocks_are_named_and_not_called_heat(reasons: int, limit: int | None, tmp_path: Path) -> None:
    incident = only(locked(reasons=reasons, limit=limit).diagnose(tmp_path))
    cause = incident.causes[0]
    how, reset = ("application clocks are set", "-rac") if reasons == 0x2 else ("clocks are locked", "-rgc")
    known = "limit 87 °C" if limit else "its limit is not known"
    assert (cause.pattern, incident.severity, cause.culprit) == ("gpu-clocks-locked", "warning", None)
    assert cause.summary == (
        f"GPU 0 runs at 345 of 1,980 MHz while it is used, at 37 °C ({known}), and no power limit is active: "
        f"its {how} to 345 MHz"
    )
    assert any(reset in step.command for step in cause.fix.steps if step.command)
    assert {"gpu-slow", "unknown-kernel-hog"}.isdisjoint(one.pattern for one in incident.causes)


@pytest.mark.parametrize(
    "figures",
    [
        {"reasons": 0x4},  # a power limit
        {"reasons": 0x1},  # idle, by its own account
        {"used": 1},
        {"mhz": 1410},  # locked, and not low
        {"mhz": 1905},
    ],
)
def test_clocks_that_something_else_explains_are_not_locked(figures: dict[str, int], tmp_path: Path) -> None:
    assert locked(**figures).diagnose(tmp_path).incidents == ()


def test_a_hot_gpu_is_slow_for_heat_whatever_its_clock(tmp_path: Path) -> None:
    node = locked(celsius=86, reasons=0x40).slowed(0, 20, 60, hw_thermal_ns=900_000_000)
    incident = only(node.diagnose(tmp_path))
    assert incident.causes[0].pattern == "gpu-slow"
    assert "too hot, at 86 °C" in incident.causes[0].summary


def test_what_the_driver_counts_as_heat_of_a_cool_gpu_is_no_incident(tmp_path: Path) -> None:
    node = read_every(Training(), 5, hw_thermal_ns=900_000_000).slowed(0, 0, 60, temperature_c=37)
    assert node.diagnose(tmp_path).incidents == ()


def test_an_event_of_throttling_is_no_incident_of_its_own(tmp_path: Path) -> None:
    """Recordings made so far hold it as a warning; what was measured decides."""
    node = Training()
    text = "GPU 0 ran with lowered clocks for 9.9 of 10 s: it is too hot (hardware slowdown), 37 °C"
    node.node.happen(START_US + 41 * SECOND, "gpu_throttled", "gpu", "warning", text, gpu=0, reason="hw_thermal")
    assert node.diagnose(tmp_path).incidents == ()

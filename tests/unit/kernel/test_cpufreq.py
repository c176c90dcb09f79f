"""Frequencies, limits and cooling of AMD, Arm and Intel machines; a machine that has none of it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.kernel import cpufreq, host
from zombiescope.recorder.hardware import has_hardware
from zombiescope.recorder.hardware_reader import HardwareReader


def put(root: Path, path: str, value: object) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{value}\n")


def machine(root: Path, *, limit: int = 3_700_000, base: int | None = None) -> str:
    """Two packages of two cores: the first core of each is the faster."""
    for cpu in range(4):
        place = f"sys/devices/system/cpu/cpu{cpu}"
        put(root, f"{place}/topology/physical_package_id", cpu // 2)
        put(root, f"{place}/cpufreq/cpuinfo_max_freq", 3_700_000)
        put(root, f"{place}/cpufreq/scaling_max_freq", limit)
        put(root, f"{place}/cpufreq/scaling_cur_freq", 3_000_000 - cpu % 2 * 1_000_000)
        if base is not None:
            put(root, f"{place}/cpufreq/base_frequency", base)
    return f"{root}/"


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, release: str) -> None:
    here = host.read()
    fields = {**{one: getattr(here, one) for one in here.__dataclass_fields__}, "machine": name, "release": release}
    monkeypatch.setattr(host, "read", lambda *_: type(here)(**fields))


def test_an_epyc_has_speeds_limits_and_boost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86_64", "6.8.0")
    root = machine(tmp_path)
    put(tmp_path, "sys/devices/system/cpu/cpufreq/boost", 0)
    put(tmp_path, "sys/class/thermal/cooling_device0/type", "Processor")
    put(tmp_path, "sys/class/thermal/cooling_device0/cur_state", 2)
    put(tmp_path, "sys/class/thermal/cooling_device1/type", "Fan")
    put(tmp_path, "sys/class/thermal/cooling_device1/cur_state", 7)
    places = cpufreq.places(root)
    assert places is not None
    one = {"limit": 3_700_000, "most": 3_700_000, "speed": 3_000_000}
    assert cpufreq.read(places, root) == {0: one, 1: one, None: {"cooled": 1, "boost": 0}}
    assert cpufreq.highest_khz(root) == 3_700_000


@pytest.mark.parametrize(("name", "release"), [("aarch64", "6.8.0"), ("x86_64", "5.15.0")])
def test_a_speed_that_interrupts_its_core_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, release: str
) -> None:
    pretend(monkeypatch, name, release)
    places = cpufreq.places(machine(tmp_path, limit=2_000_000))
    assert places is not None
    assert cpufreq.read(places, f"{tmp_path}/")[0] == {"limit": 2_000_000, "most": 3_700_000}


def test_a_virtual_machine_has_none(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/system/cpu/cpu0/topology/core_id", 0)
    assert cpufreq.places(f"{tmp_path}/") is None
    assert not has_hardware(f"{tmp_path}/")


def test_the_reader_of_the_hardware_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86_64", "6.8.0")
    root = machine(tmp_path, base=2_400_000)
    assert has_hardware(root)
    found = HardwareReader(root, set())._frequencies()
    assert ("cpufreq", "base", "package 1", 2_400_000, True) in found
    assert ("cpufreq", "speed", "package 0", 3_000_000, True) in found

"""NVML through ctypes: what the library says becomes numbers and texts, what it refuses an error with its code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.helpers.nvml_stand_in import StandIn

from zombiescope.kernel import gpu_driver, nvml_codes
from zombiescope.kernel.nvml import PLACES, Library, NvmlError

VERSION = b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder)\n"


@pytest.fixture
def driver(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


@pytest.fixture
def library(driver: StandIn) -> Library:
    made = Library(str(driver.place))
    made.start()
    return made


def test_who_a_gpu_is(driver: StandIn, library: Library) -> None:
    driver.script("gpus 16")
    gpu = library.device(9)
    assert (library.count(), library.driver()) == (16, "stand-in")
    assert (gpu.name(), gpu.uuid()) == ("Stand-in GPU", "GPU-00000009-0000-4000-8000-000000000000")
    assert gpu.pci() == "0000:0a:00.0", "as the kernel log writes it"
    assert library.device_by_uuid(gpu.uuid()).uuid() == gpu.uuid()


def test_samples_after_a_moment_in_the_order_of_time(driver: StandIn, library: Library) -> None:
    driver.script("util 0 97")
    now_us = time.time_ns() // 1000
    samples = library.device(0).samples(nvml_codes.UTILISATION_SAMPLES, now_us - 2_000_000)
    assert [value for _, value in samples] == [97] * len(samples), "of eight bytes only four are the value"
    times = [at_us for at_us, _ in samples]
    assert times == sorted(times)
    assert 9 <= len(times) <= 11
    assert library.device(0).samples(nvml_codes.UTILISATION_SAMPLES, now_us + 60_000_000) == [], "nothing new"


def test_a_field_that_is_not_supported_does_not_cost_the_others(driver: StandIn, library: Library) -> None:
    driver.script("field 74 123456789012")
    found = library.device(0).fields([74, 82])
    assert found[74] == 123456789012
    refused = found[82]
    assert isinstance(refused, NvmlError)
    assert refused.code == nvml_codes.NOT_SUPPORTED


@pytest.mark.parametrize("code", [3, 4, 9, 10, 15, 16, 18, 999])
def test_a_call_that_fails_says_its_code(driver: StandIn, library: Library, code: int) -> None:
    driver.script(f"fail nvmlDeviceGetTemperature 0 {code}")
    with pytest.raises(NvmlError) as caught:
        library.device(0).temperature()
    assert caught.value.code == code
    assert nvml_codes.MEANINGS[code] in str(caught.value)


def test_a_function_that_the_library_does_not_have_has_a_code_too(library: Library) -> None:
    with pytest.raises(NvmlError) as caught:
        library.call("nvmlOfTheFuture")
    assert caught.value.code == nvml_codes.FUNCTION_NOT_FOUND
    assert library.device(0).reasons() == nvml_codes.POWER_CAP, "under the name that it had before"


def test_more_processes_than_are_recorded(driver: StandIn, library: Library) -> None:
    driver.script(*(f"process 0 {number} {number << 20}" for number in range(1, 101)))
    found = library.device(0).processes()
    assert len(found) == 64
    assert found[0].pid == 100, "those that use most"


def test_the_library_is_never_taken_from_the_current_directory(
    driver: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(driver.place.read_bytes())
    monkeypatch.chdir(tmp_path)
    if any(Path(place).exists() for place in PLACES[1:]):
        pytest.skip("this machine has a driver")
    with pytest.raises(OSError, match="libnvidia-ml"):
        Library()


@pytest.mark.parametrize("slowdown", [87, 0])
def test_the_temperature_limit_is_fixed_or_a_margin(driver: StandIn, library: Library, slowdown: int) -> None:
    driver.script(f"slowdown 0 {slowdown}", "temperature 0 37")
    assert library.device(0).slowdown_temperature() == (slowdown or 92)


def test_a_limit_that_cannot_be_read_is_an_error(driver: StandIn, library: Library) -> None:
    driver.script("slowdown 0 0", "fail nvmlDeviceGetMarginTemperature 0 3")
    with pytest.raises(NvmlError) as refused:
        library.device(0).slowdown_temperature()
    assert refused.value.code == nvml_codes.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("name", "bit"),
    [
        ("IDLE", 0x1),  # nvmlClocksEventReasonGpuIdle
        ("APPLICATION_CLOCKS", 0x2),  # ...ApplicationsClocksSetting, once UserDefinedClocks
        ("POWER_CAP", 0x4),  # SwPowerCap
        ("HW_SLOWDOWN", 0x8),
        ("SYNC_BOOST", 0x10),
        ("SW_THERMAL", 0x20),
        ("HW_THERMAL", 0x40),
        ("POWER_BRAKE", 0x80),
        ("DISPLAY", 0x100),
    ],
)
def test_bits_are_those_of_nvml_h(name: str, bit: int) -> None:
    assert getattr(nvml_codes, name) == bit
    assert len(nvml_codes.reasons(bit)) == 1


def test_reasons_in_words() -> None:
    assert nvml_codes.reasons(0x44) == ["power cap", "heat (hardware)"]
    assert nvml_codes.reasons(1 << 40) == ["0x10000000000"]
    assert nvml_codes.reasons(None) == nvml_codes.reasons(0) == []


def test_the_driver_of_a_node(tmp_path: Path) -> None:
    assert gpu_driver.read(str(tmp_path)) is None
    place = tmp_path / "proc" / "driver" / "nvidia"
    place.mkdir(parents=True)
    (place / "version").write_bytes(VERSION)
    assert gpu_driver.read(str(tmp_path)) == "570.86.15"
    (place / "version").write_bytes(b"something else\n")
    assert gpu_driver.read(str(tmp_path)) == "unknown"
    (place / "version").unlink()
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    assert gpu_driver.read(str(tmp_path)) == "unknown", "a sandbox shows the device and no /proc/driver"

"""What takes samples, and how often: chosen by the node's width and its PMU, and said."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from zombiescope.kernel import perf_event
from zombiescope.kernel.perf_event import FLAG_FREQ, Clock, Features, RingMemoryError
from zombiescope.recorder import perf_access, sampling
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.sampling import Sampling, chosen
from zombiescope.store.core_lists import ISOLATED


def choose(event: str = "auto", hz: int = 0, cpus: int = 384, **more: object) -> Sampling:
    facts: dict[str, object] = {"tickless": False, "max_khz": 3_500_000, "cycles": True, **more}
    cycles = facts.pop("cycles")
    return chosen(event, hz, cpus, has_cycles=lambda: bool(cycles), **facts)  # type: ignore[arg-type]


def test_a_small_node_is_sampled_by_its_timers() -> None:
    assert choose(cpus=96).clock == Clock("cpu-clock", 99)


def test_idle_cores_of_a_wide_node_are_not_woken_where_there_is_a_cycle_counter() -> None:
    found = choose()
    assert found.clock == Clock("cycles", 49)
    assert found.why == "384 cores with a cycle counter: idle cores are not woken"


def test_a_wide_machine_without_a_counter_is_sampled_half_as_often() -> None:
    assert choose(cycles=False).clock == Clock("cpu-clock", 49)


def test_full_dynticks_are_kept() -> None:
    assert choose(tickless=True).clock == Clock("cpu-clock", 49)
    assert choose("cycles", 99, tickless=True).clock == Clock("cycles", 99, 3_500_000_000 // 99)
    assert choose("cycles", 99, tickless=True, max_khz=None).clock == Clock("cpu-clock", 99)


def test_what_a_person_chose_stays() -> None:
    assert choose("cpu-clock", 99).clock == Clock("cpu-clock", 99)
    assert choose("cycles", 0, 8).clock == Clock("cycles", 99)
    assert choose("cycles", 997).clock == Clock("cycles", 997)


def test_a_fixed_number_of_cycles_is_no_frequency(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(perf_event, "perf_event_open", lambda attr, *_: asked.append(attr) or 3)  # type: ignore[func-returns-value]
    for clock in (Clock("cycles", 99), Clock("cycles", 99, 35_000_000)):
        perf_event._open_sampler(0, clock, Features(), 0)
    found = [perf_event._ATTR.unpack(attr) for attr in asked]
    assert [one[3] for one in found] == [99, 35_000_000]
    assert [bool(one[6] & FLAG_FREQ) for one in found] == [True, False]


def test_a_machine_without_a_pmu_is_found_out_by_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Features:
        raise OSError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(perf_event, "probe", refuse)
    assert sampling.choose("auto", 0, tuple(range(192))).clock == Clock("cpu-clock", 49)
    assert sampling.choose("auto", 0, tuple(range(4))).clock == Clock("cpu-clock", 99)


def test_isolated_cores_are_left_out_unless_asked_for() -> None:
    assert RecorderConfig("").leave_out_cores == ISOLATED


# --- why it was refused ----------------------------------------------------------------------------------------------


def test_a_rate_above_the_kernels_limit_is_told_from_a_flag_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ANSSI-BP-028 sets the limit to 1: every form of the event is then refused with EINVAL, the plainest too."""
    opened: list[bytes] = []

    def refuse(attr: bytes, *_: object) -> int:
        opened.append(attr)
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(perf_event, "perf_event_open", refuse)
    (tmp_path / "rate").write_text("1\n")
    monkeypatch.setattr(perf_access, "MAX_RATE", str(tmp_path / "rate"))
    with pytest.raises(OSError, match="Invalid argument") as refused:
        perf_event.probe(0, Clock())
    assert len(opened) == 3
    why, grant = perf_access.explain(refused.value, Clock())
    assert why == "perf_event_open: 99 samples per second exceed kernel.perf_event_max_sample_rate=1"
    assert grant == "sysctl -w kernel.perf_event_max_sample_rate=1000, or --hz 1"


def test_a_ring_that_cannot_be_pinned_is_no_question_of_paranoia(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Sequence[object], **__: object) -> object:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(perf_event, "perf_event_open", lambda *_: os.open("/dev/null", 0))
    monkeypatch.setattr("zombiescope.kernel.perf_event.mmap.mmap", refuse)
    with pytest.raises(RingMemoryError) as refused:
        perf_event.open_ring(0, Clock(), Features(), 4096)
    why, grant = perf_access.explain(refused.value, Clock())
    assert "kernel.perf_event_mlock_kb" in why
    assert "paranoid" not in why
    assert "CAP_IPC_LOCK" in grant

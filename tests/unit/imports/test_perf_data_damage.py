"""Cut, damaged and lying perf.data: what is whole is imported, the rest is counted, nothing raises."""

from __future__ import annotations

import random
import struct

import pytest
from tests.fuzz.targets.perf import SAMPLES, TEXT, perf_files
from tests.fuzz.targets.perf import imported as run
from tests.fuzz.targets.perf import perf_story as story
from tests.helpers import records
from tests.helpers.perf_file import attr, compressed, in_file
from tests.helpers.records import CLOCK_ID, KERNEL

BASES = perf_files()


@pytest.mark.parametrize("name", sorted(BASES))
def test_the_whole_file_is_taken_and_nothing_is_skipped(name: str) -> None:
    count, outcome = run(BASES[name])
    assert count >= SAMPLES
    assert not outcome.skipped


@pytest.mark.parametrize("name", sorted(BASES))
def test_cut_anywhere(name: str) -> None:
    data = BASES[name]
    whole, _ = run(data)
    before = 0
    for end in range(0, len(data), 13):
        count, outcome = run(data[:end])
        assert before <= count <= whole
        before = count
        if count < whole and name in ("file", "odd", "zstd"):
            assert outcome.skipped, end


@pytest.mark.parametrize("name", sorted(BASES))
def test_flipped_bytes(name: str) -> None:
    chance = random.Random(name)
    for _ in range(300):
        data = bytearray(BASES[name])
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        run(bytes(data))


@pytest.mark.parametrize("name", sorted(BASES))
def test_words_that_lie(name: str) -> None:
    chance = random.Random(name)
    lies = (0, 1, 7, 8, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, 1 << 63, (1 << 64) - 1, (1 << 64) - 8, 1 << 61)
    for _ in range(300):
        data = bytearray(BASES[name])
        at = chance.randrange(len(data) // 8) * 8
        data[at : at + 8] = struct.pack("<Q", chance.choice(lies))
        run(bytes(data[: len(BASES[name])]))


def test_a_damaged_place_costs_only_what_is_there() -> None:
    one = records.sample(7, 7, 1000, [KERNEL, TEXT])
    for broken in (b"\xff" * 64, bytes(64), struct.pack("<IHH", 9, 0, 3) + b"\xaa" * 56):
        count, outcome = run(in_file(one * 20 + broken + one * 20))
        assert count == 40
        assert outcome.skipped["damaged places"] == 1
        assert outcome.skipped["bytes in damaged places"] == 64


def test_a_chain_longer_than_its_record_is_refused() -> None:
    long = struct.pack("<QIIQIIQQQ", CLOCK_ID, 7, 7, 1000, 0, 0, 1 << 61, KERNEL, TEXT)
    count, outcome = run(in_file(records.record(9, long) + records.sample(7, 7, 1000, [KERNEL, TEXT])))
    assert count == 1
    assert outcome.skipped["records that contradict themselves"] == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not perf.data"),
        (b"PERFILE2", "ends within its header"),
        (b"PERFILE2" + struct.pack("<Q", 104) + bytes(20), "ends within its header"),
        (b"2ELIFREP" + bytes(200), "other byte order"),
        (in_file(b"", [(attr()[:64], [])])[:104], "names no events"),
    ],
)
def test_what_cannot_be_read_at_all_is_said(data: bytes, why: str) -> None:
    count, outcome = run(data)
    assert count == 0
    (reason,) = outcome.skipped
    assert why in reason


def test_a_file_that_perf_did_not_finish_is_read_to_its_end() -> None:
    data = in_file(story(), data_bytes=0)
    count, outcome = run(data)
    assert count == SAMPLES
    assert any("did not finish" in sentence for sentence in outcome.notes)


def test_a_record_that_unpacks_to_too_much_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.imports.perf_session.MAX_INFLATED_BYTES", 1 << 20)
    bomb = compressed(bytes(8 << 20), 1)
    assert len(bomb) < 65536
    count, outcome = run(in_file(bomb + story()))
    assert count == SAMPLES
    assert outcome.skipped["compressed records that cannot be unpacked"] == 1

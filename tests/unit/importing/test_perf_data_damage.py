"""Cut, damaged and lying perf.data: what is whole is imported, the rest is counted, nothing raises."""

from __future__ import annotations

import io
import random
import struct

import pytest
from tests.helpers import records
from tests.helpers.perf_file import (
    BRANCH_STACK,
    CALLCHAIN,
    CGROUP,
    CPU,
    IDENTIFIER,
    IP,
    PERIOD,
    RAW,
    READ,
    REGS_USER,
    ROUND,
    STACK_USER,
    TID,
    TIME,
    attr,
    compressed,
    event_desc,
    in_file,
    in_pipe,
    text,
)
from tests.helpers.records import CLOCK_ID, KERNEL, USER

from zombiescope.importing import perf_data
from zombiescope.importing.perf_data import PerfDataImport
from zombiescope.importing.rows import ImportReport

TEXT = 0xFFFFFFFF81000000
SAMPLES = 40


def story() -> bytes:
    data = records.comm(7, 7, b"sh", 0) + records.mmap2(7, 0x1000, 0x1000, 0, b"/bin/nothing", 0)
    for number in range(SAMPLES):
        at = 1000 + number * 10
        chain = [KERNEL, TEXT + number % 7, TEXT + 0x50, USER, 0x1100 + number % 3, 0x1200]
        data += records.sample(7, 7, at, chain, cpu=number % 4)
        if number % 8 == 0:
            data += records.fork(100 + number, 7, 100 + number, 7, at + 1) + records.leave(
                100 + number, 100 + number, at + 2
            )
            data += records.comm(7, 7, b"n%d" % number, at + 3, is_exec=True) + records.ksymbol(
                TEXT + 9, 8, b"bpf", at + 4
            )
        if number % 10 == 9:
            data += ROUND
    return data


def odd_story() -> tuple[bytes, list[tuple[bytes, list[int]]]]:
    """Samples with every field of changing length."""
    bits = (
        IDENTIFIER
        | IP
        | TID
        | TIME
        | CPU
        | PERIOD
        | READ
        | CALLCHAIN
        | RAW
        | BRANCH_STACK
        | REGS_USER
        | STACK_USER
        | CGROUP
    )
    data = b""
    for number in range(SAMPLES):
        body = struct.pack("<QQIIQIIQ", 1 + number % 2, TEXT, 7, 7, 1000 + number, 0, 0, 5)
        body += struct.pack("<QQQQQ", 2, number, 1, number, 2)
        body += struct.pack("<QQQQ", 3, KERNEL, TEXT, TEXT + 8) + struct.pack("<I4s", 4, b"rawr")
        body += struct.pack("<QQQQ", 1, 0, 0, 0) + struct.pack("<QQ", 1, 5) + struct.pack("<Q8sQ", 8, b"stack", 8)
        data += records.record(9, body + struct.pack("<Q", 77), misc=1)
    kinds = [(attr(bits, read_format=12, regs_user=1), [1]), (attr(bits, config=2, read_format=12, regs_user=1), [2])]
    return data, kinds


def bases() -> dict[str, bytes]:
    odd, attrs = odd_story()
    described = event_desc([(attr(), "cpu-clock", [CLOCK_ID])])
    entry = struct.pack("<IHHi", 0, 2, 52, 7) + bytes(24) + b"/bin/nothing\0\0\0\0"
    features = {2: entry, 3: text("node"), 4: text("6.1"), 12: described, 21: struct.pack("<QQ", 1000, 2000)}
    return {
        "file": in_file(story(), features=features),
        "pipe": in_pipe(story()),
        "zstd": in_file(compressed(story(), 9) + ROUND),
        "zstd-pipe": in_pipe(compressed(story(), 9, second_form=True)),
        "odd": in_file(odd, attrs),
    }


BASES = bases()


def run(data: bytes) -> tuple[int, ImportReport]:
    outcome = ImportReport()
    importer = PerfDataImport(kallsyms=None, symbol_dirs=[], inline=False, outcome=outcome)
    count = 0
    for rows in importer.read(io.BytesIO(data), "perf.data", len(data), lambda _: None):
        count += len(rows)
        assert sum(rows.stack_lengths) == len(rows.stack_frames)
        assert all(0 <= number < len(rows.frames) for number in rows.stack_frames)
        assert all(-1 <= number < len(rows.stack_lengths) for number in rows.stack)
        assert all(-1 <= number < len(rows.tasks) for number in rows.task)
    perf_data.file_clock(io.BytesIO(data), "perf.data")
    return count, outcome


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
    monkeypatch.setattr("zombiescope.importing.perf_session.MAX_INFLATED_BYTES", 1 << 20)
    bomb = compressed(bytes(8 << 20), 1)
    assert len(bomb) < 65536
    count, outcome = run(in_file(bomb + story()))
    assert count == SAMPLES
    assert outcome.skipped["compressed records that cannot be unpacked"] == 1

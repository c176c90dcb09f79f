"""Decoding of perf.data: forms, layouts, order of time, names."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import pytest
from tests.helpers import records
from tests.helpers.perf_file import (
    ADDR,
    BRANCH_STACK,
    CALLCHAIN,
    CGROUP,
    CPU,
    FREQUENCY,
    ID,
    IDENTIFIER,
    IP,
    PERIOD,
    RAW,
    READ,
    RECORDS,
    REGS_USER,
    ROUND,
    SAMPLE_ID_ALL,
    STACK_USER,
    STREAM_ID,
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

from zombiescope.imports import perf_data
from zombiescope.imports.perf_data import PerfDataImport, is_perf_data
from zombiescope.imports.rows import FrameRow, ImportReport, SampleRows

SECOND = 1_000_000_000
TEXT = 0xFFFFFFFF81000000
KALLSYMS = f"""{TEXT:x} T _text
{TEXT + 0x100:x} T do_idle
{TEXT + 0x200:x} T vfs_read
{TEXT + 0x300:x} t helper.isra.0
ffffffffc0000000 t nic_poll\t[nic]
"""


def read(data: bytes, outcome: ImportReport | None = None, kallsyms: Path | None = None) -> list[SampleRows]:
    importer = PerfDataImport(
        kallsyms=kallsyms, symbol_dirs=[], inline=False, outcome=ImportReport() if outcome is None else outcome
    )
    return list(importer.read(io.BytesIO(data), "perf.data", len(data), lambda _: None))


def one(data: bytes, outcome: ImportReport | None = None, kallsyms: Path | None = None) -> SampleRows:
    (rows,) = read(data, outcome, kallsyms)
    return rows


def stack(rows: SampleRows, at: int) -> list[FrameRow]:
    """Outermost first."""
    first = sum(rows.stack_lengths[: rows.stack[at]])
    return [rows.frames[number] for number in rows.stack_frames[first : first + rows.stack_lengths[rows.stack[at]]]]


def names(rows: SampleRows, at: int) -> list[str]:
    return [frame.name for frame in stack(rows, at)]


def comm(rows: SampleRows, at: int) -> str | None:
    return rows.tasks[rows.task[at]].comm


def kernel_map(start: int = TEXT, reference: int = TEXT, name: bytes = b"[kernel.kallsyms]_text") -> bytes:
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, start, 0x1000000, reference) + records.padded(name)
    return records.record(1, body + records.trailer(0, 0, 0), misc=1)


SIMPLE = records.comm(7, 7, b"worker", SECOND) + records.sample(7, 7, 2 * SECOND, [KERNEL, TEXT + 0x210, USER, 0x1000])


@pytest.fixture
def kallsyms(tmp_path: Path) -> Path:
    path = tmp_path / "kallsyms"
    path.write_text(KALLSYMS)
    return path


def test_both_byte_orders_are_recognised() -> None:
    assert is_perf_data(b"PERFILE2" + bytes(8))
    assert is_perf_data(b"2ELIFREP" + bytes(8))
    assert not is_perf_data(b"PERFFILE")


@pytest.mark.parametrize("form", [in_file, in_pipe])
def test_a_sample_has_time_cpu_task_and_stack(form) -> None:  # type: ignore[no-untyped-def]
    rows = one(form(SIMPLE))
    assert list(rows.time_us) == [2_000_000]
    assert list(rows.cpu) == [0]
    assert rows.tasks[rows.task[0]][:3] == (7, 7, "worker")
    assert names(rows, 0) == ["[unknown]", f"0x{TEXT + 0x210:x}"]
    assert [event.name for event in rows.events] == ["cpu-clock"]
    assert rows.event is None
    assert rows.period is None
    assert rows.span_us == (2_000_000, 2_000_000)
    assert rows.cpus == frozenset({0})


@pytest.mark.parametrize("second_form", [False, True])
@pytest.mark.parametrize("form", [in_file, in_pipe])
def test_compressed_records_may_end_anywhere(form, second_form) -> None:  # type: ignore[no-untyped-def]
    many = b"".join(records.sample(7, 7, SECOND + n, [KERNEL, TEXT + n % 5]) for n in range(100))
    rows = one(form(compressed(SIMPLE + many, 7, second_form=second_form) + ROUND))
    assert len(rows) == 101
    assert comm(rows, 0) == "worker"


@pytest.mark.parametrize("size", [64, 72, 80, 96, 104, 112, 120, 128, 136, 200])
def test_attrs_of_old_and_new_kernels(size: int) -> None:
    whole = attr().ljust(size, b"\0")[:size]
    what = whole[:4] + struct.pack("<I", size) + whole[8:]
    for form in (in_file, in_pipe):
        rows = one(form(SIMPLE, [(what, [CLOCK_ID])]))
        assert list(rows.time_us) == [2_000_000]


def test_fields_in_any_combination() -> None:
    bits = IDENTIFIER | IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD | READ | CALLCHAIN | RAW
    bits |= BRANCH_STACK | REGS_USER | STACK_USER | CGROUP
    body = struct.pack("<QQIIQQQQIIQ", 5, TEXT, 9, 8, SECOND, 1, 5, 2, 3, 0, 77)
    body += struct.pack("<QQQ", 4, 1000, 1000)  # value, enabled, running; no id
    body += struct.pack("<QQQ", 2, KERNEL, TEXT + 0x200)
    body += struct.pack("<I4s", 4, b"rawr") + struct.pack("<QQQQ", 1, 0, 0, 0)
    body += struct.pack("<QQQ", 2, 11, 12) + struct.pack("<Q16sQ", 16, b"stack", 16) + struct.pack("<Q", 4321)
    cgroup = struct.pack("<Q", 4321) + records.padded(b"/kubepods/x")
    cgroup += struct.pack("<IIQQQIIQ", 0, 0, SECOND - 1, 5, 0, 0, 0, 5)
    data = in_file(
        records.record(19, cgroup) + records.record(9, body, misc=1),
        [(attr(bits, read_format=3, regs_user=0b101), [5])],
    )
    outcome = ImportReport()
    rows = one(data, outcome)
    assert (list(rows.cpu), list(rows.time_us)) == ([3], [1_000_000])
    assert rows.period is not None
    assert list(rows.period) == [77]
    assert rows.tasks[0] == (9, 8, None, None, "/kubepods/x")
    assert any("not unwound" in sentence for sentence in outcome.notes)


def test_without_a_chain_the_address_alone_is_the_stack() -> None:
    body = struct.pack("<QIIQ", TEXT + 5, 7, 7, SECOND)
    rows = one(in_file(records.record(9, body, misc=1), [(attr(IP | TID | TIME), [])]))
    assert names(rows, 0) == [f"0x{TEXT + 5:x}"]
    assert list(rows.cpu) == [-1]


def test_events_are_told_apart_by_id() -> None:
    attrs = [(attr(config=0), [1, 2]), (attr(config=2), [3]), (attr(config=9), [4])]
    described = event_desc([(attr(config=0), "cpu-clock:u", [1, 2]), (attr(config=2), "faults", [3])])
    mixed = b"".join(
        records.sample(7, 7, SECOND + n, [KERNEL, TEXT], event=event) for n, event in enumerate([3, 1, 2, 3])
    )
    outcome = ImportReport()
    rows = one(in_file(mixed + records.sample(7, 7, SECOND, [KERNEL, TEXT], event=99), attrs, {12: described}), outcome)
    assert rows.event is not None
    assert [rows.events[number].name for number in rows.event] == ["faults", "cpu-clock:u", "cpu-clock:u", "faults"]
    assert outcome.skipped == {"samples of an event that the file does not describe": 1}


def test_a_group_that_reads_counters_gives_a_sample_of_each_that_moved() -> None:
    bits = IDENTIFIER | TID | TIME | CPU | READ | CALLCHAIN

    def leader(time: int, *values: tuple[int, int]) -> bytes:
        body = struct.pack("<QIIQIIQ", 1, 7, 7, time, 0, 0, len(values))
        body += b"".join(struct.pack("<QQ", value, number) for value, number in values)
        return records.record(9, body + struct.pack("<QQQ", 2, KERNEL, TEXT))

    data = leader(SECOND, (10, 1), (0, 2)) + leader(2 * SECOND, (25, 1), (4, 2))
    attrs = [(attr(bits, read_format=12), [1]), (attr(bits, config=2, read_format=12), [2])]
    rows = one(in_file(data, attrs))
    assert rows.event is not None
    assert rows.period is not None
    assert list(rows.period) == [10, 15, 4]
    assert [rows.events[number].name for number in rows.event] == ["cpu-clock", "cpu-clock", "page-faults"]


def test_a_thread_that_left_keeps_its_process() -> None:
    gone = 0xFFFFFFFF
    data = records.sample(7, gone, 1, [KERNEL, TEXT]) + records.sample(gone, gone, 2, [KERNEL, TEXT])
    rows = one(in_file(data))
    assert rows.tasks[rows.task[0]][:3] == (7, None, None)
    assert rows.task[1] == -1


# --- the order of time ------------------------------------------------------------------------------------------------


def test_names_are_those_of_the_moment_though_cpus_are_written_one_after_the_other() -> None:
    early = records.sample(7, 7, 10, [KERNEL, TEXT], cpu=1)
    late = records.sample(7, 7, 30, [KERNEL, TEXT], cpu=1)
    data = records.comm(7, 7, b"sh", 5) + records.comm(7, 7, b"ls", 20, is_exec=True) + early + late + ROUND
    rows = one(in_file(data))
    assert [comm(rows, at) for at in range(2)] == ["sh", "ls"]


def test_a_round_holds_back_what_may_still_be_overtaken() -> None:
    data = records.sample(7, 7, 100, [KERNEL, TEXT]) + records.sample(7, 7, 200, [KERNEL, TEXT]) + ROUND
    data += records.comm(7, 7, b"between", 150) + records.sample(7, 7, 300, [KERNEL, TEXT]) + ROUND
    rows = one(in_file(data))
    assert [comm(rows, at) for at in range(3)] == [None, "between", "between"]


def test_a_fork_inherits_the_name_and_the_mappings(tmp_path: Path) -> None:
    data = records.comm(7, 7, b"sh", 1) + records.mmap2(7, 0x1000, 0x1000, 0, b"/bin/thing", 2)
    data += records.fork(8, 7, 8, 7, 3) + records.sample(8, 8, 4, [USER, 0x1234])
    rows = one(in_file(data))
    assert (comm(rows, 0), rows.tasks[0].ppid) == ("sh", 7)
    assert stack(rows, 0) == [FrameRow("thing+0x234", "thing", "user")]


def test_the_parts_of_parent_and_child_part_with_the_next_mapping() -> None:
    data = records.mmap2(7, 0x1000, 0x1000, 0, b"/bin/old", 1) + records.fork(8, 7, 8, 7, 2)
    data += records.sample(7, 7, 3, [USER, 0x1234]) + records.sample(8, 8, 4, [USER, 0x1234])
    data += records.mmap2(8, 0x1000, 0x1000, 0, b"/bin/new", 5)
    data += records.sample(7, 7, 6, [USER, 0x1234]) + records.sample(8, 8, 7, [USER, 0x1234])
    rows = one(in_file(data))
    assert [names(rows, at)[0] for at in range(4)] == ["old+0x234", "old+0x234", "old+0x234", "new+0x234"]


def test_a_later_mapping_covers_an_earlier_one_from_its_moment_on() -> None:
    data = records.mmap2(7, 0x1000, 0x1000, 0, b"/a.so", 1) + records.sample(7, 7, 2, [USER, 0x1800])
    data += records.mmap2(7, 0x1800, 0x100, 0x500, b"/b.so", 3)
    data += records.sample(7, 7, 4, [USER, 0x1800, 0x1101]) + records.sample(7, 7, 5, [USER, 0x1900])
    rows = one(in_file(data))
    assert [names(rows, at) for at in range(3)] == [["a.so+0x800"], ["a.so+0x100", "b.so+0x500"], ["a.so+0x900"]]


def test_what_lies_in_no_mapping_is_unknown_until_a_mapping_comes() -> None:
    data = records.sample(7, 7, 2, [USER, 0x1800]) + records.mmap2(7, 0x1000, 0x1000, 0, b"/a.so", 3)
    data += records.sample(7, 7, 4, [USER, 0x1800])
    rows = one(in_file(data))
    assert [names(rows, at) for at in range(2)] == [["[unknown]"], ["a.so+0x800"]]


def test_records_that_perf_made_up_do_not_copy_the_mappings_of_the_parent() -> None:
    made_up = records.record(7, struct.pack("<IIIIQ", 8, 7, 8, 7, 0) + records.trailer(0, 0, 0), misc=1 << 13)
    data = records.mmap2(7, 0x1000, 0x1000, 0, b"/a.so", 0) + made_up + records.sample(8, 8, 4, [USER, 0x1800])
    assert names(one(in_file(data)), 0) == ["[unknown]"]


def test_code_that_a_process_made_has_the_names_that_it_wrote_down(tmp_path: Path) -> None:
    # GIVEN a copy of the perf map of one of two processes, which perf.data has no names of
    (tmp_path / "perf-7.map").write_text("1800 40 JS:*hot a.js:1\n")
    data = b"".join(records.mmap2(pid, 0x1000, 0x1000, 0x1000, b"//anon", 1) for pid in (7, 8))
    data += records.sample(7, 7, 2, [USER, 0x1810]) + records.sample(7, 7, 3, [USER, 0x1900])
    data += records.sample(8, 8, 4, [USER, 0x1810])
    importer = PerfDataImport(kallsyms=None, symbol_dirs=[tmp_path], inline=False, outcome=ImportReport())
    file = in_file(data)
    (rows,) = importer.read(io.BytesIO(file), "perf.data", len(file), lambda _: None)
    assert stack(rows, 0) == [FrameRow("JS:*hot a.js:1", "[jit]", "jit")]
    assert [stack(rows, at) for at in (1, 2)] == [[FrameRow("[jit]", "[anon]", "jit")]] * 2


# --- the kernel -------------------------------------------------------------------------------------------------------


def test_kernel_names_come_from_the_kallsyms_that_is_named(kallsyms: Path) -> None:
    chain = [KERNEL, TEXT + 0x210, TEXT + 0x300, 0xFFFFFFFFC0000010]
    rows = one(in_file(kernel_map() + records.sample(7, 7, SECOND, chain)), None, kallsyms)
    # The second is a return address right behind vfs_read's last instruction.
    assert stack(rows, 0) == [
        FrameRow("nic_poll", "nic", "module"), FrameRow("vfs_read", "", "kernel"), FrameRow("vfs_read", "", "kernel"),
    ]  # fmt: skip


def test_a_kernel_that_lay_elsewhere_is_moved_and_its_modules_are_not_guessed(kallsyms: Path) -> None:
    moved = 0x2E000000
    module = kernel_map(0xFFFFFFFFC0000000, 0, b"/lib/modules/6.1/kernel/net/nic-hw.ko")
    chain = [KERNEL, TEXT + moved + 0x210, 0xFFFFFFFFC0000010]
    data = kernel_map(TEXT + moved, TEXT + moved) + module + records.sample(7, 7, SECOND, chain)
    rows = one(in_file(data), None, kallsyms)
    assert stack(rows, 0) == [FrameRow("0xffffffffc000000f", "nic_hw", "module"), FrameRow("vfs_read", "", "kernel")]


def test_another_machine_is_never_named_with_this_ones_symbols() -> None:
    outcome = ImportReport()
    features = {3: text("elsewhere"), 4: text(os.uname().release)}
    mapped = records.mmap2(7, 0x1000, 0x100000, 0, b"/bin/sh", 1)
    rows = one(in_file(kernel_map() + mapped + SIMPLE, features=features), outcome)
    assert names(rows, 0) == ["sh+0x0", f"0x{TEXT + 0x210:x}"]
    assert any("--kallsyms" in sentence for sentence in outcome.notes)
    assert outcome.facts["hostname"] == "elsewhere"


def test_kallsyms_without_addresses_is_said(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    path.write_text("0000000000000000 T _text\n0000000000000000 T vfs_read\n")
    outcome = ImportReport()
    rows = one(in_file(SIMPLE), outcome, path)
    assert names(rows, 0)[-1].startswith("0x")
    assert any("holds no addresses" in sentence for sentence in outcome.notes)


def test_kallsyms_is_found_by_the_kernels_build_id(tmp_path: Path) -> None:
    build_id = bytes(range(20))
    folder = tmp_path / ".build-id" / build_id.hex()[:2] / build_id.hex()[2:]
    folder.mkdir(parents=True)
    (folder / "kallsyms").write_text(KALLSYMS)
    path = records.padded(b"[kernel.kallsyms]")
    entry = struct.pack("<IHHi", 0, 1, 36 + len(path), -1) + build_id + bytes(4) + path
    data = in_file(kernel_map() + SIMPLE, features={2: entry})
    importer = PerfDataImport(kallsyms=None, symbol_dirs=[tmp_path], inline=False, outcome=ImportReport())
    (rows,) = importer.read(io.BytesIO(data), "x", None, lambda _: None)
    assert names(rows, 0)[-1] == "vfs_read"


def test_programs_of_the_kernel_have_the_names_they_announced(kallsyms: Path) -> None:
    bpf = 0xFFFFFFFFC0300000
    data = records.sample(7, 7, 5, [KERNEL, bpf + 4]) + records.ksymbol(bpf, 64, b"bpf_prog_1_x", 10)
    data += records.sample(7, 7, 20, [KERNEL, bpf + 4]) + records.ksymbol(bpf, 64, b"bpf_prog_1_x", 30, gone=True)
    data += records.sample(7, 7, 40, [KERNEL, bpf + 4])
    rows = one(in_file(data), None, kallsyms)
    assert names(rows, 1) == ["bpf_prog_1_x"]
    assert stack(rows, 1)[0].kind == "bpf"
    assert names(rows, 0) != names(rows, 1) != names(rows, 2)


def test_idle_is_counted_and_kept(kallsyms: Path) -> None:
    data = (
        kernel_map() + records.sample(0, 0, 1, [KERNEL, TEXT + 0x110]) + records.sample(0, 0, 2, [KERNEL, TEXT + 0x210])
    )
    data += records.sample(7, 7, 3, [KERNEL, TEXT + 0x110])
    rows = one(in_file(data), None, kallsyms)
    assert (len(rows), rows.idle_samples) == (3, 1)
    assert rows.tasks[rows.task[0]].comm == "swapper"


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_a_batch_can_be_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.imports.perf_session.MAX_ROWS", 10)
    data = records.comm(7, 7, b"worker", 1)
    data += b"".join(records.sample(7, 7, SECOND + n, [KERNEL, TEXT + n // 10]) for n in range(25))
    batches = read(in_file(data))
    assert [len(rows) for rows in batches] == [10, 10, 5]
    for number, rows in enumerate(batches):
        assert {names(rows, at)[0] for at in range(len(rows))} == {f"0x{TEXT + number:x}"}
        assert (len(rows.frames), len(rows.tasks), len(rows.stack_lengths)) == (1, 1, 1)
        assert comm(rows, 0) == "worker"


def test_lost_records_are_counted() -> None:
    outcome = ImportReport()
    one(in_file(SIMPLE + records.lost(12, SECOND)), outcome)
    assert outcome.skipped == {"records that perf lost while it recorded": 12}


def test_the_payload_of_hardware_traces_is_passed_over() -> None:
    trace = struct.pack("<IHHQQQIIII", 71, 0, 48, 4096, 0, 0, 0, 0, 0, 0) + b"\xff" * 4096
    tracing = struct.pack("<IHHI", 66, 0, 12, 16) + b"\xfe" * 16
    rows = one(in_pipe(tracing + trace + SIMPLE))
    assert len(rows) == 1


def test_a_file_through_a_pipe_is_read_as_a_file() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: object) -> int:
            raise OSError("a pipe")

    for form in (in_file, in_pipe):
        importer = PerfDataImport(kallsyms=None, symbol_dirs=[], inline=False, outcome=ImportReport())
        (rows,) = importer.read(Pipe(form(SIMPLE)), "-", None, lambda _: None)
        assert len(rows) == 1


def test_the_clock_is_known_from_the_header_or_from_the_records() -> None:
    wall = struct.pack("<IIQQ", 1, 1, 1_700_000_000 * SECOND, 5 * SECOND)
    data = in_file(SIMPLE, features={3: text("node"), 21: struct.pack("<QQ", SECOND, 3 * SECOND), 29: wall})
    found = perf_data.file_clock(io.BytesIO(data), "perf.data")
    assert found is not None
    assert (found.first_us, found.last_us, found.host) == (1_000_000, 3_000_000, "node")
    assert found.offset_us == 1_699_999_995_000_000
    for form in (in_file, in_pipe):
        found = perf_data.file_clock(io.BytesIO(form(SIMPLE)), "perf.data")
        assert found is not None
        assert (found.first_us, found.last_us) == (2_000_000, 2_000_000)


def test_samples_without_a_trailer_or_a_time_are_kept_and_said() -> None:
    body = struct.pack("<IIQQQ", 7, 7, 2, KERNEL, TEXT)
    outcome = ImportReport()
    rows = one(in_file(records.record(9, body), [(attr(TID | CALLCHAIN, flags=FREQUENCY), [])]), outcome)
    assert len(rows) == 1
    assert any("no time" in sentence for sentence in outcome.notes)


def test_layout_bits_of_this_file_are_those_of_the_builder() -> None:
    assert RECORDS == IDENTIFIER | TID | TIME | CPU | CALLCHAIN
    assert FREQUENCY | SAMPLE_ID_ALL == 1 << 10 | 1 << 18

"""What perf and the kernel's rings write: records in memory, perf.data in both forms, and the text of perf script."""

from __future__ import annotations

import io
import struct
from itertools import pairwise

from tests.fuzz.target import Target
from tests.helpers import perf_file, records, script_rows
from tests.helpers.records import CLOCK_ID, KERNEL, USER
from zombiescope._native import KernelSymbols, Sampler, decode_ints, encode_ints, has_negative
from zombiescope.imports import perf_data
from zombiescope.imports.perf_data import PerfDataImport
from zombiescope.imports.perf_script import ScriptHeader
from zombiescope.imports.rows import ImportReport

KALLSYMS = b"""\
ffffffff81000000 T _text
ffffffff81001000 T do_idle
ffffffff81002000 t cpu_startup_entry
ffffffff81003000 T handle_softirqs
ffffffff81006000 t walk.isra.0
ffffffffc0001000 t ena_io_poll\t[ena]
"""
TEXT = 0xFFFFFFFF81000000
PAGE_BYTES = 4096
HEAD_AT, TAIL_AT = 1024, 1032
FOR_EVER = 1 << 62
SAMPLES = 40
COME_AND_GO = 32


def symbols(text: bytes = KALLSYMS) -> KernelSymbols:
    made = KernelSymbols()
    made.feed(text)
    made.finish()
    return made


def sampler(**options: bool) -> Sampler:
    made = Sampler(symbols(), 4, **options)
    made.register(CLOCK_ID, 0)
    for number in range(1, 4):
        made.register(100 + number, number)
    return made


def take_everything(decoder: Sampler) -> None:
    """What the recorder does with its rings in a few seconds, with answers for every address."""
    for space, _, addresses in decoder.rows.take_wanted():
        for number, address in enumerate(addresses):
            decoder.rows.answer(space, address, decoder.rows.frame("f", "m", "user") if number % 2 else None)
    decoder.rows.take_samples(0, FOR_EVER)
    decoder.rows.take_frames()
    decoder.rows.stacks.take_new()
    for _, pid, tid, *_ in decoder.take_tasks():
        decoder.mappings(pid)
        decoder.comm(tid)
    decoder.take_tracepoints()
    decoder.take_cgroups()
    decoder.take_shares()
    decoder.take_cores(1 << 40)
    decoder.sweep(1)
    decoder.next_segment()


def ring_records(data: bytes) -> None:
    """The first byte says which fields samples have; a zero-length record would be one of the others."""
    choice = data[0] if data else 0
    decoder = sampler(has_period=bool(choice & 1), has_cgroup=bool(choice & 2), host_pids=bool(choice & 4))
    half = (len(data) // 16) * 8 + 1 if choice & 8 else len(data)
    for piece in (data[1:half], data[half:]):
        decoder.feed(0, piece)
        take_everything(decoder)


def ring_memory(data: bytes) -> None:
    """A ring whose head and tail say anything at all, of any size."""
    if len(data) < 18:
        return
    head, tail, pages = struct.unpack_from("<QQH", data)
    memory = bytearray(PAGE_BYTES + PAGE_BYTES * (pages % 4))
    struct.pack_into("<QQ", memory, HEAD_AT, tail, tail)
    room = memoryview(memory)[PAGE_BYTES:]
    room[: len(data) - 18] = data[18 : 18 + len(room)]
    decoder = sampler()
    decoder.add_ring(0, memory, PAGE_BYTES)
    for step in (head, tail, head + 64):
        struct.pack_into("<Q", memory, HEAD_AT, step & (1 << 64) - 1)
        decoder.drain()
        take_everything(decoder)
    decoder.remove_ring(0)


def imported(data: bytes) -> tuple[int, ImportReport]:
    """perf.data through the importer; its rows point only to what is there."""
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


def kallsyms(data: bytes) -> None:
    """The text in two pieces, then what the kernel says later of code that comes and goes, at a few addresses: each
    lookup asks all that came."""
    text, _, rest = data.partition(b"\0")
    rest = rest[: COME_AND_GO * 8]
    made = KernelSymbols()
    made.feed(text[: len(text) // 2])
    made.feed(text[len(text) // 2 :])
    made.finish()
    for (address,) in struct.iter_unpack("<Q", rest[: len(rest) // 8 * 8]):
        made.lookup(address)
        made.add(address, address & 0xFFFF, f"bpf_{address & 0xFF}")
        made.lookup(address)
        if address & 1:
            made.remove(address)
    for address in (0, TEXT, TEXT + 0x1001, (1 << 64) - 1):
        made.lookup(address)
    assert made.nbytes >= 0


def numbers(data: bytes) -> None:
    """A run of varints: what can be decoded is encoded to the same numbers again."""
    count = int.from_bytes(data[:2], "little")
    values, _ = decode_ints(data, 2, count, 7)
    assert len(values) == count
    has_negative(values)
    again, end = decode_ints(encode_ints(values, 7), 0, count, 7)
    assert (again, end) == (values, len(encode_ints(values, 7)))


# --- seeds -----------------------------------------------------------------------------------------------------------


def ring_story() -> bytes:
    return b"".join(
        (
            records.comm(41, 41, b"python3", 1, is_exec=True), records.fork(41, 1, 42, 41, 2),
            records.mmap2(41, 0x1000, 0x2000, 0, b"/bin/x", 3, b"\xaa" * 20),
            records.sample(41, 42, 4, [KERNEL, TEXT + 0x1010, USER, 0x1100, 0x1801]),
            records.sample(0, 0, 5, [KERNEL, TEXT + 0x1010]),
            records.raw_sample(101, 1, 6, b"abc"), records.lost(3, 7),
            records.ksymbol(0xFFFFFFFFC0600000, 9, b"bpf", 8),
            records.record(19, struct.pack("<Q", 77) + records.padded(b"/a/b") + records.trailer(1, 1, 9)),
            records.leave(41, 41, 9),
        )
    )  # fmt: skip


def perf_story(samples: int = SAMPLES) -> bytes:
    data = records.comm(7, 7, b"sh", 0) + records.mmap2(7, 0x1000, 0x1000, 0, b"/bin/nothing", 0)
    for number in range(samples):
        at = 1000 + number * 10
        chain = [KERNEL, TEXT + number % 7, TEXT + 0x50, USER, 0x1100 + number % 3, 0x1200]
        data += records.sample(7, 7, at, chain, cpu=number % 4)
        if number % 8 == 0:
            child = 100 + number
            data += records.fork(child, 7, child, 7, at + 1) + records.leave(child, child, at + 2)
            data += records.comm(7, 7, b"n%d" % number, at + 3, is_exec=True)
            data += records.ksymbol(TEXT + 9, 8, b"bpf", at + 4)
        if number % 10 == 9:
            data += perf_file.ROUND
    return data


def odd_story(samples: int = SAMPLES) -> tuple[bytes, list[tuple[bytes, list[int]]]]:
    """Samples with every field of changing length."""
    bits = perf_file.IDENTIFIER | perf_file.IP | perf_file.TID | perf_file.TIME | perf_file.CPU | perf_file.PERIOD
    bits |= perf_file.READ | perf_file.CALLCHAIN | perf_file.RAW | perf_file.BRANCH_STACK | perf_file.REGS_USER
    bits |= perf_file.STACK_USER | perf_file.CGROUP
    data = b""
    for number in range(samples):
        body = struct.pack("<QQIIQIIQ", 1 + number % 2, TEXT, 7, 7, 1000 + number, 0, 0, 5)
        body += struct.pack("<QQQQQ", 2, number, 1, number, 2)
        body += struct.pack("<QQQQ", 3, KERNEL, TEXT, TEXT + 8) + struct.pack("<I4s", 4, b"rawr")
        body += struct.pack("<QQQQ", 1, 0, 0, 0) + struct.pack("<QQ", 1, 5) + struct.pack("<Q8sQ", 8, b"stack", 8)
        data += records.record(9, body + struct.pack("<Q", 77), misc=1)
    kinds = [(perf_file.attr(bits, config=config, read_format=12, regs_user=1), [n]) for n, config in ((1, 0), (2, 2))]
    return data, kinds


def perf_files(samples: int = SAMPLES) -> dict[str, bytes]:
    """perf.data of every form."""
    odd, attrs = odd_story(samples)
    described = perf_file.event_desc([(perf_file.attr(), "cpu-clock", [CLOCK_ID])])
    entry = struct.pack("<IHHi", 0, 2, 52, 7) + bytes(24) + b"/bin/nothing\0\0\0\0"
    words = {3: perf_file.text("node"), 4: perf_file.text("6.1")}
    features = {2: entry, **words, 12: described, 21: struct.pack("<QQ", 1000, 2000)}
    story = perf_story(samples)
    packed = perf_file.compressed(story, 9)
    return {
        "file": perf_file.in_file(story, features=features),
        "pipe": perf_file.in_pipe(story),
        "zstd": perf_file.in_file(packed + perf_file.ROUND),
        "zstd-pipe": perf_file.in_pipe(perf_file.compressed(story, 9, second_form=True)),
        "odd": perf_file.in_file(odd, attrs),
    }


def _seeds(*names: str) -> list[bytes]:
    """Short ones: a mutation should hit a header or a length more often than the tenth equal sample."""
    files = perf_files(4)
    return [files[name] for name in names]


SCRIPT_LINES = (
    "apt-get 10397 [000] 12089.187050:    2004008 cpu-clock:ppp: ",
    "python3 worker 7  1234/1235  [003] 1.000001: 1 cycles: ",
    "         swapper     0 [001] 1.000001: 1 cycles:  ffffffff821e81e7 halt+0x7 ([kernel.kallsyms])",
    "perf   12 [000] 5.000001: sched:sched_switch: prev_comm=a:b prev_pid=1 ==> next_comm=c",
    "a 1 [000] 1.500000: PERF_RECORD_LOST lost 24",
    "apt-get 10397 cycles: ",
    "\tffffffff821e81e7 f+0x7 ([kernel.kallsyms])",
    "\t            1234 Vec::push (inlined)",
    "\t            1234 main+0x4 (/bin/a (deleted))",
    "  main.c:12",
    "# hostname : x",
    "",
)
SCRIPT_SAMPLES = [f"{line}\n{script_rows.CHAIN}\n".encode() for line in SCRIPT_LINES]


def script_seeds() -> list[bytes]:
    """Each kind of line alone, with a stack, and followed by the next kind."""
    pairs = [one + other for one, other in pairwise(SCRIPT_SAMPLES)]
    return [*(f"{line}\n".encode() for line in SCRIPT_LINES), *SCRIPT_SAMPLES, *pairs]


def script(data: bytes) -> None:
    """Whole, and cut where a pipe would cut it: both give the same samples."""
    whole = script_rows.parse(data).samples
    pieces = script_rows.parse(data, piece=1 + len(data) // 3, limit=3).samples
    assert [sample._replace(period=None) for sample in pieces] == [sample._replace(period=None) for sample in whole]


def script_header(data: bytes) -> None:
    header = ScriptHeader(data.decode("utf-8", "replace").splitlines())
    assert isinstance(header.captured_wall_us, int | None)
    assert isinstance(header.host, str | None)
    header.facts()


HEADER = b"""# captured on    : Sun Nov 15 11:52:47 2026
# hostname : x
# nrcpus online : 8
# reference time: 2026-11-15 11:52:47 = 1794743206.000001 (TOD) = 12089.187050 (perf)
# time of first sample : 12089.187050
"""
RUN = encode_ints([0, 1, -1, 1 << 62, -(1 << 62), 77], 7)

TARGETS = (
    Target("ring-records", ring_records, lambda: [b"\0" + ring_story(), b"\x0f" + ring_story() * 2], native=True),
    Target(
        "ring-memory",
        ring_memory,
        lambda: [
            struct.pack("<QQH", len(ring_story()), 0, 1) + ring_story(),
            struct.pack("<QQH", 64, 4000, 2) + ring_story(),
        ],
        refusals=(ValueError,),
        native=True,
    ),
    Target("perf-data-file", imported, lambda: _seeds("file", "odd", "zstd"), native=True, cost=10),
    Target("perf-data-pipe", imported, lambda: _seeds("pipe", "zstd-pipe"), native=True, cost=10),
    Target("perf-script", script, script_seeds, native=True, most_bytes=1024),
    Target("perf-script-header", script_header, lambda: [HEADER]),
    Target("kallsyms", kallsyms, lambda: [KALLSYMS + b"\0" + struct.pack("<QQ", TEXT, TEXT + 0x1003)], native=True),
    Target("varints", numbers, lambda: [struct.pack("<H", 6) + RUN], refusals=(ValueError,), native=True),
)

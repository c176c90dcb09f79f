"""perf.data import against `perf script`, on one file that both read: 700,000 samples of deep and of shallow stacks.

The file is written here, in perf's own format, of this very host: kernel addresses are those of /proc/kallsyms, user
addresses lie in the C library and in python, so both programs find names for all of them. Call paths are few and
leaves are many, as in a real recording: the CPU is somewhere else in the function each time.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

from benchmarks.table import Row

SAMPLES = 700_000
RUNS = 3
PATHS = 20_000
CPUS = 64
PROCESSES = 200
ROUND = 16_384
DEEP, SHALLOW = 30, 9
_KERNEL, _USER = (1 << 64) - 128, (1 << 64) - 512
_TYPE = 0x1 | 0x2 | 0x4 | 0x20 | 0x80 | 0x100  # IP, TID, TIME, CALLCHAIN, CPU, PERIOD
_FLAGS = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 18 | 1 << 23  # mmap, comm, freq, task, sample_id_all, mmap2
_START_NS = 1_000_000_000_000


def measure(_: float) -> list[Row]:
    """Ratios of one run each, the two programs one after the other."""
    perf = shutil.which("perf")
    if perf is None:
        return [Row("perf.data import", "not measured", "perf is not here (Debian package linux-perf)")]
    rows = []
    with tempfile.TemporaryDirectory(prefix="zombiescope-bench-") as scratch:
        for frames in (DEEP, SHALLOW):
            path = Path(scratch, f"{frames}.data")
            write(path, SAMPLES, frames)
            rows += _compare(perf, path, frames, Path(scratch))
            path.unlink()
    return rows


def _compare(perf: str, path: Path, frames: int, scratch: Path) -> list[Row]:
    theirs = _run([perf, "script", "-i", str(path)])
    ours = min(_import(path, scratch) for _ in range(RUNS))
    empty = scratch / "empty.data"
    write(empty, 1, 1)
    start_up = min(_import(empty, scratch) for _ in range(RUNS))
    what = f"{SAMPLES:,} samples of {frames} frames ({path.stat().st_size / 1e6:.0f} MB)"
    without = theirs.seconds / max(ours.seconds - start_up.seconds, 1e-9)
    return [
        Row(f"perf script > /dev/null, {what}", f"{theirs.seconds:.2f} s", f"{theirs.cpu:.2f} s of CPU"),
        Row("zombiescope import of the same, store written", f"{ours.seconds:.2f} s", f"{ours.cpu:.2f} s of CPU"),
        Row(
            "times faster, as a command", f"{theirs.seconds / ours.seconds:.1f}", f"by CPU {theirs.cpu / ours.cpu:.1f}"
        ),
        Row(
            "times faster, without start-up", f"{without:.1f}", f"start-up {start_up.seconds:.2f} s, kallsyms included"
        ),
    ]


class Took(NamedTuple):
    seconds: float
    cpu: float


def _import(path: Path, scratch: Path) -> Took:
    into = scratch / "out"
    shutil.rmtree(into, ignore_errors=True)
    # As the installed command does it.
    start = "import sys; from zombiescope.cli.start import main; sys.exit(main())"
    return _run([sys.executable, "-c", start, "import", str(path), str(into)])


def _run(command: list[str]) -> Took:
    before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return Took(time.perf_counter() - before, cpu)


# --- the file --------------------------------------------------------------------------------------------------------


def write(path: Path, samples: int, frames: int) -> None:
    """A perf.data of this host."""
    chance = random.Random(frames)
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 999, _TYPE, 0, _FLAGS).ljust(128, b"\0") + struct.pack("<QQ", 0, 0)
    with path.open("wb") as file:
        file.write(bytes(104) + attr)
        at = file.tell()
        _write_tasks(file)
        _write_samples(file, samples, frames, chance)
        length = file.tell() - at
        _write_features(file, at + length, at, length)


def _write_features(file: BinaryIO, place: int, data_at: int, data_bytes: int) -> None:
    texts = {3: os.uname().nodename, 4: os.uname().release}
    bodies = [struct.pack("<I", 64) + text.encode().ljust(64, b"\0") for text in texts.values()]
    bodies.append(struct.pack("<QQ", _START_NS, _START_NS + 1_000_000_000_000))
    offset = place + 16 * len(bodies)
    for body in bodies:
        file.write(struct.pack("<QQ", offset, len(body)))
        offset += len(body)
    file.write(b"".join(bodies))
    bits = 1 << 3 | 1 << 4 | 1 << 21
    head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 144, 104, 144, data_at, data_bytes, 0, 0)
    file.seek(0)
    file.write(head + bits.to_bytes(32, "little"))


def _record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def _padded(text: bytes) -> bytes:
    return text + bytes(8 - len(text) % 8)


_NO_TRAILER = bytes(24)  # pid, tid, time, cpu: all zero, as perf makes up its first records


def _write_tasks(file: BinaryIO) -> None:
    text = next(address for address, name in _kernel_functions() if name == "_text")
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, text, 0xFFFFFFFFFF000000 - text, text)
    file.write(_record(1, 1, body + _padded(b"[kernel.kallsyms]_text") + _NO_TRAILER))
    for pid in range(1000, 1000 + PROCESSES):
        file.write(_record(3, 0, struct.pack("<II", pid, pid) + _padded(b"worker%d" % (pid % 7)) + _NO_TRAILER))
        for start, (name, inode, size, offset) in _code().items():
            what = struct.pack("<IIQQQIIQQII", pid, pid, start, size, offset, 8, 1, inode, 0, 5, 2)
            file.write(_record(10, 2, what + _padded(name) + _NO_TRAILER))


def _code() -> dict[int, tuple[bytes, int, int, int]]:
    """Where the C library and python are mapped: start -> (path, inode, bytes, offset in the file)."""
    found = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode, offset, _, inode, *name = line.split()
        if "x" in mode and name and name[0].startswith("/"):
            start, end = (int(part, 16) for part in span.split("-"))
            found[start] = (name[0].encode(), int(inode), end - start, int(offset, 16))
    return found


def _kernel_functions() -> list[tuple[int, str]]:
    found = []
    for line in Path("/proc/kallsyms").read_text().splitlines():
        address, kind, name, *module = line.split()
        if kind in "tT" and not module:
            found.append((int(address, 16), name))
    return found


def _write_samples(file: BinaryIO, samples: int, frames: int, chance: random.Random) -> None:
    kernel = sorted(address for address, _ in _kernel_functions())
    user = [(start, size) for start, (_, _, size, _) in _code().items() if size > 1 << 16]
    long_enough = [start for start, behind in pairwise(kernel) if behind - start >= 128]
    functions = chance.sample(long_enough, 2000)
    places = [start + chance.randrange(0, size, 64) for start, size in chance.choices(user, k=3000)]
    half = frames * 3 // 5
    paths = []
    for _ in range(PATHS):
        inner = [chance.choice(functions) + 16 for _ in range(half - 1)]
        outer = [chance.choice(places) for _ in range(frames - half)]
        words = [*inner, _USER, *outer] if outer else inner
        paths.append(
            (chance.choice(functions), 1000 + chance.randrange(PROCESSES), struct.pack(f"<{len(words)}Q", *words))
        )
    weights = [1 / (rank + 10) for rank in range(PATHS)]
    picks = chance.choices(range(PATHS), weights, k=samples)
    pack = struct.Struct("<IHHQIIQIIQQQQ").pack
    times = [_START_NS + cpu * 100 for cpu in range(CPUS)]
    # A round holds a stretch of each CPU's ring, one CPU after the other, as perf copies them.
    for first in range(0, samples, ROUND):
        for number in range(first, min(first + ROUND, samples)):
            cpu = (number - first) * CPUS // ROUND
            leaf, pid, callers = paths[picks[number]]
            at = leaf + chance.getrandbits(6)
            times[cpu] += 1_000_000
            size = 64 + 8 + len(callers)
            depth = 2 + len(callers) // 8
            file.write(pack(9, 1, size, at, pid, pid, times[cpu], cpu, 0, 1_000_000, depth, _KERNEL, at) + callers)
        file.write(struct.pack("<IHH", 68, 0, 8))

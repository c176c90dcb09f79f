"""The recorder at a width that this machine does not have: rings of so many CPUs, fed with records of a real kernel.

A load of real threads is sampled here by the recorder's own events at a high rate; then its processes are stopped, and
a recorder of its own process gets the records back, 99 a second for each of so many CPUs, in shared memory of the form
of the kernel's rings. Everything else is the recorder as it is: the loop, the decoder, the lookup of names in the
processes that stand still, the log. /proc/stat, /proc/softirqs, /proc/interrupts and the lists of CPUs are files of
that width, mounted over the kernel's in a mount namespace of the recorder. What was captured comes again after a second
or two, so NOVEL of the samples have an innermost user address that is new, which the recorder looks up. Not in it: the
kernel's cost of sampling, and programs that come and go.

    python -m benchmarks.width 192 30 [--tree /path/of/another/version]
"""

from __future__ import annotations

import argparse
import itertools
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.table import Row

HZ = 99
RING_BYTES = 256 << 10
CAPTURE_HZ, CAPTURE_S = 4999, 16.0
STEP_S = 0.1
NOVEL = 0.01
"""New addresses a sample: 0.04 after fifteen thousand samples of this load, and ever fewer."""
_CONTEXT_USER, _CHAIN_AT = 0xFFFFFFFFFFFFFE00, 40
PROCESSES, THREADS = 8, 24
SETTLE_S = 8.0
_HEAD = struct.Struct("<IHH")
_ENDS = struct.Struct("<QQ")
_ENDS_AT, _ID_AT, _TIME_AT, _CPU_AT = 1024, 8, 24, 32
_SAMPLE = 9

# Calls as of a library with frame pointers, some twenty deep; now and then a system call.
NATIVE_LOAD = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
static volatile unsigned long sink; static int zero;
typedef void step(unsigned *seed, int depth); static step *table[];
__attribute__((noinline)) static void work(unsigned *seed) {
    char page[4096];
    if (rand_r(seed) % 4 == 0) { sink += read(zero, page, sizeof page); return; }
    for (int i = 0; i < 20000; i++) sink += i * *seed;
}
#define F(n) __attribute__((noinline)) static void function_##n(unsigned *seed, int depth) { \\
    unsigned r = rand_r(seed); \\
    if (depth == 0) work(seed); else table[(r % 8 ? n * 7 + 1 : r / 8) % 64](seed, depth - 1); sink += n; }
FUNCTIONS
static step *table[] = {NAMES};
static void *run(void *number) {
    unsigned seed = (unsigned long)number;
    for (;;) table[rand_r(&seed) % 64](&seed, 14 + rand_r(&seed) % 12);
}
int main(int count, char **given) {
    pthread_t thread; zero = open("/dev/zero", O_RDONLY);
    for (long i = 1; i < atoi(given[1]); i++) pthread_create(&thread, 0, run, (void *)(i + getpid() * 100L));
    run((void *)(long)getpid());
}
"""
PYTHON_LOAD = """
import json, sys, threading, zlib
data = bytes(range(256)) * 400
def leaf(n):
    if n % 3 == 0: zlib.compress(data, 1)
    elif n % 3 == 1: json.loads(json.dumps({str(i): [i, n] for i in range(300)}))
    else: sorted(hash(str(i * n)) for i in range(2000))
def call(n, depth): return leaf(n) if depth == 0 else call(n + depth, depth - 1)
def run(n):
    while True:
        call(n, n % 9 + 3); n += 1
for i in range(1, int(sys.argv[1])): threading.Thread(target=run, args=(i,), daemon=True).start()
run(0)
"""


@contextmanager
def load(scratch: Path) -> Iterator[list[int]]:
    """Half of it compiled code, half Python: the pids."""
    source, program = scratch / "load.c", scratch / "load"
    functions = "\n".join(f"static step function_{n};" for n in range(64))
    functions = f"{functions}\n" + "\n".join(f"F({n})" for n in range(64))
    names = ", ".join(f"function_{n}" for n in range(64))
    source.write_text(NATIVE_LOAD.replace("FUNCTIONS", functions).replace("NAMES", names))
    flags = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    commands = [[str(program)], [sys.executable, "-c", PYTHON_LOAD]]
    started = [subprocess.Popen([*commands[n % 2], str(THREADS)]) for n in range(PROCESSES)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def capture(pids: list[int], seconds: float) -> dict[int, list[bytes]]:
    """Samples by thread, as the kernel wrote them, of these processes."""
    from zombiescope.kernel import cpu, perf_event

    clock = perf_event.Clock(hz=CAPTURE_HZ)
    cpus = cpu.online() or (0,)
    rings = [perf_event.open_ring(one, clock, perf_event.Features(), 512 << 10) for one in cpus]
    found: dict[int, list[bytes]] = defaultdict(list)
    for ring in rings:
        ring.enable()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
        for ring in rings:
            for record in _take(ring.memory):
                pid, tid = struct.unpack_from("<II", record, 16)
                if pid in pids:
                    found[tid].append(record)
    for ring in rings:
        ring.memory.close()
        ring.close()
    return found


def _take(memory: mmap.mmap) -> Iterator[bytes]:
    head, tail = _ENDS.unpack_from(memory, _ENDS_AT)
    size = len(memory) - mmap.PAGESIZE
    data = memory[mmap.PAGESIZE :]
    data = data[tail % size :] + data[: tail % size]
    at = 0
    while at < head - tail:
        kind, _, length = _HEAD.unpack_from(data, at)
        if kind == _SAMPLE:
            yield data[at : at + length]
        at += length
    struct.pack_into("<Q", memory, _ENDS_AT + 8, head)


class Feeder:
    """Writes the records of each CPU into its ring, at their rate, until it is stopped."""

    def __init__(self, path: Path, samples: dict[int, list[bytes]], cpus: int) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        threads = [records for records in samples.values() if len(records) >= HZ // 4]
        self._dice = random.Random(7)
        self._records = []
        for cpu in range(cpus):
            mine = [bytearray(one) for one in threads[cpu % len(threads)]]
            for record in mine:
                struct.pack_into("<Q", record, _ID_AT, cpu + 1)
                struct.pack_into("<I", record, _CPU_AT, cpu)
            start = self._dice.randrange(len(mine))
            self._records.append(itertools.cycle(mine[start:] + mine[:start]))
        self._head = [0] * cpus
        self.fed = self.refused = 0
        self._share = 0.0

    def run(self, files: WideFiles, seconds: float) -> None:
        step, end = time.monotonic(), time.monotonic() + seconds
        while step < end:
            self._share += HZ * STEP_S
            count, self._share = int(self._share), self._share % 1
            self._feed(int(step * 1e9), count)
            files.step()
            step += STEP_S
            time.sleep(max(0.0, step - time.monotonic()))

    def _feed(self, from_ns: int, count: int) -> None:
        for cpu, records in enumerate(self._records):
            page = cpu * (mmap.PAGESIZE + RING_BYTES)
            written = bytearray()
            for number in range(count):
                record = next(records)
                if self._dice.random() < NOVEL:
                    record = self._novel(record)
                struct.pack_into("<Q", record, _TIME_AT, from_ns + (number * 997 + cpu * 5) * 10_000)
                written += record
            self._write(page, cpu, bytes(written), count)

    def _novel(self, record: bytearray) -> bytearray:
        """The same, from some bytes further on in its function or the next."""
        (depth,) = struct.unpack_from("<Q", record, _CHAIN_AT)
        chain = list(struct.unpack_from(f"<{depth}Q", record, _CHAIN_AT + 8))
        if _CONTEXT_USER not in chain[:-1]:
            return record
        place = chain.index(_CONTEXT_USER) + 1
        changed = record[:]
        struct.pack_into("<Q", changed, _CHAIN_AT + 8 + 8 * place, chain[place] + self._dice.randrange(1, 2048))
        return changed

    def _write(self, page: int, cpu: int, data: bytes, count: int) -> None:
        (tail,) = struct.unpack_from("<Q", self._memory, page + _ENDS_AT + 8)
        head = self._head[cpu]
        if head - tail + len(data) > RING_BYTES:
            self.refused += count
            return
        start, base = head % RING_BYTES, page + mmap.PAGESIZE
        first = min(len(data), RING_BYTES - start)
        self._memory[base + start : base + start + first] = data[:first]
        self._memory[base : base + len(data) - first] = data[first:]
        self._head[cpu] = head + len(data)
        struct.pack_into("<Q", self._memory, page + _ENDS_AT, head + len(data))
        self.fed += count


class WideFiles:
    """Kernel files of so many CPUs, all of them busy; what they count moves with every step."""

    def __init__(self, scratch: Path, cpus: int) -> None:
        self._cpus, self._ticks, self._scratch = cpus, 1000, scratch
        every = f"0-{cpus - 1}\n"
        self.mounts: dict[str, Path] = {}
        for name in ("online", "possible", "present"):
            self._make(f"/sys/devices/system/cpu/{name}", every)
        self._stat = self._make("/proc/stat", "")
        self._softirqs = self._make("/proc/softirqs", "")
        self._interrupts = self._make("/proc/interrupts", "")
        self._names = [line.split(":")[0].strip() for line in Path("/proc/softirqs").read_text().splitlines()[1:]]
        self._rest = [line for line in Path("/proc/stat").read_text().splitlines() if not line.startswith("cpu")]
        self.step()

    def _make(self, place: str, text: str) -> Path:
        path = self._scratch / place.strip("/").replace("/", "-")
        path.write_text(text)
        self.mounts[place] = path
        return path

    def step(self) -> None:
        self._ticks += int(100 * STEP_S)
        t, cpus = self._ticks, range(self._cpus)
        lines = [f"cpu{n} {t * 6 // 10} 0 {t * 4 // 10} 100 0 0 {t // 100} 0 0 0" for n in cpus]
        total = f"cpu {t * 6 // 10 * self._cpus} 0 {t * 4 // 10 * self._cpus} 100 0 0 0 0 0 0"
        self._put(self._stat, "\n".join([total, *lines, *self._rest]) + "\n")
        head = " ".join(f"CPU{n}" for n in cpus)
        rows = [f"{name}: " + " ".join(str(t * (3 if k in (1, 7, 9) else 0)) for _ in cpus)
                for k, name in enumerate(self._names)]  # fmt: skip
        self._put(self._softirqs, "\n".join([f"  {head}", *rows]) + "\n")
        rows = [f"{name}: " + " ".join(str(t * k) for _ in cpus) + f"   {what}"
                for k, (name, what) in enumerate((("NMI", "Non-maskable"), ("LOC", "Local timer"), ("RES", "Resched"),
                                                  ("CAL", "Calls"), ("TLB", "Shootdowns")))]  # fmt: skip
        self._put(self._interrupts, "\n".join([f"  {head}", *rows]) + "\n")

    def _put(self, path: Path, text: str) -> None:
        with path.open("r+b") as file:  # the same file: it is mounted
            file.write(text.encode())
            file.truncate()


def record_fed(rings: str, config: str) -> int:
    """The recorder's process: its rings are those of the feeder."""
    from zombiescope.kernel import perf_event
    from zombiescope.kernel.perf_event import CpuRing
    from zombiescope.recorder import __main__ as program
    from zombiescope.recorder.config import parse

    file = os.open(rings, os.O_RDWR)

    def open_ring(cpu: int, *_: Any) -> CpuRing:
        size = mmap.PAGESIZE + RING_BYTES
        memory = mmap.mmap(file, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=cpu * size)
        return CpuRing(cpu, os.eventfd(0, os.EFD_NONBLOCK), memory, [(cpu + 1, 0)])

    perf_event.open_ring = open_ring  # type: ignore[assignment]
    CpuRing.add_tracepoint = lambda *_, **__: None  # type: ignore[method-assign]
    CpuRing.enable = lambda _: None  # type: ignore[assignment,method-assign]
    return program.record(parse(config))


def tree_cpu_s(pid: int) -> dict[str, float]:
    """CPU of a process and of all below it, by what they are: what the scheduler counted, to the nanosecond."""
    found: dict[str, float] = {}
    for one in [pid, *_below(pid)]:
        try:
            words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
            threads = [int(path.read_text().split()[0]) for path in Path(f"/proc/{one}/task").glob("*/schedstat")]
        except OSError:
            continue
        name = next(
            (word.decode().rpartition(".")[2] for word in words if word.startswith(b"zombiescope.")), "recorder"
        )
        found[name] = found.get(name, 0.0) + sum(threads) / 1e9
    return found


def _below(pid: int) -> list[int]:
    try:
        children = [
            int(one) for path in Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()
        ]
    except OSError:
        return []
    return [one for child in children for one in (child, *_below(child))]


@contextmanager
def fed_recorder(tree: Path, scratch: Path, rings: Path, files: WideFiles, **config: Any) -> Iterator[Any]:
    settings = {"dir": str(scratch / "r"), "node": "wide", "json": True, "quiet": True, **config}
    mounts = " && ".join(f"mount --bind {path} {place}" for place, path in files.mounts.items())
    script = f"{mounts} && exec {sys.executable} -m benchmarks.width --fed {rings} '{json.dumps(settings)}'"
    process = subprocess.Popen(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", script],
        stdout=subprocess.PIPE, cwd=Path(__file__).parents[1],
        env={**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(scratch),
             "PYTHONPATH": f"{tree / 'src'}:{Path(__file__).parents[1]}"},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)


def run(cpus: int, seconds: float, tree: Path, samples: dict[int, list[bytes]], profile: str | None = None,
        **config: Any) -> dict[str, Any]:  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="zombiescope-width-") as name:
        scratch = Path(name)
        rings = Path("/dev/shm") / f"{scratch.name}-rings"
        try:
            with rings.open("wb") as file:
                file.truncate(cpus * (mmap.PAGESIZE + RING_BYTES))
            feeder, files = Feeder(rings, samples, cpus), WideFiles(scratch, cpus)
            with fed_recorder(tree, scratch, rings, files, **config) as process:
                feeder.run(files, SETTLE_S)
                before, fed = tree_cpu_s(process.pid), feeder.fed
                perf = None
                if profile:
                    perf = subprocess.Popen(
                        [
                            "perf",
                            "record",
                            "-q",
                            "-F",
                            "1999",
                            "-g",
                            "-e",
                            "cpu-clock",
                            "-p",
                            str(process.pid),
                            "-o",
                            profile,
                        ]
                    )
                feeder.run(files, seconds)
                after, fed = tree_cpu_s(process.pid), feeder.fed - fed
                status = Path(f"/proc/{process.pid}/status").read_text()
                if perf:
                    perf.send_signal(signal.SIGINT)
                    perf.wait()
            out, _ = process.communicate()
            said = json.loads(out)
            log_bytes = sum(path.stat().st_size for path in (scratch / "r").rglob("*") if path.is_file())
        finally:
            rings.unlink(missing_ok=True)
    rss_kb = sum(int(status.split(f"{kind}:")[1].split()[0]) for kind in ("RssAnon", "RssFile"))
    used = {name: after[name] - before.get(name, 0.0) for name in after}
    return {"cpu_s": used, "fed": fed, "seconds": seconds, "refused": feeder.refused, "rss_mb": rss_kb / 1024,
            "bytes_a_sample": log_bytes / max(1, said["samples"]), "said": said}  # fmt: skip


def measure(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="zombiescope-load-") as name, load(Path(name)) as pids:
        samples = capture(pids, CAPTURE_S)
        _stop(pids)
        found = run(192, seconds, Path(__file__).parents[1], samples)
    own, every = found["cpu_s"]["recorder"], sum(found["cpu_s"].values())
    rate = found["fed"] / found["seconds"]
    return [
        Row(
            "recorder at 192 fed rings, of a core",
            f"{100 * own / found['seconds']:.1f}%",
            f"{rate:,.0f} samples a second; goal: 3%",
        ),
        Row(
            "CPU a sample, ring to log",
            f"{1e6 * own / found['fed']:.2f} us",
            "everything that the recorder's process does; goal: 1.5 us",
        ),
        Row("recorder and its helpers, of a core", f"{100 * every / found['seconds']:.1f}%", ""),
        Row("log, bytes a sample", f"{found['bytes_a_sample']:.1f}", "goal: 2 GB for 12 hours are 2.4"),
        Row("resident", f"{found['rss_mb']:.0f} MB", "without its rings"),
    ]


def _stop(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cpus", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--tree", type=Path, action="append", help="versions to run in turn")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--profile", help="where perf.data of the first run goes")
    options = parser.parse_args()
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory(prefix="zombiescope-load-") as name, load(Path(name)) as pids:
        samples = capture(pids, CAPTURE_S)
        _stop(pids)
        count = sum(map(len, samples.values()))
        depth = sum(struct.unpack_from("<Q", one, 40)[0] for many in samples.values() for one in many) / count
        distinct = len({one[40:] for many in samples.values() for one in many})
        print(f"{count} samples of {len(samples)} threads, {depth:.1f} addresses each, {distinct} distinct stacks")
        for number in range(options.rounds):
            for tree in options.tree or [here]:
                found = run(options.cpus, options.seconds, tree, samples, options.profile if not number else None)
                own = found["cpu_s"]["recorder"]
                wanted = ("samples", "startup_cpu_seconds", "ticks_late", "lost")
                said = {key: found["said"].get(key) for key in wanted}
                print(
                    f"{tree}: {1e6 * own / found['fed']:.2f} us a sample, {100 * own / found['seconds']:.2f}% of it, "
                    f"{found['fed'] / found['seconds']:.0f} samples/s, refused {found['refused']}, "
                    f"{found['bytes_a_sample']:.2f} B/sample, {found['rss_mb']:.0f} MB; "
                    f"{ {k: round(v, 2) for k, v in found['cpu_s'].items()} } {said}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(record_fed(sys.argv[2], sys.argv[3]) if sys.argv[1:2] == ["--fed"] else main())

"""The process that fuzzes. All targets are imported once, with coverage; each then runs in a fork with its own limits.

It prints one JSON object for each target: what was executed, in which time, and what went wrong. libFuzzer itself ends
its process at the first defect, which is why a target has one.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz import sanitizer

if TYPE_CHECKING:
    from tests.fuzz.target import Target

HANG_S = 30
"""Of one execution, by the clock; its CPU time, which is what counts on a busy machine, is bounded more tightly."""
GRACE_S = 20
PR_SET_PDEATHSIG = 1
_COVERAGE = re.compile(rb"cov: (\d+)")
_FAULT = re.compile(
    rb"(?:Uncaught Python exception: ===\s*\n(?P<python>.*)|(?P<sanitizer>ERROR: \S+Sanitizer: .*|runtime error: .*)|"
    rb"(?P<fuzzer>ERROR: libFuzzer: .*))"
)


class TooSlowError(AssertionError):
    """One input took more CPU than a reader may spend on it."""


def main() -> int:
    options = _options()
    _end_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was made for a child is cleared away
    if options.sanitized:
        sanitizer.load(Path(options.sanitized))
    targets = _instrumented()
    for word in options.names:
        name, _, executions = word.partition(":")
        sys.stdout.write(json.dumps(run(targets[name], options, int(executions))) + "\n")
        sys.stdout.flush()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.worker", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME:EXECUTIONS")
    parser.add_argument("--place", type=Path, required=True, help="where corpora, logs and crashes are kept")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--sanitized", help="the native module to use")
    return parser.parse_args()


def _instrumented() -> dict[str, Target]:
    import atheris

    with atheris.instrument_imports(include=["zombiescope"]):
        from tests.fuzz.targets import TARGETS
    return TARGETS


def run(target: Target, options: argparse.Namespace, executions: int) -> dict[str, object]:
    """One target in a child, until it has had its executions, its seconds or a defect."""
    corpus, crashes = (options.place / kind / target.name for kind in ("corpus", "crashes"))
    _write_seeds(corpus, target.starts())
    crashes.mkdir(parents=True, exist_ok=True)
    known = set(crashes.iterdir())
    log = options.place / "logs" / f"{target.name}.log"
    log.parent.mkdir(exist_ok=True)
    counter = mmap.mmap(-1, 8)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="zombiescope-fuzz-", dir=_in_memory()) as folder:
        pid = os.fork()
        if pid == 0:
            tempfile.tempdir = folder
            _child(target, options, _arguments(target, options, executions, corpus, crashes), counter, log)
        status = _wait(pid, options.seconds + HANG_S + GRACE_S)
    said = log.read_bytes()
    found = sorted(path.name for path in set(crashes.iterdir()) - known)
    covered = _COVERAGE.findall(said)
    return {
        "name": target.name,
        "executions": int.from_bytes(counter[:8], "little"),
        "seconds": round(time.monotonic() - started, 2),
        "coverage": int(covered[-1]) if covered else 0,
        "status": status,
        "crashes": found,
        "fault": _fault(said) if status else None,
    }


def _in_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _end_with_parent() -> None:
    """Whoever started this may be killed; nothing of it goes on then."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _write_seeds(corpus: Path, seeds: Iterable[bytes]) -> None:
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number:03d}").write_bytes(seed)


def _arguments(target: Target, options: argparse.Namespace, executions: int, corpus: Path, crashes: Path) -> list[str]:
    flags = {
        "runs": executions,
        "max_total_time": options.seconds,
        "max_len": target.most_bytes,
        "timeout": HANG_S,
        "rss_limit_mb": 0,
        "malloc_limit_mb": target.memory_mb,
        "artifact_prefix": f"{crashes}/",
        "print_final_stats": 1,
        "len_control": 0,
        "reload": 0,
    }
    if options.seed:
        flags["seed"] = options.seed
    if target.words:
        words = options.place / "words" / target.name
        words.parent.mkdir(exist_ok=True)
        words.write_text("".join(map(_quoted, target.words)))
        flags["dict"] = words
    return [target.name, *(f"-{name}={value}" for name, value in flags.items()), str(corpus)]


def _quoted(word: bytes) -> str:
    """A line of a dictionary, as libFuzzer reads it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def _child(target: Target, options: argparse.Namespace, arguments: list[str], counter: mmap.mmap, log: Path) -> None:
    """Does not return: libFuzzer ends the process."""
    import atheris

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with_parent()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    _limit(target, sanitized=bool(options.sanitized))
    gc.freeze()  # what was imported stays: the collector need not go through it again and again
    atheris.Setup(arguments, _counted(target.feed, counter))
    atheris.Fuzz()
    os._exit(0)


def _limit(target: Target, *, sanitized: bool) -> None:
    """What a target may allocate at all, over what is there now. The sanitizer maps terabytes and counts for itself."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))
    if not sanitized:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = mapped + (target.memory_mb + 64 << 20)  # libFuzzer's own tables and corpus
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _counted(feed: Callable[[bytes], None], counter: mmap.mmap) -> Callable[[bytes], None]:
    from tests.fuzz.target import MOST_CPU_S

    number = 0

    def one(data: bytes) -> None:
        nonlocal number
        number += 1
        counter[:8] = number.to_bytes(8, "little")
        before = time.process_time()
        feed(data)
        if (spent := time.process_time() - before) > MOST_CPU_S:
            raise TooSlowError(f"{len(data)} bytes took {spent:.1f} s of CPU")

    return one


def _wait(pid: int, seconds: float) -> int:
    """Its exit status, negative for a signal; a child that outlives its time is ended."""
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return -signal.SIGKILL
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _fault(said: bytes) -> str:
    found = _FAULT.search(said)
    if found is None:
        return said[-300:].decode("utf-8", "replace")
    return next(each for each in found.groups() if each is not None).decode("utf-8", "replace")[:300]


if __name__ == "__main__":
    sys.exit(main())

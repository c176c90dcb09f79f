"""Loads to measure under. Each is bounded and gone when its block ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ONE_BUSY_CORE = "import hashlib\nblock = b'x' * 65536\nwhile True: hashlib.sha256(block).digest()"

MIXED = """
import os, subprocess, time, zlib, hashlib
data = os.urandom(1 << 20)
zero = open('/dev/zero', 'rb', buffering=0); room = bytearray(1 << 20)
while True:
    end = time.monotonic() + 0.2
    while time.monotonic() < end: zlib.compress(data[:65536])
    for _ in range(200): zero.readinto(room)
    for entry in os.scandir('/usr/lib'): entry.stat(follow_symlinks=False)
    subprocess.run(['true']); sorted(os.urandom(50000)); time.sleep(0.05)
"""

LIGHT = MIXED.replace("time.sleep(0.05)", "time.sleep(1.5)")
"""The same things, a fifth of the time: for runs of an hour."""

ZOMBIES = """
import os, sys
parent, pins, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
own = os.open(parent + '/cgroup.procs', os.O_WRONLY)
for number in range(count):
    child = f'{parent}/job-{number}'
    os.mkdir(child)
    fd = os.open(child + '/cgroup.procs', os.O_WRONLY); os.write(fd, b'0'); os.close(fd)
    fd = os.open(f'{pins}/{number}', os.O_CREAT | os.O_WRONLY, 0o600); os.write(fd, b'x'); os.close(fd)
    os.write(own, b'0'); os.rmdir(child)
"""


@contextmanager
def running(script: str, copies: int = 1) -> Iterator[None]:
    """So many Python processes that run the script."""
    processes = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(copies)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def exec_storm(a_second: int) -> Iterator[None]:
    """Short-lived processes, as many as this machine gives up to `a_second`, from two spawners."""
    script = (
        "import os, time\n"
        f"pause = 2 / {a_second}\n"
        "while True:\n"
        "  began = time.monotonic()\n"
        "  pid = os.posix_spawn('/bin/true', ['true'], {})\n"
        "  os.waitpid(pid, 0)\n"
        "  rest = pause - (time.monotonic() - began)\n"
        "  if rest > 0: time.sleep(rest)\n"
    )
    with running(script, 2):
        yield


@contextmanager
def zombies(count: int, mount: Path, name: str = "zombiescope-bench") -> Iterator[Path]:
    """Real zombie cgroups, pinned by a page of tmpfs each. Gives the directory of the pins: remove them and they go."""
    parent, pins = mount / name, Path("/dev/shm") / name
    parent.mkdir(exist_ok=True)
    shutil.rmtree(pins, ignore_errors=True)
    pins.mkdir()
    try:
        if count:
            subprocess.run([sys.executable, "-c", ZOMBIES, str(parent), str(pins), str(count)], check=True)
        yield pins
    finally:
        free(pins)
        shutil.rmtree(pins, ignore_errors=True)
        for _ in range(100):
            try:
                parent.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def free(pins: Path) -> None:
    for entry in os.scandir(pins):
        Path(entry.path).unlink()

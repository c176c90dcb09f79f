"""What comes and goes under `make soak-churn`, each under a new name: a program of its own, below a share of one core.

    python churn_load.py SHARE CGROUPS FILES [RUNC]

A round is a fork, a program, a cgroup, an executable mapping and a container without a runtime: a cgroup with a name as
Docker gives it, a process in namespaces of its own, its root another one. Every RUNC_EVERY rounds a real container is
run by runc, where that is installed. The number of rounds is printed now and then; SIGTERM ends it.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

RUNC_EVERY = 25
PROGRAMS = 5000
KEPT = 50
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
NEW_NAMESPACES = 0x00020000 | 0x20000000 | 0x04000000 | 0x08000000  # mounts, pids, host name, IPC
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
UMOUNT_DETACH = 2
BOX = "box"
RUNC_STATE = "runc"


class Load:
    def __init__(self, cgroups: str, files: str, runc: str | None) -> None:
        self._cgroups, self._files, self._runc = Path(cgroups), Path(files), runc
        self._libc = ctypes.CDLL(None, use_errno=True)
        (self._cgroups / "docker").mkdir(exist_ok=True)
        root = self._files / BOX / "rootfs"
        (root / "bin").mkdir(parents=True)
        os.link(self._files / "busybox", root / "bin" / "busybox")
        (self._files / RUNC_STATE).mkdir()

    def round(self, number: int) -> None:
        for one in (self._fork, self._program, self._cgroup, self._mapping, self._box):
            one(number)
        if self._runc is not None and number % RUNC_EVERY == 0:
            self._container(number)

    def _fork(self, number: int) -> None:
        pid = os.fork()
        if not pid:
            Path("/proc/self/comm").write_text(f"churn-{number % 100_000}")
            os._exit(0)
        os.waitpid(pid, 0)

    def _program(self, number: int) -> None:
        path = self._files / f"program-{number % PROGRAMS}"
        if not path.exists():
            os.link(self._files / "true", path)
        os.waitpid(os.posix_spawn(path, [str(path), f"--run={number}"], {}), 0)
        if number % PROGRAMS > KEPT:
            path.unlink()

    def _cgroup(self, number: int) -> None:
        place = self._cgroups / f"job-{number}"
        place.mkdir()
        pid = os.fork()
        if not pid:
            (place / "cgroup.procs").write_text("0")
            os._exit(0)
        os.waitpid(pid, 0)
        place.rmdir()

    def _mapping(self, number: int) -> None:
        path = self._files / f"library-{number}.so"
        with path.open("w+b") as file:
            file.truncate(8192)
            mmap.mmap(file.fileno(), 8192, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
        path.unlink()

    def _box(self, number: int) -> None:
        """What a runtime does, without one."""
        place = self._cgroups / "docker" / hashlib.sha256(b"box %d" % number).hexdigest()
        place.mkdir()
        pid = os.fork()
        if not pid:
            _end_with(lambda: self._enter(place))
        _check(pid)
        place.rmdir()

    def _enter(self, place: Path) -> None:
        (place / "cgroup.procs").write_text("0")
        self._call(self._libc.unshare(NEW_NAMESPACES))
        pid = os.fork()  # the first one in the new pid namespace
        if not pid:
            _end_with(self._run_inside)
        _check(pid)

    def _run_inside(self) -> None:
        root = str(self._files / BOX / "rootfs").encode()
        self._call(self._libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        self._call(self._libc.mount(root, root, None, MS_BIND | MS_REC, None))
        os.chdir(root)
        self._call(self._libc.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
        self._call(self._libc.umount2(b".", UMOUNT_DETACH))
        os.execv("/bin/busybox", ["busybox", "true"])

    @staticmethod
    def _call(result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def _container(self, number: int) -> None:
        assert self._runc is not None
        name = hashlib.sha256(b"runc %d" % number).hexdigest()
        bundle = self._files / BOX
        (bundle / "config.json").write_text(json.dumps(_bundle(self._cgroups.name, name)))
        command = [self._runc, "--root", str(self._files / RUNC_STATE), "run", "--bundle", str(bundle), name]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


def _end_with(what: Callable[[], None]) -> None:
    """A child's whole life; it never comes back."""
    try:
        what()
    except OSError as error:
        sys.stderr.write(f"no container: {error}\n")
        os._exit(1)
    os._exit(0)


def _check(pid: int) -> None:
    if os.waitpid(pid, 0)[1]:
        raise SystemExit("a container could not be made")


def _bundle(parent: str, name: str) -> dict[str, object]:
    """The least that runc takes."""
    kinds = ("pid", "mount", "ipc", "uts", "network")
    return {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": ["/bin/busybox", "true"], "cwd": "/"},
        "root": {"path": "rootfs", "readonly": True},
        "hostname": name[:12],
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"cgroupsPath": f"/{parent}/docker/{name}", "namespaces": [{"type": kind} for kind in kinds]},
        "annotations": {"io.zombiescope.churn": name},
    }


def _used_s() -> float:
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in each)


def main(share: float, load: Load) -> None:
    os.nice(19)
    number, began, spent = 0, time.monotonic(), _used_s()
    while True:
        load.round(number)
        number += 1
        if number % 10 == 0:
            behind = (_used_s() - spent) / share - (time.monotonic() - began)
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            time.sleep(max(0.0, behind))
            began, spent = time.monotonic(), _used_s()


if __name__ == "__main__":
    main(float(sys.argv[1]), Load(sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None))

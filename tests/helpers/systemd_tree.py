"""A real systemd to test against: a minimal Debian tree, booted in a container.

The tree is made once by debootstrap (half a minute, 240 MB) below $ZOMBIESCOPE_CACHE or
~/.cache/zombiescope and is never written to afterwards: each boot has its changes in a tmpfs above it.
Booting takes about two seconds. The container's system bus is reached through the root of its pid 1, as uid
0 on both sides (no user namespace, or the bus would not accept us).

It works on hosts without systemd too, cgroup v1, v2 or both: pid 1 of the container gets a cgroup of its
own in the hierarchies that systemd uses, removed at the end, and those of earlier runs that were killed at
the next boot.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUITE = "bookworm"
PACKAGES = "systemd,systemd-sysv,dbus"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
TOOLS = ("systemd-nspawn", "debootstrap", "nsenter")

_GROUP_PREFIX = "zombiescope-test-"
_BOOT_DEADLINE_S = 60.0
_PR_SET_PDEATHSIG = 1
_serial = itertools.count()


def missing_tool() -> str | None:
    """The first tool that is not installed, None if a tree can be booted here."""
    if os.geteuid() != 0:
        return "root"
    return next((tool for tool in TOOLS if shutil.which(tool) is None), None)


def cache_directory() -> Path:
    configured = os.environ.get("ZOMBIESCOPE_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "zombiescope"


def debian_tree() -> Path:
    """The tree, made on first use. Renamed into place when whole, so a killed run leaves nothing half
    done."""
    tree = cache_directory() / "debian-tree"
    tree.parent.mkdir(parents=True, exist_ok=True)
    with open(tree.parent / "debian-tree.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.exists():
            unfinished = Path(tempfile.mkdtemp(prefix="debian-tree-", dir=tree.parent))
            try:
                _debootstrap(unfinished)
                unfinished.rename(tree)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return tree


def _debootstrap(tree: Path) -> None:
    keyring = f"--keyring={KEYRING}"  # without it debootstrap checks no signature where it finds none itself
    command = ["debootstrap", "--variant=minbase", keyring, f"--include={PACKAGES}", SUITE, str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"debootstrap failed; is the Debian mirror reachable?\n{done.stdout[-2000:]}{done.stderr}")
    (tree / "etc/machine-id").write_text("5d41402abc4b2a76b9719d911017c592\n")  # or first boot asks questions
    tree.chmod(0o755)


@dataclass(frozen=True)
class BootedSystemd:
    """A running container. `root` is its file system seen from here."""

    leader: int
    log: Path

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.leader}/root")

    @property
    def bus_address(self) -> str:
        return f"unix:path={self.root}/run/dbus/system_bus_socket"

    def run(self, *command: str, check: bool = True, timeout_s: float = 30.0) -> str:
        """The output of a command inside."""
        entered = ["nsenter", f"--target={self.leader}", "--all", *command]
        done = subprocess.run(entered, capture_output=True, text=True, timeout=timeout_s)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def add_service(self, name: str, service: str, unit: str = "") -> None:
        """Writes a unit file into /run and has systemd read it."""
        text = f"[Unit]\nDescription={name}\n{unit}\n[Service]\n{service}\n"
        (self.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        (self.root / "run/systemd/system" / name).write_text(text)
        self.run("systemctl", "daemon-reload")


@contextlib.contextmanager
def boot(*options: str) -> Iterator[BootedSystemd]:
    """A container with its own pid, mount and network namespaces, gone at the end whatever happens."""
    tree = debian_tree()
    name = f"{_GROUP_PREFIX}{os.getpid()}-{next(_serial)}"
    _remove_what_killed_runs_left()
    log = cache_directory() / f"{name}.log"
    nspawn = _start(tree, name, log, options)
    try:
        machine = BootedSystemd(_leader_of(nspawn, log), log)
        _wait_until_up(machine, nspawn)
        yield machine
    finally:
        _end(nspawn)
        for group in _groups(name):
            _remove_group(group)
        log.unlink()


def _start(tree: Path, name: str, log: Path, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    command = [
        "systemd-nspawn", "--quiet", "--boot", f"--directory={tree}", f"--machine={name}",
        "--volatile=overlay", "--register=no", "--private-network", "--console=pipe",
        "--link-journal=no", "--resolv-conf=off", "--timezone=off", *options,
    ]  # fmt: skip
    groups = []
    if not Path("/run/systemd/system").exists():
        command.append("--keep-unit")  # there is no systemd here to ask for a scope
        groups = _groups(name)
        for group in groups:
            group.mkdir(exist_ok=True)
    libc = ctypes.CDLL(None)

    def enter() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    with open(log, "wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=enter,
            start_new_session=True,
        )


def _hierarchies() -> list[Path]:
    """The mount points of cgroup2 and of systemd's own v1 hierarchy."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(Path(left.split(" ")[4]))
    return found


def _groups(name: str) -> list[Path]:
    return [hierarchy / name for hierarchy in _hierarchies()]


def _remove_what_killed_runs_left() -> None:
    """A test run that was killed takes systemd-nspawn with it, but not pid 1 of the container."""
    for directory in (cache_directory(), *_hierarchies()):
        for left in directory.glob(f"{_GROUP_PREFIX}*"):
            owner = left.name.removeprefix(_GROUP_PREFIX).partition("-")[0]
            if Path(f"/proc/{owner}").exists():
                continue
            if left.is_dir():
                _remove_group(left)
            else:
                left.unlink()


def _remove_group(group: Path, deadline_s: float = 5.0) -> None:
    """With all that still runs in it. Innermost first; the kernel takes a moment to empty them."""
    end = time.monotonic() + deadline_s
    while group.exists() and time.monotonic() < end:
        for processes in group.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):  # gone meanwhile
                for pid in processes.read_text().split():
                    if pid != "0":  # of another pid namespace; to kill 0 would be to kill ourselves
                        os.kill(int(pid), signal.SIGKILL)
        for directory, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(directory).rmdir()
        time.sleep(0.05)


def _leader_of(nspawn: subprocess.Popen[bytes], log: Path) -> int:
    """pid 1 of the container, as numbered here."""
    end = time.monotonic() + _BOOT_DEADLINE_S
    while time.monotonic() < end and nspawn.poll() is None:
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
        for child in children:
            with contextlib.suppress(OSError):
                if b"systemd" in Path(f"/proc/{child}/comm").read_bytes() and _pid_inside(child) == 1:
                    return int(child)
        time.sleep(0.05)
    raise RuntimeError(f"systemd-nspawn did not start: {log.read_text(errors='replace')[-2000:]}")


def _pid_inside(pid: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(numbers.split()[-1]) if len(numbers.split()) > 2 else 0


def _wait_until_up(machine: BootedSystemd, nspawn: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _BOOT_DEADLINE_S
    state = "not asked"
    while time.monotonic() < end and nspawn.poll() is None:
        if (machine.root / "run/dbus/system_bus_socket").exists():
            state = machine.run("systemctl", "is-system-running", check=False).strip()
            if state in ("running", "degraded"):
                return
        time.sleep(0.1)
    raise RuntimeError(f"systemd did not come up ({state}): {machine.log.read_text(errors='replace')[-2000:]}")


def _end(nspawn: subprocess.Popen[bytes]) -> None:
    nspawn.terminate()  # an orderly shutdown of the container
    try:
        nspawn.wait(10)
    except subprocess.TimeoutExpired:
        nspawn.kill()
        nspawn.wait()

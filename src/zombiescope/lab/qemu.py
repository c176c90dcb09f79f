"""One QEMU process: its CPUs, a read-only disk under a throw-away overlay, and a NIC that reaches nothing.

Nothing of it has a name on this machine: the channels are socket pairs, the overlay and the console's log are files
that were removed when they were opened. So nothing is left behind however the process ends, and it ends with us:
PR_SET_PDEATHSIG kills it when we are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from zombiescope.lab import cache, programs
from zombiescope.lab.failure import LabError

TCG = ("-accel", "tcg,thread=multi", "-cpu", "max")
KVM = ("-accel", "kvm", "-cpu", "host")

_BARE = ("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35")
_CONSOLE = "console=ttyS0 panic=-1"
_PANIC = "Kernel panic"
_LAST, _LINE = 3, 200
"""How many lines of a console are repeated, and how much of each."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the machine is made of. The first disk is the root; a disk that `keeps` nothing gets an overlay."""

    kernel: Path
    accelerator: Sequence[str]
    initrd: Path | None = None
    disks: Sequence[Path] = ()
    options: str = ""
    cpus: int = 4
    memory_bytes: int = 1536 << 20
    ports: Sequence[str] = field(default=())


class Qemu:
    """The running process, its console and its ports."""

    def __init__(self, hardware: Hardware) -> None:
        program = [*_end_with_us(), *_machine(hardware)]
        self._console: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        self.ports: dict[str, socket.socket] = {}
        theirs: list[socket.socket] = []
        for name in hardware.ports:
            self.ports[name], end = socket.socketpair()
            theirs.append(end)
        fds = [end.fileno() for end in theirs]
        command = [*program, *_channels(hardware.ports, fds)]
        try:
            self._process = subprocess.Popen(  # noqa: S603  QEMU, its arguments made here
                command, stdin=subprocess.DEVNULL, stdout=self._console, stderr=self._console, pass_fds=fds,
                start_new_session=True,
            )  # fmt: skip
        finally:
            for end in theirs:
                end.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def console(self) -> str:
        """Everything that was written to the serial console, and QEMU's own complaints."""
        self._console.seek(0)
        return self._console.read().decode(errors="replace")

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, limit_s: float) -> bool:
        """True when it ended by itself within the limit."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)
        return not self.running()

    def must_run(self) -> None:
        """An error with the console's last lines if it does not."""
        if not self.running():
            raise LabError(f"the machine stopped: {self.last_lines()}")

    def last_lines(self) -> str:
        """The end of the console on one line. A panic stands before its call trace, so the trace is left out."""
        lines = ["".join(filter(str.isprintable, line)).strip() for line in self.console().splitlines()]
        lines = [line[:_LINE] for line in lines if line]
        panics = [at for at, line in enumerate(lines) if _PANIC in line]
        end = panics[0] + 1 if panics else len(lines)
        return " | ".join(lines[max(end - _LAST, 0) : end]) or "nothing was printed"

    def close(self) -> None:
        """Power off at once; the disk is thrown away, so there is nothing to write back."""
        self._process.terminate()
        if not self.wait(5.0):
            self._process.kill()
            self._process.wait()
        for port in self.ports.values():
            port.close()
        self._console.close()


def _end_with_us() -> tuple[str, ...]:
    return (programs.find("setpriv"), "--pdeathsig", "KILL", "--")


def _machine(hardware: Hardware) -> list[str]:
    made = [programs.find("qemu-system-x86_64"), *_BARE, *hardware.accelerator]
    made += ["-smp", str(hardware.cpus), "-m", f"{hardware.memory_bytes >> 20}", "-serial", "stdio"]
    made += ["-kernel", str(hardware.kernel), "-append", f"{_CONSOLE} {hardware.options}".strip()]
    made += ["-initrd", str(hardware.initrd)] if hardware.initrd else []
    for disk in hardware.disks:
        made += ["-drive", f"file={disk},if=virtio,format=raw,snapshot=on,cache=unsafe"]
    made += ["-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=random"]
    return made


def _channels(ports: Sequence[str], fds: Sequence[int]) -> list[str]:
    """virtio-serial ports over the given sockets, and a NIC that is restricted to QEMU itself."""
    made = ["-device", "virtio-serial-pci"]
    for name, fd in zip(ports, fds, strict=True):
        device = "virtconsole" if name == "console" else f"virtserialport,name=zombiescope.{name}"
        made += ["-chardev", f"socket,id={name},fd={fd}", "-device", f"{device},chardev={name}"]
    return [
        *made,
        "-netdev",
        "user,id=nic,restrict=on,ipv6=off",
        "-device",
        "virtio-net-pci,netdev=nic,romfile=",
    ]


# --- accelerator ------------------------------------------------------------------------------------------------------
# Does KVM really work here? Asked by booting the kernel in it, since a /dev/kvm that opens may still hang its guests.
#
# The kernel is given no disk, so a good boot ends by itself in "Unable to mount root fs" within a second or two; that
# it came so far proves interrupts, timers and all CPUs. The answer is kept until the next reboot.

_LIMIT_S = 10.0
_REACHED = "Unable to mount root fs"


def accelerator(kernel: Path, note: Callable[[str], None]) -> tuple[str, ...]:
    """QEMU's options for KVM, else for software emulation, which is said in one line."""
    why = why_not_kvm(kernel)
    if why is None:
        return KVM
    note(f"no KVM ({why}): the machine runs in software emulation, several times slower")
    return TCG


def why_not_kvm(kernel: Path) -> str | None:
    """None where KVM works."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "no /dev/kvm" if not os.path.exists("/dev/kvm") else "/dev/kvm cannot be opened"  # noqa: PTH110
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        place = cache.entry("accelerator", cache.key(boot), lambda into: _remember(kernel, into / "verdict.json"))
    except PermissionError:  # the cache is somebody else's
        return _ask(kernel)
    why: str | None = json.loads((place / "verdict.json").read_text())["why_not"]
    return why


def _remember(kernel: Path, answer: Path) -> None:
    answer.write_text(json.dumps({"why_not": _ask(kernel)}))


def _ask(kernel: Path) -> str | None:
    machine = Qemu(Hardware(kernel, KVM, options="loglevel=7"))
    try:
        ended = machine.wait(_LIMIT_S)
        console = machine.console()
    finally:
        machine.close()
    if _REACHED in console:
        return None
    if ended:
        said = [line for line in console.splitlines() if line.strip() and "warning:" not in line] or ["nothing"]
        return f"QEMU says: {said[0].removeprefix('qemu-system-x86_64: ')}"
    return f"/dev/kvm opens, but a kernel booted in it hung for {_LIMIT_S:.0f} s"

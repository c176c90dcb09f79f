"""A whole node to try things on: Debian with its own kernel, systemd, D-Bus, journal, and four CPUs or more; thrown
away.

    with boot(Plan(cgroup="v1", cpus=16)) as node:
        node.run("systemctl", "is-system-running")

Commands and files go over a virtio-serial port; the machine has a NIC, and it leads nowhere. It is gone when the
block ends, however it ends. A boot takes half a minute to two minutes in software emulation. An idle CPU of its costs
this machine next to nothing, so a node may be much wider than the machine it runs on: one busy CPU of sixteen needs
one core here.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import posixpath
import select
import shutil
import socket
import sys
import tarfile
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from zombiescope.kernel import meminfo
from zombiescope.lab import product, programs, qemu
from zombiescope.lab.boot_files import BUILT_IN, BootFiles, boot_files
from zombiescope.lab.failure import LabError
from zombiescope.lab.qemu import KVM, Hardware, Qemu
from zombiescope.lab.scenario import GB

BOOT_LIMIT_S = 420.0
CPUS, MOST_CPUS = 4, 255
"""q35 has room for no more without an interrupt remapper."""
MEMORY_BYTES, CPU_BYTES = 1536 << 20, 32 << 20

_OPTIONS = (
    "root=/dev/vda rw loglevel=4 mitigations=off init_on_alloc=0 net.ifnames=0 random.trust_cpu=on "
    "systemd.show_status=no"
)
"""Clearing every page when it is allocated, as Debian does, is most of the work of an emulated processor."""
_CGROUP = {"v2": "systemd.unified_cgroup_hierarchy=1", "v1": "systemd.unified_cgroup_hierarchy=0"}
"""v1 is what older distributions call hybrid: the controllers on v1, systemd's own tree on v2."""

Cgroup = Literal["v1", "v2"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which node. `kernel` is the Debian suite whose kernel it boots, or the path of an image of one's own; `product`
    puts zombiescope into it."""

    cgroup: Cgroup = "v2"
    kernel: str = "bookworm"
    product: bool = True
    cpus: int = CPUS

    @property
    def memory_bytes(self) -> int:
        """A wider machine needs more: the kernel and the recorder keep rings and counters for each CPU."""
        return MEMORY_BYTES + max(0, self.cpus - CPUS) * CPU_BYTES


class LabNode:
    """A node that is up. `boot` makes it."""

    def __init__(self, plan: Plan, made: BootFiles, machine: Qemu, accelerated: bool) -> None:
        self.plan = plan
        self.image = made
        self.accelerated = accelerated
        self.boot_seconds: float | None = None
        self._machine = machine
        self._channel = Channel(machine.ports["agent"])

    @property
    def pid(self) -> int:
        """Of QEMU."""
        return self._machine.pid

    def console(self) -> str:
        return self._machine.console()

    @property
    def terminal(self) -> Any:
        """The socket of the machine's second console, for a shell."""
        return self._machine.ports["console"]

    def wait_until_up(self, limit_s: float = BOOT_LIMIT_S) -> None:
        """Until systemd has started everything it was asked to and our agent answers."""
        begun = time.monotonic()
        try:
            self._channel.wait_for_agent(limit_s, self._machine.must_run)
        except LabError as error:
            ends = f" (its console ends: {self._machine.last_lines()})" if self._machine.running() else ""
            raise LabError(f"{error.what}{ends}", error.fix or self._advice()) from error
        self.boot_seconds = time.monotonic() - begun

    def _advice(self) -> str | None:
        if self.image.initrd is not None:
            return None
        return f"a kernel of one's own boots without a ramdisk and can load nothing: build {BUILT_IN} into it"

    def run(self, *argv: str, stdin: bytes = b"", limit_s: float = 60.0, **more: Any) -> Done:
        """Run a command as root in the node; see Channel.run."""
        return self._channel.run(argv, stdin=stdin, limit_s=limit_s, alive=self._machine.must_run, **more)

    def shell(self, script: str, *, limit_s: float = 60.0) -> str:
        """What a shell script prints; an error if it fails."""
        return self.run("/bin/sh", "-euc", script, limit_s=limit_s).check().text

    def put(self, path: str, data: bytes | str) -> None:
        """Write a file in the node."""
        content = data.encode() if isinstance(data, str) else data
        script = 'mkdir -p "$(dirname "$0")" && cat > "$0"'
        self.run("/bin/sh", "-euc", script, path, stdin=content, limit_s=300.0).check()

    def get(self, path: str, into: Path) -> Path:
        """Copy a file or a tree out of the node; answers where it is now."""
        parent, name = posixpath.split(path.rstrip("/"))
        done = self.run("tar", "--create", "--directory", parent or "/", name, limit_s=300.0)
        # tar ends with 1 when a file grew under it, which a recording in use does.
        if done.exit not in (0, 1) or not done.stdout:
            done.check()
        into.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(into, filter="data")
        return into / name

    def install(self) -> None:
        """Mount the disk with zombiescope in it, and make its user and its unit known, as the documentation says."""
        share = f"{product.PLACE}/share/zombiescope"
        setting = "/etc/sysctl.d/60-zombiescope.conf"
        steps = (
            f"mount -o ro /dev/vdb {product.PLACE}",
            f"ln -s {product.PLACE}/bin/zombiescope /usr/local/bin/",
            f"systemd-sysusers {share}/zombiescope.sysusers",
            f"install -m 644 {share}/zombiescope.sysctl {setting}",
            f"sysctl --quiet --load {setting}",
            f"[ $(cat /proc/sys/kernel/cap_last_cap) -ge 38 ] || install -D -m 644 {share}/before-linux-5.8.conf "
            "/etc/systemd/system/zombiescope.service.d/before-linux-5.8.conf",
            f"systemctl link {share}/zombiescope.service",
            # As on every node of a cluster; a bare Debian passes cpu down only once a unit asks for a share of it.
            *(["systemctl set-property --runtime system.slice CPUWeight=100"] if self.plan.cgroup == "v2" else []),
        )
        self.shell("\n".join(steps), limit_s=120.0)


def _must_fit(plan: Plan) -> None:
    """Raises LabError for a machine that this one cannot hold."""
    available = (meminfo.read() or {}).get("mem_available_bytes")
    if available is not None and plan.memory_bytes > available:
        wanted, free = plan.memory_bytes / GB, available / GB
        raise LabError(f"a node of {plan.cpus} CPUs needs {wanted:.1f} GB, and {free:.1f} GB are free", "ask for fewer")


@contextmanager
def boot(plan: Plan, note: Callable[[str], None] = lambda _: None, made: BootFiles | None = None) -> Iterator[LabNode]:
    """A node that is up, and gone afterwards. `note` is called with what takes time; `made` is booted in the place of
    Debian."""
    programs.find("qemu-system-x86_64")  # before anything is built for it
    _must_fit(plan)
    made = made or boot_files(plan.kernel)
    disks = [made.disk, *([product.product_disk()] if plan.product else [])]
    chosen = qemu.accelerator(made.proven, note)
    options = f"{_OPTIONS} {_CGROUP[plan.cgroup]}"
    hardware = Hardware(
        made.kernel, chosen, made.initrd, disks, options, plan.cpus, plan.memory_bytes, ports=("agent", "console")
    )
    machine = Qemu(hardware)
    try:
        node = LabNode(plan, made, machine, chosen == KVM)
        node.wait_until_up()
        if plan.product:
            node.install()
        yield node
    finally:
        machine.close()


# --- channel ----------------------------------------------------------------------------------------------------------
# The host's end of the virtio-serial channel: commands into the machine, their output back, without a network.
#
# The protocol is described in guest_agent.py. One command at a time; every command has a limit, kept by the agent,
# and a second one here for when the machine itself stands still. Software emulation is slow, so limits are generous.

_GRACE_S = 30.0
"""How long after its limit a command may take to be killed and reported before the machine counts as stuck."""

Watcher = Callable[[str, bytes], None]
"""Called with "stdout" or "stderr" and what came, while the command runs."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command in the machine ended. `exit` is None when it reached its limit and was killed."""

    argv: tuple[str, ...]
    exit: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    why: str | None = None

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    def check(self) -> Done:
        """Itself if the command succeeded, else an error with the end of what it said."""
        if self.exit == 0:
            return self
        said = " | ".join((self.stderr or self.stdout).decode(errors="replace").strip().splitlines()[-4:])
        how = "timed out" if self.exit is None else f"exited with {self.exit}"
        raise LabError(f"in the machine, `{' '.join(self.argv)}` {how}: {said or self.why or 'it printed nothing'}")


class Channel:
    """Requests and replies over one socket, whose other end is a port of the machine."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()
        self._number = 0
        self.hello: dict[str, Any] | None = None

    def wait_for_agent(self, limit_s: float, alive: Callable[[], None]) -> dict[str, Any]:
        """Wait until the agent greets. `alive` raises when waiting has become pointless."""
        for frame in self._frames(time.monotonic() + limit_s, alive):
            if "hello" in frame:
                self.hello = frame["hello"]
                return frame["hello"]  # type: ignore[no-any-return]  # JSON
        raise LabError(f"the machine did not come up within {limit_s:.0f} s")

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        limit_s: float = 60.0,
        environment: Mapping[str, str] | None = None,
        watch: Watcher | None = None,
        alive: Callable[[], None] = lambda: None,
    ) -> Done:
        """Run a command in the machine to its end."""
        self._number += 1
        request = {
            "id": self._number, "argv": list(argv), "stdin": base64.b64encode(stdin).decode(), "limit_s": limit_s,
            "env": dict(environment or {}),
        }  # fmt: skip
        begun = time.monotonic()
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        output: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        for frame in self._frames(begun + limit_s + _GRACE_S, alive):
            if frame.get("id") != self._number:
                continue
            for name in output.keys() & frame.keys():
                chunk = base64.b64decode(frame[name])
                output[name].append(chunk)
                if watch is not None:
                    watch(name, chunk)
            if "exit" in frame:
                texts = (b"".join(output["stdout"]), b"".join(output["stderr"]))
                return Done(tuple(argv), frame["exit"], *texts, time.monotonic() - begun, frame.get("why"))
        raise LabError(f"the machine hangs: no answer to `{' '.join(argv)}` in {limit_s + _GRACE_S:.0f} s")

    def _frames(self, deadline: float, alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
        while (left := deadline - time.monotonic()) > 0:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                with contextlib.suppress(ValueError):  # a line cut by an agent that was restarted
                    yield json.loads(line)
                continue
            alive()
            if select.select([self._socket], [], [], min(left, 0.5))[0]:
                chunk = self._socket.recv(1 << 16)
                if not chunk:
                    alive()
                    raise LabError("the machine closed its channel")
                self._buffer += chunk

    def close(self) -> None:
        self._socket.close()


# --- terminal ---------------------------------------------------------------------------------------------------------
# A person's shell in a machine: this terminal, byte for byte, joined to the machine's second console (hvc0).

_FOR_EVER_S = 30 * 86_400.0
_SHELL = (
    "stty -F /dev/hvc0 rows {rows} cols {columns};exec setsid --ctty --wait /bin/bash -l < /dev/hvc0 > /dev/hvc0 2>&1"
)


def attach(node: LabNode) -> int:
    """Give the person a root shell in the node; answers its exit code when it ends."""
    size = shutil.get_terminal_size()
    script = _SHELL.format(rows=size.lines, columns=size.columns)
    environment = {"TERM": os.environ.get("TERM", "linux"), "PS1": "\\u@\\h:\\w# "}
    ended: list[int] = []

    def shell() -> None:
        done = node.run("/bin/sh", "-c", script, limit_s=_FOR_EVER_S, environment=environment)
        ended.append(done.exit or 0)

    worker = threading.Thread(target=shell, daemon=True)
    with _raw(sys.stdin.fileno()):
        worker.start()
        while worker.is_alive():
            _pass_on(node.terminal)
        _pass_on(node.terminal)
    return ended[0] if ended else 1


def _pass_on(console: socket.socket) -> None:
    keyboard = sys.stdin.fileno()
    for ready in select.select([keyboard, console], [], [], 0.1)[0]:
        if ready is console:
            os.write(sys.stdout.fileno(), console.recv(1 << 16))
        else:
            console.sendall(os.read(keyboard, 1 << 12))


@contextlib.contextmanager
def _raw(terminal: int) -> Iterator[None]:
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)

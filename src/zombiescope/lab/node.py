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

import io
import posixpath
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from zombiescope.kernel import meminfo
from zombiescope.lab import accelerator, product, programs
from zombiescope.lab.boot_files import BUILT_IN, BootFiles, boot_files
from zombiescope.lab.channel import Channel, Done
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
    chosen = accelerator.accelerator(made.proven, note)
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

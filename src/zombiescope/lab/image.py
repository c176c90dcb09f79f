"""The disk that a machine boots from: userland, kernel, our agent, and nothing that would make it wait.

Built once for each kernel and cached by everything that goes into it; machines write to an overlay. The initial
ramdisk holds only what finds the disk: Debian's own takes most of a minute to unpack in software emulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zombiescope.lab import cache, debian, programs
from zombiescope.lab.failure import CannotBuildError

HOSTNAME = "lab"
DISK_BYTES = 3 << 30

_BOOT_MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic", "virtio_console", "virtio_net")

_MASKED = (
    "apt-daily-upgrade.timer", "apt-daily.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "fstrim.timer", "getty@tty1.service", "getty.target", "serial-getty@ttyS0.service", "systemd-timesyncd.service",
    "systemd-networkd-wait-online.service", "systemd-pcrphase.service", "sysstat.service", "ldconfig.service",
    "systemd-firstboot.service", "systemd-machine-id-commit.service",
)  # fmt: skip

_AGENT_UNIT = """\
[Unit]
Description=Runs the commands of the lab
DefaultDependencies=no
After=systemd-journald.socket multi-user.target

[Service]
ExecStart=/usr/bin/python3 -I /usr/lib/zombiescope-lab/agent.py
Restart=always
RestartSec=1
KillMode=process
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

[Install]
WantedBy=multi-user.target
"""

_FILES = {
    "etc/hostname": f"{HOSTNAME}\n",
    "etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {HOSTNAME}\n",
    "etc/fstab": "/dev/vda / ext4 noatime 0 0\n",
    "etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=auto\nCOMPRESS=zstd\nRUNSIZE=10%\nFSTYPE=ext4\n",
    "etc/initramfs-tools/modules": "".join(f"{name}\n" for name in _BOOT_MODULES),
    "etc/machine-id": "",
    "etc/timezone": "Etc/UTC\n",
    "etc/systemd/journald.conf.d/lab.conf": "[Journal]\nStorage=volatile\nRuntimeMaxUse=64M\n",
    "etc/systemd/system/zombiescope-lab.service": _AGENT_UNIT,
}


@dataclass(frozen=True, slots=True)
class Image:
    """What QEMU is given. The disk is only ever read."""

    disk: Path
    kernel: Path
    initrd: Path
    release: str


def agent_source() -> str:
    return Path(__file__).with_name("guest_agent.py").read_text()


def image(suite: str) -> Image:
    """The image with this suite's kernel; built if the cache has none."""
    if suite not in debian.KERNELS:
        raise CannotBuildError(f"no kernel called {suite}", f"one of {', '.join(debian.KERNELS)}")
    recipe = Path(__file__).read_text() + Path(debian.__file__).read_text()
    place = cache.entry("disk", f"{suite}-{cache.key(recipe, agent_source())}", lambda into: _build(suite, into))
    release = (place / "release").read_text().strip()
    return Image(place / "disk", place / "vmlinuz", place / "initrd", release)


def _build(suite: str, into: Path) -> None:
    programs.root("building the image")
    base, tree, work = debian.userland(), into / "tree", into / "work"
    programs.call(["cp", "--archive", base, tree])
    work.mkdir()
    release = debian.unpack_kernel(suite, work, tree)
    furnish(tree)
    programs.in_tree(tree, "depmod", release)
    programs.in_tree(tree, "mkinitramfs", "-o", "/boot/initrd", release)
    (tree / f"boot/vmlinuz-{release}").rename(into / "vmlinuz")
    (tree / "boot/initrd").rename(into / "initrd")
    (into / "release").write_text(f"{release}\n")
    make_disk(tree, into / "disk", DISK_BYTES)
    cache.remove(tree)
    cache.remove(work)


def furnish(tree: Path) -> None:
    """Our agent, and nothing that waits, in an unpacked userland."""
    for name, text in _FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    agent = tree / "usr/lib/zombiescope-lab/agent.py"
    agent.parent.mkdir(parents=True)
    agent.write_text(agent_source())
    programs.in_tree(tree, "systemctl", "enable", "zombiescope-lab.service")
    programs.in_tree(tree, "systemctl", "mask", *_MASKED)
    programs.in_tree(tree, "systemctl", "set-default", "multi-user.target")
    (tree / "etc/resolv.conf").unlink(missing_ok=True)
    (tree / "opt/zombiescope").mkdir(parents=True)


def make_disk(tree: Path, disk: Path, size_bytes: int) -> None:
    """An ext4 file system in a sparse file, filled from a tree with owners and modes kept."""
    with open(disk, "wb") as made:
        made.truncate(size_bytes)
    options = ("-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1", "-d", tree)
    programs.call(["mkfs.ext4", *options, disk])

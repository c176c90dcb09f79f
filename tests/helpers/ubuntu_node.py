"""A node with Ubuntu's userland, kernel and container runtime, and the wheel installed as docs/install.md says.

Ubuntu 24.04 with its updates: Python 3.12, glibc 2.39, systemd 255, containerd 2 and runc as a node of a current
cluster has them, AppArmor, and Ubuntu's own kernel settings. It is unpacked from the archive at $UBUNTU_MIRROR and
checked against the archive's keys, and the disk is kept in the laboratory's cache.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Needs
from tests.lanes import environment, interpreters
from zombiescope.lab import cache, image, programs
from zombiescope.lab.boot_files import BootFiles
from zombiescope.lab.failure import CannotBuildError
from zombiescope.lab.node import LabNode, Plan, boot

ROOT = Path(__file__).parents[2]
SUITE, PYTHON = "noble", "3.12"
KEYRING = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
PLACE = "/opt/zombiescope"
DISK_BYTES = 5 << 30
BASE = "systemd,systemd-sysv,dbus,udev,kmod,procps,iproute2,zstd,busybox-initramfs,ca-certificates,python3,python3-venv"
LATER = "initramfs-tools apparmor containerd runc containernetworking-plugins linux-image-virtual"
"""From the updates."""

# Nothing is started while packages are installed: policy-rc.d says no.
_PACKAGES = f"""
export DEBIAN_FRONTEND=noninteractive
printf 'deb %s {SUITE} main universe\\ndeb %s {SUITE}-updates main universe\\n' "$1" "$1" > /etc/apt/sources.list
rm -f /etc/apt/sources.list.d/*
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
apt-get update -qq
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold {LATER} >/dev/null
mkinitramfs -o /boot/initrd "$(ls /usr/lib/modules)"
apt-get clean
rm -rf /usr/sbin/policy-rc.d /var/lib/apt/lists/* /usr/share/doc /usr/share/man /usr/share/locale
"""
_WHEEL = f"""
python{PYTHON} -m venv {PLACE}
{PLACE}/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r /tmp/runtime.txt
{PLACE}/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps /tmp/*.whl
ln -s {PLACE}/bin/zombiescope /usr/local/bin/
systemd-sysusers {PLACE}/share/zombiescope/zombiescope.sysusers
install -m 644 {PLACE}/share/zombiescope/zombiescope.sysctl /etc/sysctl.d/60-zombiescope.conf
rm -rf /tmp/*.whl /tmp/runtime.txt /root/.cache
"""


@contextmanager
def booted() -> Iterator[LabNode]:
    """The node; where it cannot be had, the reason to skip, or to fail."""
    needs = Needs()
    mirror = os.environ.get("UBUNTU_MIRROR")
    if not mirror:
        needs.lack("needs $UBUNTU_MIRROR, the address of an Ubuntu archive")
    if not KEYRING.exists():
        needs.lack(f"needs {KEYRING} (package ubuntu-keyring)")
    interpreter = interpreters.found(PYTHON)
    if interpreter is None:
        needs.lack(f"needs Python {PYTHON}, to build the wheel with")
    wheel = environment.wheel_for(str(interpreter), PYTHON)
    try:
        with boot(Plan("v2", product=False), print, boot_files(str(mirror), wheel)) as node:
            # Ubuntu has no link of the unit yet; the disk of the laboratory's Debian gets it when it is mounted.
            node.shell(f"systemctl link {PLACE}/share/zombiescope/zombiescope.service; "
                       "systemctl set-property --runtime system.slice CPUWeight=100", limit_s=120.0)  # fmt: skip
            yield node
    except CannotBuildError as error:
        needs.lack(str(error))


def boot_files(mirror: str, wheel: Path) -> BootFiles:
    base = cache.key(Path(image.__file__).read_bytes(), SUITE, BASE, LATER, _PACKAGES)
    userland = cache.entry("debian", f"{SUITE}-{base}", lambda into: _unpack(mirror, into / "root"))
    requirements = (ROOT / "requirements/runtime.txt").read_bytes()
    name = cache.key(base, _WHEEL, requirements, wheel.read_bytes(), image.agent_source())
    place = cache.entry("disk", f"{SUITE}-{name}", lambda into: _build(userland / "root", wheel, into))
    release = (place / "release").read_text().strip()
    proven = image.image("bookworm").kernel
    return BootFiles(place / "disk", place / "vmlinuz", place / "initrd", release, proven)


def _unpack(mirror: str, tree: Path) -> None:
    programs.call([
        "debootstrap", "--variant=minbase", "--components=main,universe", f"--include={BASE}", f"--keyring={KEYRING}",
        SUITE, tree, mirror, "gutsy",
    ])  # fmt: skip
    image.furnish(tree)
    _in_userland(tree, _PACKAGES, mirror)


def _build(userland: Path, wheel: Path, into: Path) -> None:
    tree = into / "tree"
    programs.call(["cp", "--archive", userland, tree])
    (tree / "tmp" / wheel.name).write_bytes(wheel.read_bytes())
    (tree / "tmp/runtime.txt").write_bytes((ROOT / "requirements/runtime.txt").read_bytes())
    _in_userland(tree, _WHEEL)
    (kernel,) = (tree / "boot").glob("vmlinuz-*")
    release = kernel.name.removeprefix("vmlinuz-")
    (tree / "boot/initrd").rename(into / "initrd")
    kernel.rename(into / "vmlinuz")
    (into / "release").write_text(f"{release}\n")
    (tree / "etc/resolv.conf").unlink(missing_ok=True)
    image.make_disk(tree, into / "disk", DISK_BYTES)
    cache.remove(tree)


def _in_userland(tree: Path, script: str, *arguments: str) -> None:
    """With this machine's network and index of packages."""
    command = [str(ROOT / "scripts/in-userland"), str(tree), "sh", "-euc", script, "sh", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise CannotBuildError(f"{SUITE}: {(done.stderr or done.stdout).strip()[-400:]}")

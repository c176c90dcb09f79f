"""Programs of the distribution that images are built with; each is named with the Debian package that has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from zombiescope.base import python as _python
from zombiescope.lab import cache
from zombiescope.lab.failure import CannotBuildError

PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "debootstrap": "debootstrap",
    "mkfs.ext4": "e2fsprogs",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "busybox": "busybox-static",
    "dockerd": "docker.io",
    "docker": "docker.io",
    "ctr": "containerd",
    "etcd": "etcd-server",
    "go": "golang-go",
    "ip": "iproute2",
    "stress-ng": "stress-ng",
}

BESIDE = {"debootstrap": (Path("/usr/share/keyrings/debian-archive-keyring.gpg"), "debian-archive-keyring")}
"""Program -> the file without which it must not be run, and its package. debootstrap without a keyring checks no
signature and only warns: what is booted as root would come from whoever answers for the mirror."""

_SBIN = ("/usr/sbin", "/sbin")


def find(name: str) -> str:
    """The program's path; says which package to install when it is not there."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SBIN])
    found = shutil.which(name, path=path)
    if found is None:
        raise CannotBuildError(f"{name} is not installed", f"apt-get install {PACKAGES.get(name, name)}")
    beside, package = BESIDE.get(name, (None, ""))
    if beside is not None and not beside.exists():
        raise CannotBuildError(
            f"{name} cannot check what it downloads: {beside} is missing", f"apt-get install {package}"
        )
    return found


def root(what: str) -> None:
    """Images hold files of root and device nodes, so building them needs root, once."""
    if os.geteuid() != 0:
        place = cache.directory()
        raise CannotBuildError(
            f"{what} needs root, once", f"sudo ZOMBIESCOPE_CACHE={place} zombiescope lab node -- true"
        )


def call(
    arguments: Sequence[str | Path], *, limit_s: float = 900.0, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program to its end and answer its output; its last lines become the error."""
    command = [find(str(arguments[0])), *(str(one) for one in arguments[1:])]
    inherited = {**_python.environment(), "LC_ALL": "C.UTF-8", **(environment or {})}
    try:
        done = subprocess.run(  # noqa: S603  a program of the distribution, its arguments made here
            command, capture_output=True, text=True, timeout=limit_s, env=inherited, check=False,
            stdin=subprocess.DEVNULL, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CannotBuildError(f"{arguments[0]} did not end within {limit_s:.0f} s") from error
    if done.returncode:
        tail = " | ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
        raise CannotBuildError(f"{arguments[0]} failed: {tail or done.returncode}")
    return done.stdout


def in_tree(tree: Path, *arguments: str, bind: Mapping[Path, str] | None = None, limit_s: float = 600.0) -> str:
    """Run a program of another tree in it: own mounts, own processes, and no network at all."""
    mounts = "".join(f'mount --bind "{source}" "{tree}{target}" && ' for source, target in (bind or {}).items())
    script = f'{mounts}exec chroot "{tree}" "$@"'
    isolation = ("--mount", "--net", "--pid", "--fork", "--kill-child", f"--mount-proc={tree}/proc")
    plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
    return call(["unshare", *isolation, "sh", "-c", script, "sh", *arguments], limit_s=limit_s, environment=plain)

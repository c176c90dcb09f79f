"""A Debian userland and a Debian kernel, from the mirror that apt is configured with on this machine.

The userland is always bookworm: it has the oldest Python that zombiescope runs on (3.11), and its systemd (252) is
the last that boots on cgroup v1 by a kernel option alone. Kernels come from any suite, since Debian's kernels boot
an older userland: bullseye 5.10, bookworm 6.1, trixie 6.12.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from zombiescope.lab import cache, programs
from zombiescope.lab.failure import CannotBuildError

USERLAND = "bookworm"
KERNELS = ("bookworm", "trixie", "bullseye")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

PACKAGES = (
    "busybox", "dbus", "initramfs-tools", "iproute2", "kmod", "libpam-systemd", "procps", "python3", "python3-venv",
    "sysstat", "systemd", "systemd-sysv", "udev", "zstd",
)  # fmt: skip


def mirror() -> str:
    """The archive of a Debian main component in apt's own configuration."""
    form = "$(SITE) $(COMPONENT) $(RELEASE)"
    listed = programs.call(["apt-get", "indextargets", "--format", form, "Created-By: Packages"])
    for line in listed.splitlines():
        site, component, release = [*line.split(), "", "", ""][:3]
        if component == "main" and release in KERNELS:
            return site
    raise CannotBuildError("apt on this machine knows no Debian mirror", "add a Debian source, run apt-get update")


def userland() -> Path:
    """The unpacked userland, without kernel; from the cache if it was made before."""
    return cache.entry("debian", cache.key(USERLAND, *PACKAGES), _bootstrap) / "root"


def _bootstrap(into: Path) -> None:
    programs.root("unpacking Debian")
    tree = into / "root"
    include = ",".join(PACKAGES)
    signed = [f"--keyring={KEYRING}"] if KEYRING.exists() else []
    programs.call(["debootstrap", "--variant=minbase", *signed, f"--include={include}", USERLAND, tree, mirror()])
    for heavy in (
        "var/cache/apt/archives",
        "var/lib/apt/lists",
        "usr/share/doc",
        "usr/share/man",
        "usr/share/locale",
    ):
        shutil.rmtree(tree / heavy, ignore_errors=True)
    (tree / "var/cache/apt/archives/partial").mkdir(parents=True)


def unpack_kernel(suite: str, work: Path, tree: Path) -> str:
    """Put the suite's kernel and its modules into a tree; answers its release. `work` holds downloads."""
    apt = private_apt(suite, work)
    programs.call(["apt-get", *apt, "update"])
    needs = programs.call(["apt-cache", *apt, "depends", "linux-image-amd64"])
    found = re.search(r"Depends: (linux-image-(\S+-amd64))", needs)
    if found is None:
        raise CannotBuildError(f"{suite} at {mirror()} has no linux-image-amd64")
    package, release = found[1], found[2]
    programs.call(["sh", "-c", 'cd "$0" && exec apt-get "$@"', work, *apt, "download", package])
    unpacked = work / "kernel"
    for archive in work.glob("linux-image-*.deb"):
        programs.call(["dpkg-deb", "-x", archive, unpacked])
    (tree / "boot").mkdir(exist_ok=True)
    shutil.copy(unpacked / f"boot/vmlinuz-{release}", tree / "boot")
    shutil.copy(unpacked / f"boot/config-{release}", tree / "boot")
    modules = next(path for path in (unpacked / "lib/modules", unpacked / "usr/lib/modules") if path.exists())
    shutil.copytree(modules / release, tree / "usr/lib/modules" / release, symlinks=True)
    return release


def private_apt(suite: str, work: Path, kind: str = "deb") -> list[str]:
    """Options that keep apt's lists and archives of another suite out of this machine's own."""
    for name in ("lists/partial", "archives/partial", "state"):
        (work / name).mkdir(parents=True, exist_ok=True)
    (work / "state/status").touch()
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    (work / "sources.list").write_text(f"{kind} {signed}{mirror()} {suite} main\n")
    settings = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "state/status",
        "Dir::Cache": work,
        "Dir::Cache::archives": work / "archives",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]

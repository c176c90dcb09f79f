"""What a root holds for systemd's generators to make units of: not to be known without booting it.

A generator runs early at boot and writes units below /run/systemd/generator*. On a node that is up they are
there and are read like others. In an image only their input can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import UnitFiles
from zombiescope.node.systemd.unit_files.load_path import GENERATED

_DIRECTORIES = (
    "/etc/systemd/system-generators", "/usr/local/lib/systemd/system-generators", "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
)  # fmt: skip
_HARMLESS = frozenset(
    f"systemd-{name}-generator"
    for name in (
        "bless-boot", "cryptsetup", "debug", "factory-reset", "gpt-auto", "hibernate-resume", "import",
        "integritysetup", "rc-local", "run", "ssh", "system-update", "tpm2", "veritysetup",
    )
)  # fmt: skip
"""Of systemd itself, and without input that an image would show; they make no service that is started again."""
_INPUT_IN_FILES = frozenset({"systemd-fstab-generator", "systemd-sysv-generator", "systemd-getty-generator"})


@dataclass(frozen=True, slots=True)
class Unknown:
    """Units that only a boot would make."""

    source: str
    why: str


def unknown(root: Root, files: UnitFiles) -> list[Unknown]:
    if any(root.names(directory) for directory in GENERATED):
        return []
    if files.systemd_version is None and not list(files.names):
        return []
    installed = {name for directory in _DIRECTORIES for name in root.names(directory)}
    found = [_fstab(root), _sysv(root, files, installed)]
    if "systemd-getty-generator" in installed:
        found.append(Unknown("systemd-getty-generator", "makes a login for each console of the kernel's command line"))
    others = sorted(installed - _HARMLESS - _INPUT_IN_FILES)
    found += [Unknown(name, "writes units at boot that are not in the files") for name in others]
    return [item for item in found if item is not None]


def _fstab(root: Root) -> Unknown | None:
    lines = (root.read("/etc/fstab") or b"").decode("utf-8", "replace").splitlines()
    mounts = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return (
        Unknown("/etc/fstab", f"each of its entries ({len(mounts)}) becomes a mount unit at boot") if mounts else None
    )


def _sysv(root: Root, files: UnitFiles, installed: set[str]) -> Unknown | None:
    if "systemd-sysv-generator" not in installed:
        return None
    known = files.tree.files
    scripts = [name for name in root.names("/etc/init.d") if root.is_executable(f"/etc/init.d/{name}")]
    alone = [name for name in scripts if f"{name.removesuffix('.sh')}.service" not in known and name != "README"]
    if not alone:
        return None
    shown = ", ".join(alone[:5]) + (f" and {len(alone) - 5} more" if len(alone) > 5 else "")
    return Unknown("/etc/init.d", f"scripts without a unit: {shown}; systemd generates services for them at boot")

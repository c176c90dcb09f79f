"""What a machine boots: the kernel of a Debian suite with its ramdisk, or a kernel image of one's own with none.

An image of one's own stands where a suite's name stands, and gets the disks of bookworm. Nothing can be loaded before
the disk is mounted, so what finds it and what carries the agent must be built in. Only the image itself is read: its
release is in its header (the x86 boot protocol), and System.map is not needed, because the node names its own symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zombiescope.lab import debian
from zombiescope.lab.failure import LabError
from zombiescope.lab.image import image

BUILT_IN = "virtio_pci, virtio_blk, virtio_console, ext4, devtmpfs, tmpfs, unix sockets and the serial console"

_HEADER_BYTES = 0x10100
_LONGEST = 64
"""Of a release: __NEW_UTS_LEN."""
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_VERSION_AT, _VERSION_BASE = 0x20E, 0x200
"""kernel_version: where the text begins, counted from the end of the boot sector."""


@dataclass(frozen=True, slots=True)
class BootFiles:
    """What QEMU is given. The disk is only ever read."""

    disk: Path
    kernel: Path
    initrd: Path | None
    release: str
    proven: Path
    """Debian's kernel, which is asked whether KVM works here. The answer is kept until the next reboot, and a kernel
    that says nothing on the serial console would answer for all others."""


def boot_files(kernel: str) -> BootFiles:
    """Of a suite, by its name, or of an image, by its path."""
    if kernel in debian.KERNELS:
        made = image(kernel)
        return BootFiles(made.disk, made.kernel, made.initrd, made.release, made.kernel)
    path = Path(kernel)
    release = image_release(path)
    made = image(debian.USERLAND)
    return BootFiles(made.disk, path, None, release, made.kernel)


def image_release(path: Path) -> str:
    """The 4.19.81 of a bzImage. Raises LabError where the file is none."""
    fix = f"one of {', '.join(debian.KERNELS)}, or the path of an x86 kernel image (bzImage)"
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise LabError(f"no kernel called {path}", fix) from None
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}", fix) from error
    if header[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise LabError(f"{path} is not a kernel image", fix)
    start = int.from_bytes(header[_VERSION_AT : _VERSION_AT + 2], "little") + _VERSION_BASE
    words = header[start : start + _LONGEST].partition(b"\0")[0].decode("ascii", "replace").split()
    return words[0] if words and words[0].isprintable() else "of an unknown release"

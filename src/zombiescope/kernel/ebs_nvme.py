"""Volumes of Amazon EBS on Nitro: for how long each was held back by a limit, as its NVMe controller tells.

Source: log page 0xD0 of a controller whose model is "Amazon Elastic Block Store" (amazon-ec2-utils, ebsnvme), by an
admin command on /dev/nvmeXn1. Fields used: microseconds since attachment in which more was asked for than the volume's,
or the instance's, limit of operations or of throughput; requests that wait.

Cost: one command to the controller for each volume, every ten seconds, in the process that may hang (hardware_reader).
Absence: other clouds tell nothing of the kind; without CAP_SYS_ADMIN and the right to open the disk it is refused, and
then the source is listed as missing.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import struct

from zombiescope.kernel.procfile import at, names_in, read_text

CLASS = "sys/class/nvme"
MODEL = "Amazon Elastic Block Store"
MOST_VOLUMES = 64
FIELDS = ("volume_iops_us", "volume_throughput_us", "instance_iops_us", "instance_throughput_us")
"""Held back by the limit of the volume or of the instance, of operations or of bytes a second."""
QUEUE = "queue_length"
_CONTROLLER = re.compile(r"nvme\d{1,4}")
_PAGE_BYTES, _LOG_PAGE, _MAGIC = 4096, 0xD0, 0x3C23B510
_PAGE = struct.Struct("<I4x6Q4QQ")
_GET_LOG_PAGE, _IOCTL_ADMIN = 0x02, 0xC0484E41
_COMMAND = struct.Struct("<BBHIIIQQIIIIIIIIII")


def volumes(root: str = "/") -> tuple[str, ...]:
    """Controllers of EBS volumes."""
    names = [name for name in names_in(at(root, CLASS)) or () if _CONTROLLER.fullmatch(name)]
    mine = (name for name in names if (read_text(at(root, f"{CLASS}/{name}/model")) or "").strip() == MODEL)
    return tuple(sorted(mine))[:MOST_VOLUMES]


def parse(page: bytes) -> dict[str, int] | None:
    """None for what is another log page."""
    if len(page) < _PAGE.size:
        return None
    magic, *values = _PAGE.unpack_from(page)
    if magic != _MAGIC:
        return None
    return {**dict(zip(FIELDS, values[6:10], strict=True)), QUEUE: values[10]}


def command(address: int) -> bytes:
    """Get Log Page of the first namespace, 4 kB to this address."""
    dwords = _PAGE_BYTES // 4 - 1
    return _COMMAND.pack(
        _GET_LOG_PAGE, 0, 0, 1, 0, 0, 0, address, 0, _PAGE_BYTES, _LOG_PAGE | dwords << 16, 0, 0, 0, 0, 0, 0, 0
    )


def read(controller: str, root: str = "/") -> dict[str, int] | None:
    """Raises OSError where it is refused."""
    fd = os.open(at(root, f"dev/{controller}n1"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        page = ctypes.create_string_buffer(_PAGE_BYTES)
        fcntl.ioctl(fd, _IOCTL_ADMIN, bytearray(command(ctypes.addressof(page))))
    finally:
        os.close(fd)
    return parse(page.raw)

"""process_vm_readv(2): bytes of another process's memory, while it runs. It is never stopped and nothing is written.

Permission is that of attaching a debugger: the same user and a process that may be dumped, or CAP_SYS_PTRACE;
yama.ptrace_scope 3 refuses everybody. One call copies from many places; it ends at the first that is not mapped, and
then nothing of it is believed. What is copied may change while it is copied: whoever reads it has to doubt it.

Cost: about a microsecond a call and 0.2 us a page. Absence: ProcessLookupError where it is gone, PermissionError where
it may not be read, OSError with EFAULT where nothing is mapped at an address.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

MOST_BYTES = 1 << 20
MOST_PLACES = 512
"""The kernel takes 1024 (IOV_MAX)."""
_HIGHEST = 1 << 56
"""Above the user half of any address space: such an address is not even asked for."""

_libc = ctypes.CDLL(None, use_errno=True)
_readv = _libc.process_vm_readv
_readv.restype = ctypes.c_ssize_t
_readv.argtypes = (
    ctypes.c_int, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong,
)  # fmt: skip

Place = tuple[int, int]
"""Address and size."""


class ProcessMemory:
    """The memory of one process. Used by one thread: all of them share one buffer."""

    _buffer = ctypes.create_string_buffer(MOST_BYTES)
    _view = memoryview(_buffer)
    _address = ctypes.addressof(_buffer)

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.calls = 0
        self.bytes = 0

    def read(self, address: int, size: int) -> bytes:
        return self.gather(((address, size),))

    def gather(self, places: Sequence[Place]) -> bytes:
        """What is at all of these places, one after the other."""
        flat: list[int] = []
        size = 0
        for address, length in places:
            if not 0 < address < _HIGHEST or not 0 < length <= MOST_BYTES:
                raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
            flat += (address, length)
            size += length
        if size > MOST_BYTES or len(places) > MOST_PLACES:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        local = struct.pack("QQ", self._address, size)
        remote = struct.pack(f"{len(flat)}Q", *flat)
        self.calls += 1
        self.bytes += size
        copied = _readv(self.pid, local, 1, remote, len(places), 0)
        if copied == size:
            return bytes(self._view[:size])
        if copied < 0 and (number := ctypes.get_errno()) != errno.EFAULT:
            raise OSError(number, os.strerror(number))
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))

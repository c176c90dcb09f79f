"""A FUSE file system of one file, served by ourselves over /dev/fuse, that answers late or not at all when told to.

A daemon that hangs is the storage that is easiest to make hang on a real kernel, and to free again: whoever holds its
end of /dev/fuse closes it, or dies, and the kernel fails every request that waits. The file is sparse, so it costs no
room; what is written to it is kept in memory by pages. Protocol: include/uapi/linux/fuse.h, version 7.31.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import time
from collections.abc import Callable

NAME = b"data"
ROOT, FILE = 1, 2
PAGE = 4096
_MOST_REQUEST = 1 << 20
_MAX_WRITE = 128 * 1024
_IN = struct.Struct("<IIQQIIII")
_OUT = struct.Struct("<IiQ")
_ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS = 1, 2, 3, 4, 14, 15, 16, 17
_RELEASE, _FSYNC, _FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR, _INTERRUPT, _DESTROY, _BATCH_FORGET = (
    18, 20, 25, 26, 27, 28, 29, 36, 38, 42,
)  # fmt: skip
_ASYNC_READ, _WRITEBACK_CACHE = 1, 1 << 16
_SILENT = frozenset({_FORGET, _INTERRUPT, _BATCH_FORGET})
SLOW = frozenset({_READ, _WRITE, _FSYNC, _GETATTR, _LOOKUP})
"""Operations that a daemon in trouble answers late."""


class FuseServer:
    def __init__(self, size_bytes: int, *, writeback: bool = False) -> None:
        self.size_bytes = size_bytes
        self._valid_s = 3600 if writeback else 0
        """How long the kernel need not ask again: else writers would ask for the size behind their own data."""
        self._flags = _ASYNC_READ | (_WRITEBACK_CACHE if writeback else 0)
        self.delay_s: Callable[[int], float] = lambda _operation: 0.0
        """How long an operation of SLOW waits for its answer."""
        self._pages: dict[int, bytes] = {}
        self._fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)

    def mount(self, point: str, name: str = "lab") -> None:
        """Raises OSError."""
        options = f"fd={self._fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(name.encode(), point.encode(), f"fuse.{name}".encode(), 0, options) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def serve(self) -> None:
        """Until it is unmounted."""
        while True:
            try:
                request = os.read(self._fd, _MOST_REQUEST)
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno == errno.ENOENT:  # the request was interrupted before we read it
                    continue
                return
            self._answer(request)

    def close(self) -> None:
        """Everybody who waits gets an error, at once."""
        os.close(self._fd)

    def _answer(self, request: bytes) -> None:
        _, operation, unique, node, _, _, _, _ = _IN.unpack_from(request)
        if operation in _SILENT:
            return
        if operation in SLOW and (delay_s := self.delay_s(operation)) > 0:
            time.sleep(delay_s)
        try:
            body, failure = self._do(operation, node, request[_IN.size :]), 0
        except OSError as error:
            body, failure = b"", -(error.errno or errno.EIO)
        try:
            os.write(self._fd, _OUT.pack(_OUT.size + len(body), failure, unique) + body)
        except OSError as error:
            if error.errno != errno.ENOENT:  # whoever asked has gone
                raise

    def _do(self, operation: int, node: int, body: bytes) -> bytes:
        match operation:
            case 26:  # INIT
                return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, self._flags, 16, 12, _MAX_WRITE, 1, 0, 0, 0)
            case 1:  # LOOKUP
                if node != ROOT or body.rstrip(b"\0") != NAME:
                    raise OSError(errno.ENOENT, "")
                return struct.pack("<QQQQII", FILE, 0, self._valid_s, self._valid_s, 0, 0) + self._attributes(FILE)
            case 3 | 4:  # GETATTR, SETATTR
                return struct.pack("<QII", self._valid_s, 0, 0) + self._attributes(node)
            case 14 | 27:  # OPEN, OPENDIR
                return struct.pack("<QII", 1, 0, 0)
            case 15:  # READ
                _, offset, size = struct.unpack_from("<QQI", body)
                return self._read(offset, size)
            case 16:  # WRITE
                _, offset, size = struct.unpack_from("<QQI", body)
                self._write(offset, body[40 : 40 + size])
                return struct.pack("<II", size, 0)
            case 17:  # STATFS
                return struct.pack("<QQQQQIIII24x", 1 << 20, 1 << 20, 1 << 20, 2, 2, PAGE, 255, PAGE, 0)
            case 28:  # READDIR
                offset = struct.unpack_from("<QQ", body)[1]
                return b"" if offset else struct.pack("<QQII", FILE, 1, len(NAME), 8) + NAME.ljust(8, b"\0")
            case 18 | 20 | 25 | 29 | 38:  # RELEASE, FSYNC, FLUSH, RELEASEDIR, DESTROY
                return b""
        raise OSError(errno.ENOSYS, "")

    def _attributes(self, node: int) -> bytes:
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o644
        size = 0 if node == ROOT else self.size_bytes
        return _ATTR.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, PAGE, 0)

    def _read(self, offset: int, size: int) -> bytes:
        end = min(offset + size, self.size_bytes)
        pages = range(offset // PAGE, -(-end // PAGE))
        data = b"".join(self._pages.get(page, b"\0" * PAGE) for page in pages)
        skip = offset % PAGE
        return data[skip : skip + max(0, end - offset)]

    def _write(self, offset: int, data: bytes) -> None:
        while data:
            page, at = divmod(offset, PAGE)
            part = data[: PAGE - at]
            known = self._pages.get(page, b"\0" * PAGE)
            self._pages[page] = known[:at] + part + known[at + len(part) :]
            offset, data = offset + len(part), data[len(part) :]

"""/proc/kpagecgroup: which memory cgroup the pages of a file are charged to.

One 64-bit inode number a page frame. For a page of a dying cgroup the kernel gives the nearest ancestor that is still
online (page_cgroup_ino), so a file that a dead child charged shows the surviving parent: exactly the one from which
that child can be released.

A page's frame is found by mapping the file and asking /proc/self/pagemap. Only pages that are resident are asked for
(mincore), so that no hole of a sparse file is filled, and each is touched by writing one byte of it to a pipe: where
the file was cut meanwhile the kernel answers EFAULT there, while a load would end the process with SIGBUS.

Cost: some ten system calls and at most MOST_PAGES pages a file. Absence: None, without CAP_SYS_ADMIN or on a kernel
without CONFIG_PROC_PAGE_MONITOR or CONFIG_MEMCG.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from types import TracebackType

MOST_PAGES = 16
"""Asked a file: the first, the last and some between. One page is enough to keep a cgroup."""
_WINDOW_PAGES = 1 << 14
_PAGE = mmap.PAGESIZE
_FRAME = (1 << 55) - 1
_PRESENT = 1 << 63
_MAP_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
_libc.write.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)


class PageOwners:
    """Asks about many files through the same descriptors."""

    def __init__(self) -> None:
        """OSError where this kernel or our rights do not tell."""
        self._fds: list[int] = []
        try:
            self._cgroups = self._open("/proc/kpagecgroup")
            self._frames = self._open("/proc/self/pagemap")
            self._out, self._in = os.pipe2(os.O_CLOEXEC)
            self._fds += [self._out, self._in]
        except OSError:
            self.close()
            raise

    def _open(self, path: str) -> int:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._fds.append(fd)
        return fd

    def owners(self, fd: int) -> set[int]:
        """Inodes of the living cgroups that have, or whose dead children have, some of its resident pages."""
        pages = -(-os.fstat(fd).st_size // _PAGE)
        return {inode for first, count in _windows(pages) for inode in self._window(fd, first, count)}

    def _window(self, fd: int, first: int, count: int) -> set[int]:
        size = count * _PAGE
        base = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, first * _PAGE)
        if base in (None, _MAP_FAILED):
            return set()
        try:
            resident = ctypes.create_string_buffer(count)
            if _libc.mincore(base, size, resident) != 0:
                return set()
            held = [number for number in range(count) if resident.raw[number] & 1]
            asked = (self._owner(base + number * _PAGE) for number in _spread(held))
            return {inode for inode in asked if inode is not None}
        finally:
            _libc.munmap(base, size)

    def _owner(self, address: int) -> int | None:
        if _libc.write(self._in, address, 1) != 1:
            return None  # cut meanwhile
        os.read(self._out, 1)
        entry = _number_at(self._frames, address // _PAGE)
        if entry is None or not entry & _PRESENT or not entry & _FRAME:
            return None
        return _number_at(self._cgroups, entry & _FRAME) or None

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def __enter__(self) -> PageOwners:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _windows(pages: int) -> list[tuple[int, int]]:
    """(first page, number) of the whole file, or of its beginning and its end where it is large."""
    if pages <= 0:
        return []
    if pages <= _WINDOW_PAGES:
        return [(0, pages)]
    return [(0, _WINDOW_PAGES // 2), (pages - _WINDOW_PAGES // 2, _WINDOW_PAGES // 2)]


def _spread(held: list[int]) -> list[int]:
    if len(held) <= MOST_PAGES:
        return held
    return [held[number * (len(held) - 1) // (MOST_PAGES - 1)] for number in range(MOST_PAGES)]


def _number_at(fd: int, index: int) -> int | None:
    data = os.pread(fd, 8, index * 8)
    return int.from_bytes(data, "little") if len(data) == 8 else None

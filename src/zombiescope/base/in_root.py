"""Opening a path as a process with another root directory would find it, without ever leaving that directory.

openat2 with RESOLVE_IN_ROOT does it in one call (kernel 5.6); where that is missing, or a seccomp profile
does not know it, the path is walked component by component. Links, absolute ones too, and `..` stay inside;
a link that leads back to itself is ELOOP.
"""

from __future__ import annotations

import errno
import os
import stat

from zombiescope._native import open_in_root

MAX_LINKS = 40  # the kernel's own limit
MAX_COMPONENTS = 256

_PLACE = os.O_PATH | os.O_CLOEXEC
# Seccomp profiles that do not know openat2 answer EPERM; EAGAIN is a rename while `..` was followed.
_NOT_BY_KERNEL = (errno.ENOSYS, errno.EPERM, errno.EAGAIN)


def place_in_root(path: bytes, root_fd: int, *, links: bool = True) -> int:
    """An O_PATH descriptor of what `path` names below the directory `root_fd`. Without `links` what it names may be a
    link, which is then not followed. OSError as open() gives it."""
    try:
        return open_in_root(root_fd, path, _PLACE if links else _PLACE | os.O_NOFOLLOW)
    except OSError as fault:
        if fault.errno not in _NOT_BY_KERNEL:
            raise
    return walk_in_root(path, root_fd, links=links)


def walk_in_root(path: bytes, root_fd: int, *, links: bool = True) -> int:
    """Do what openat2 does, one component at a time; returns an O_PATH descriptor."""
    todo = [part for part in reversed(path.split(b"/")) if part not in (b"", b".")]
    trail = [os.dup(root_fd)]  # from the root to where we stand: `..` steps back on it and never above its start
    followed = steps = 0
    try:
        while todo:
            part = todo.pop()
            steps += 1
            if steps > MAX_COMPONENTS:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
            if part == b"..":
                if len(trail) > 1:
                    os.close(trail.pop())
                continue
            trail.append(os.open(part, _PLACE | os.O_NOFOLLOW, dir_fd=trail[-1]))
            if stat.S_ISLNK(os.fstat(trail[-1]).st_mode) and (links or todo):
                followed += 1
                if followed > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                _follow(trail, todo)
        return os.dup(trail[-1])
    finally:
        for fd in trail:
            os.close(fd)


def _follow(trail: list[int], todo: list[bytes]) -> None:
    link = trail.pop()
    try:
        target = os.readlink(b"", dir_fd=link)
    finally:
        os.close(link)
    if target.startswith(b"/"):
        while len(trail) > 1:
            os.close(trail.pop())
    todo.extend(part for part in reversed(target.split(b"/")) if part not in (b"", b"."))

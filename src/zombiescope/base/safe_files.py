"""Files that we make where somebody else may write too: nothing is opened through a link, nothing is taken over.

A recorder has rights that are nearly root's, and its directories may be anybody's. So

    a new file    is made in an open directory with O_EXCL and O_NOFOLLOW, and renamed into place: a link that waits
                  under its name is replaced and not followed
    a lock        is readable by its owner alone; one that exists is opened without following a link, and used only if
                  it is a regular file with one name
    a directory   to record into, and all above it, must be writable by us and by root alone (`refuse_shared`)

Who may read a file is what its directory says: where everybody may enter it is readable by everybody (0644), else by
the directory's group (0640). Where root writes into somebody else's recording, the file is that user's.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from zombiescope.base.errors import UserError

GROUP = "zombiescope"
"""Whoever is in it may read what is recorded; packaging/zombiescope.sysusers makes it."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_TRIES = 3


class UnsafePlaceError(UserError):
    """Somebody else could put a file of his in place of ours."""


# --- files -----------------------------------------------------------------------------------------------------------


@contextmanager
def opened_directory(path: Path | str, *, links: bool = False) -> Iterator[int]:
    """A descriptor. Without `links` the directory itself may be none. Raises OSError."""
    descriptor = os.open(path, _DIRECTORY | (0 if links else os.O_NOFOLLOW))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def create(path: Path, flags: int = os.O_WRONLY) -> int:
    """A new file, with its directory's owner and rights. FileExistsError where anything has its name, a link too."""
    with opened_directory(path.parent) as directory:
        return _create(directory, path.name, flags)


def create_again(path: Path, flags: int = os.O_WRONLY) -> int:
    """The same; what an interrupted run left under this name goes first."""
    with opened_directory(path.parent) as directory:
        return _create_again(directory, path.name, flags)


def _create(directory: int, name: str, flags: int) -> int:
    descriptor = os.open(name, flags | _NEW, 0o600, dir_fd=directory)
    try:
        above = os.fstat(directory)
        _hand_over(descriptor, above)
        os.fchmod(descriptor, 0o644 if above.st_mode & stat.S_IXOTH else 0o640)
    except BaseException:
        os.close(descriptor)
        with suppress(OSError):  # an empty file would be damage for whoever reads the directory
            os.unlink(name, dir_fd=directory)
        raise
    return descriptor


def _create_again(directory: int, name: str, flags: int) -> int:
    for _ in range(_TRIES):
        try:
            return _create(directory, name, flags)
        except FileExistsError:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
    raise FileExistsError(errno.EEXIST, "another process keeps recreating it", name)


def _hand_over(descriptor: int, above: os.stat_result) -> None:
    """To the owner of its directory, as far as we may."""
    own = os.fstat(descriptor)
    owner = above.st_uid if os.geteuid() == 0 and above.st_uid != own.st_uid else -1
    group = above.st_gid if above.st_gid != own.st_gid else -1
    if (owner, group) != (-1, -1):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, group)


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """A file that is there whole or not at all: it gets its name when everything is in it. Raises OSError."""
    with opened_directory(path.parent) as directory, replacing_in(directory, path.name, sync=sync) as file:
        yield file


@contextmanager
def replacing_in(directory: int, name: str, *, sync: bool = False) -> Iterator[BinaryIO]:
    """The same in a directory that is open."""
    aside = f"{name}.tmp"
    descriptor = _create_again(directory, aside, os.O_WRONLY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(descriptor)
        os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=directory)
        raise
    if sync:
        os.fsync(directory)


def replace(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Raises OSError."""
    with replacing(path, sync=sync) as file:
        file.write(data)


@contextmanager
def output(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that a person asked for by name, wherever that is, whole or not at all; the umask holds for its rights."""
    aside = f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}"
    with opened_directory(path.parent, links=True) as directory:
        descriptor = os.open(aside, os.O_RDWR | _NEW, mode, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                yield file
            os.rename(aside, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=directory)
            raise


def open_lock(path: Path, *, public: bool = False) -> int:
    """A file to hold a lock on, made if there is none. A process that can read a file can lock it, and so keep all
    others from it; only its owner and root can read this one. `public`: a file with the rights of its directory, on
    which a lock means nothing. Raises UnsafePlaceError, OSError."""
    descriptor = _open_lock(path)
    if not public and os.fstat(descriptor).st_mode & 0o077:
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o600)
    return descriptor


def _open_lock(path: Path) -> int:
    with opened_directory(path.parent) as directory:
        with suppress(FileExistsError):
            return _create(directory, path.name, os.O_RDWR)
        try:
            descriptor = os.open(path.name, os.O_RDWR | _OLD, dir_fd=directory)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise UnsafePlaceError(f"{path} is a link", f"remove it: rm {path}") from None
        status, above = os.fstat(descriptor), os.fstat(directory)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid in {0, os.geteuid(), above.st_uid}:
        return descriptor
    os.close(descriptor)
    raise UnsafePlaceError(f"{path} is not a regular file with a single name", f"remove it: rm {path}")


@contextmanager
def opened_below(root: Path, folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A directory some levels below one that others may write too: none of the levels may be a link. `make`: those
    that are missing. Raises OSError."""
    with ExitStack() as held:
        descriptor = held.enter_context(opened_directory(root, links=True))
        for name in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            held.callback(os.close, descriptor)
        yield descriptor


def open_to_read(path: Path | str, *, directory: int | None = None) -> int:
    """A regular file that is no link; what is none, such as a pipe that would keep us waiting, is FileNotFoundError."""
    descriptor = os.open(path, os.O_RDONLY | _OLD, dir_fd=directory)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, "not a regular file", str(path))


def remove(path: Path) -> None:
    """A file of a directory that is no link; one that is not there is no error. Raises OSError."""
    with suppress(FileNotFoundError), opened_directory(path.parent) as directory:
        os.unlink(path.name, dir_fd=directory)


# --- directories -----------------------------------------------------------------------------------------------------


def make_directory(path: Path) -> None:
    """With the rights of the directory that it is in; one that exists will do, a link will not. Raises OSError."""
    with opened_directory(path.parent) as above:
        _make_directory(above, path.name, os.fstat(above).st_mode)


def _make_directory(above: int, name: str, like: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        os.close(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above))
        return
    descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        _hand_over(descriptor, os.fstat(above))
        os.fchmod(descriptor, (0o755 if like & stat.S_IXOTH else 0o750) | (like & stat.S_ISGID))
    finally:
        os.close(descriptor)


def make_public_directory(path: Path) -> None:
    """One of our own that everybody may enter: for a socket that everybody may write to. Raises UnsafePlaceError,
    OSError."""
    path = path.parent.resolve() / path.name
    refuse_shared(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened_directory(path.parent) as above:
        _make_directory(above, path.name, stat.S_IXOTH)


def refuse_shared(path: Path) -> None:
    """Whether somebody else could write there, or put another directory in its place. `path` is absolute and has no
    links in it; it need not exist yet. Raises UnsafePlaceError, OSError."""
    trusted = _trusted()
    for place in (path, *path.parents):
        try:
            status = place.lstat()
        except FileNotFoundError:
            continue
        _refuse_owner(place, status, trusted)
        if _others_may_write(status):
            raise UnsafePlaceError(
                f"{place} can be written by other users, who could put links in place of what is written there",
                f"chmod go-w {place}, or name another directory",
            )


def _refuse_owner(place: Path, status: os.stat_result, trusted: set[int]) -> None:
    if status.st_uid not in trusted:
        owner = _user(status.st_uid)
        raise UnsafePlaceError(
            f"{place} belongs to {owner}, who could put links in place of what is written there",
            f"run this as {owner}, or name a directory in one of your own",
        )
    if stat.S_ISLNK(status.st_mode):
        raise UnsafePlaceError(f"{place} is a link", f"remove it, or name the directory that it leads to: rm {place}")


def _others_may_write(status: os.stat_result) -> bool:
    """In a sticky directory, such as /tmp, nobody can remove what is another's; its owner was looked at."""
    if status.st_mode & stat.S_ISVTX or not status.st_mode & _WRITABLE_BY_OTHERS:
        return False
    return bool(status.st_mode & stat.S_IWOTH) or not _is_own_group(status.st_gid)


def _trusted() -> set[int]:
    """Root, us, and in a user namespace whoever is outside of it."""
    try:
        whole = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
        outside = set() if whole else {int(Path("/proc/sys/kernel/overflowuid").read_text())}
    except (OSError, ValueError):
        outside = set()
    return {0, os.geteuid(), *outside}


def _is_own_group(number: int) -> bool:
    """Root's group, or one that only we are in: many distributions give each user a group of his name."""
    if number == 0:
        return True
    try:
        group = grp.getgrgid(number)
    except KeyError:
        return False
    own = _user(os.geteuid())
    return group.gr_name == own and set(group.gr_mem) <= {own}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"

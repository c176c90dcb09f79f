"""Unix stream sockets by netlink (sock_diag, Linux 3.3): which connections a server's socket has, and their other ends.

Fields: unix_diag_msg (inode), UNIX_DIAG_NAME (the path that the server bound; its accepted sockets carry it too),
UNIX_DIAG_PEER (inode of the other end) and UNIX_DIAG_UID (Linux 5.3). The kernel does not say which process holds a
socket: holders() looks for the inodes among the descriptors of processes.

Only sockets of the reader's network namespace are listed; an accepted socket belongs to that of its client. Cost:
about 1 us per socket for the dump, and a readlink for each descriptor that holders() has to look at, within its budget.
Absence (no CONFIG_UNIX_DIAG): OSError.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zombiescope.kernel.procfile import at, names_in, read_link

MOST_SOCKETS = 65_536
ANSWER_S = 1.0
MOST_FDS = 8_192
"""Of one process: a server of ten thousand connections is not searched to its end."""
MOST_LIKELY = 64
"""Processes that are looked at first, whatever it costs."""
_SOCK_DIAG = 4
_BY_FAMILY, _DONE, _ERROR, _DUMP = 20, 3, 2, 0x301
_HEAD = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBHIIIII")
_MESSAGE = struct.Struct("=BBBxIII")
_ATTRIBUTE = struct.Struct("=HH")
_ESTABLISHED = 1 << 1
_SHOW_NAME, _SHOW_PEER, _SHOW_UID = 0x01, 0x04, 0x40
_NAME, _PEER, _UID = 0, 2, 7
_LEAST_BYTES = 40
"""Of a socket's message in the answer; so their number is rather overstated than not."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection that a server accepted."""

    path: str
    server: int
    """Inode of the server's end."""
    client: int
    """Inode of the client's end."""
    server_uid: int | None


def request() -> bytes:
    shown = _SHOW_NAME | _SHOW_PEER | _SHOW_UID
    asked = _ASKED.pack(socket.AF_UNIX, 0, 0, _ESTABLISHED, 0, shown, 0xFFFFFFFF, 0xFFFFFFFF)
    return _HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _DUMP, 1, 0) + asked


def parse(data: bytes, names: frozenset[bytes]) -> tuple[list[Connection], int, bool]:
    """Connections of sockets with these file names, how many sockets were listed, and whether the answer ended."""
    found: list[Connection] = []
    count = at = 0
    if not any(name in data for name in names) and len(data) >= _HEAD.size + 4:
        # Nearly all parts of an answer: only whether it failed, or ends here, is of interest.
        first, last = (_HEAD.unpack_from(data, place)[1] for place in (0, len(data) - _HEAD.size - 4))
        if first == _BY_FAMILY:
            return found, len(data) // _LEAST_BYTES, last == _DONE and _ends(data)
    while at + _HEAD.size <= len(data):
        length, kind = _HEAD.unpack_from(data, at)[:2]
        if kind == _DONE or length < _HEAD.size:
            return found, count, True
        if kind == _ERROR:
            code = -int.from_bytes(data[at + _HEAD.size : at + _HEAD.size + 4], "little", signed=True)
            raise OSError(code, os.strerror(code) if 0 < code < 4096 else "sock_diag refused")
        if kind == _BY_FAMILY and length >= _HEAD.size + _MESSAGE.size:
            count += 1
            one = _connection(data[at + _HEAD.size : at + length], names)
            if one is not None:
                found.append(one)
        at += length + 3 & ~3
    return found, count, False


def _ends(data: bytes) -> bool:
    length, _, flags, sequence = _HEAD.unpack_from(data, len(data) - _HEAD.size - 4)[:4]
    return bool(length == _HEAD.size + 4 and sequence == 1 and flags & 2)


def _connection(message: bytes, names: frozenset[bytes]) -> Connection | None:
    name = peer = uid = None
    place = _MESSAGE.size
    while place + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, place)
        if length < _ATTRIBUTE.size or place + length > len(message):
            return None
        value = message[place + _ATTRIBUTE.size : place + length]
        if kind == _NAME:
            name = value.rstrip(b"\0")
        elif kind == _PEER and len(value) == 4:
            peer = int.from_bytes(value, "little")
        elif kind == _UID and len(value) == 4:
            uid = int.from_bytes(value, "little")
        place += length + 3 & ~3
    if name is None or peer is None or name[:1] != b"/" or name.rpartition(b"/")[2] not in names:
        return None
    return Connection(os.fsdecode(name), _MESSAGE.unpack_from(message)[3], peer, uid)


def connections(names: Iterable[str], most: int = MOST_SOCKETS) -> list[Connection]:
    """To sockets with these file names ("docker.sock"), in our network namespace. Raises OSError."""
    wanted = frozenset(os.fsencode(name) for name in names)
    found: list[Connection] = []
    seen = 0
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as asked:
        asked.settimeout(ANSWER_S)
        asked.sendto(request(), (0, 0))
        ended = False
        while not ended and seen <= most:
            more, count, ended = parse(asked.recv(1 << 16), wanted)
            found += more
            seen += count
    return found


# --- who holds a socket ----------------------------------------------------------------------------------------------


class Holders:
    """Inode -> process, for sockets that were asked about; processes that held some before are looked at first."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._known: dict[int, int] = {}
        self._likely: dict[int, None] = {}
        self._absent: set[int] = set()

    def find(self, inodes: Iterable[int], seconds: float) -> dict[int, int]:
        """The processes that hold sockets, as far as `seconds` reach. An inode that was searched for everywhere and not
        found is not searched for again."""
        wanted = set(inodes)
        self._known = {inode: pid for inode, pid in self._known.items() if inode in wanted}
        self._absent &= wanted
        missing = wanted - self._known.keys() - self._absent
        if missing:
            self._search(missing, time.monotonic() + seconds)
        return dict(self._known)

    def _search(self, missing: set[int], end_s: float) -> None:
        likely = list(reversed(self._likely))
        self._take(likely, missing, float("inf"))
        is_whole = not missing or self._take(self._others(set(likely)), missing, end_s)
        if is_whole:
            self._absent |= missing
        while len(self._likely) > MOST_LIKELY:
            del self._likely[next(iter(self._likely))]

    def _take(self, pids: Iterable[int], missing: set[int], end_s: float) -> bool:
        """Whether all of them were looked at, or nothing is missing any longer."""
        for pid in pids:
            if not missing:
                return True
            if time.monotonic() > end_s:
                return False
            held = missing & _sockets(pid, self._root)
            if held:
                self._known.update(dict.fromkeys(held, pid))
                missing -= held
                self._likely.pop(pid, None)
                self._likely[pid] = None
        return True

    def _others(self, looked_at: set[int]) -> Iterator[int]:
        """The processes of our network namespace, the youngest first: a container with a network of its own holds no
        socket that was listed."""
        ours = read_link(at(self._root, "proc/self/ns/net"))
        names = names_in(at(self._root, "proc")) or []
        for pid in sorted((int(name) for name in names if name.isdecimal()), reverse=True):
            if pid not in looked_at and read_link(at(self._root, f"proc/{pid}/ns/net")) == ours:
                yield pid


def _sockets(pid: int, root: str) -> set[int]:
    """Inodes of the sockets among a process's descriptors."""
    place = at(root, f"proc/{pid}/fd")
    found: set[int] = set()
    try:
        directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return found
    try:
        for name in os.listdir(directory)[:MOST_FDS]:  # noqa: PTH208  an open directory
            try:
                target = os.readlink(name, dir_fd=directory)
            except OSError:
                continue
            if target.startswith("socket:[") and target[8:-1].isdecimal():
                found.add(int(target[8:-1]))
    except OSError:
        return found
    finally:
        os.close(directory)
    return found

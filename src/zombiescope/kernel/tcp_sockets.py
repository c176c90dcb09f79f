"""TCP sockets by netlink (sock_diag, Linux 3.3): who is at the other end, and how many segments were sent to it again.

Fields: inet_diag_msg (peer, cookie) and, of tcp_info, total_retrans: all that a socket ever sent again, so two looks
and their difference tell what was lost between them. Sockets of the reader's network namespace alone. Everybody may
ask; it takes no lock that others wait for, and about 7 us a socket here. Absence (no CONFIG_INET_DIAG): OSError.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

MOST_SOCKETS = 10_000
ANSWER_S = 2.0
_SOCK_DIAG = 4
_BY_FAMILY, _DONE, _ERROR, _DUMP = 20, 3, 2, 0x301
_HEAD = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBxI48x")
_MESSAGE = struct.Struct("=BBBB2s2s16s16sIQ20x")
_ATTRIBUTE = struct.Struct("=HH")
_INFO, _TOTAL_RETRANS = 2, 100
_STATES = sum(1 << state for state in (1, 2, 4, 8, 9, 11))
"""Established, and those that open or close: whoever has something to send again."""


@dataclass(frozen=True, slots=True)
class TcpSocket:
    peer: str
    resent: int


def request(family: int) -> bytes:
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _STATES)
    return _HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _DUMP, 1, 0) + asked


def parse(data: bytes) -> tuple[dict[int, TcpSocket], bool]:
    """Cookie -> socket, of those that sent anything again or may; and whether that was the end of the answer."""
    found: dict[int, TcpSocket] = {}
    at = 0
    while at + _HEAD.size <= len(data):
        length, kind = _HEAD.unpack_from(data, at)[:2]
        if kind in (_DONE, _ERROR) or length < _HEAD.size:
            return found, True
        if kind == _BY_FAMILY and length >= _HEAD.size + _MESSAGE.size:
            _add(data[at + _HEAD.size : at + length], found)
        at += length + 3 & ~3
    return found, False


def _add(message: bytes, found: dict[int, TcpSocket]) -> None:
    if len(message) < _MESSAGE.size:
        return
    family, *_, destination, _, cookie = _MESSAGE.unpack_from(message)
    at = _MESSAGE.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size:
            return
        if kind == _INFO and length >= _ATTRIBUTE.size + _TOTAL_RETRANS + 4 <= len(message) - at:
            resent = int.from_bytes(message[at + 4 + _TOTAL_RETRANS : at + 8 + _TOTAL_RETRANS], "little")
            found[cookie] = TcpSocket(_address(family, destination), resent)
            return
        at += length + 3 & ~3


def _address(family: int, destination: bytes) -> str:
    """One that IPv6 only carries is written as the IPv4 address that it is."""
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, destination[:4])
    if destination.startswith(bytes(10) + b"\xff\xff"):
        return socket.inet_ntop(socket.AF_INET, destination[12:])
    return socket.inet_ntop(socket.AF_INET6, destination)


def read(most: int = MOST_SOCKETS) -> tuple[dict[int, TcpSocket], bool]:
    """All sockets, and whether these are all. Raises OSError."""
    found: dict[int, TcpSocket] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as asked:
            asked.settimeout(ANSWER_S)
            asked.sendto(request(family), (0, 0))
            ended = False
            while not ended:
                more, ended = parse(asked.recv(1 << 16))
                found |= more
                if len(found) > most:
                    return found, False
    return found, True

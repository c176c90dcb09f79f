"""A file server of NFS version 3 (RFC 1813) and its mount protocol, with one large file of zeros: as much as the client
of the kernel needs. Run inside a node with nothing but Python: `python3 nfs_server.py PORT`. Stopped with SIGSTOP it is
a server that does not answer; its connection stands, as that of a server whose disks hang.
"""

from __future__ import annotations

import socketserver
import struct
import sys

MOUNT, NFS = 100005, 100003
ROOT, FILE = b"root", b"file"
NAME = b"data"
FILE_BYTES = 1 << 30
PIECE = 32768
NO_SUCH_FILE, NOT_SUPPORTED = 2, 10004
PROGRAM_UNAVAILABLE = 1


def number(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def long(*values: int) -> bytes:
    return struct.pack(f">{len(values)}Q", *values)


def opaque(data: bytes) -> bytes:
    return number(len(data)) + data + bytes(-len(data) % 4)


class Arguments:
    """XDR, from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def long(self) -> int:
        return int.from_bytes(self.take(8), "big")

    def opaque(self) -> bytes:
        size = self.number()
        found = self.take(size)
        self.take(-size % 4)
        return found


def attributes(handle: bytes) -> bytes:
    """fattr3."""
    is_file = handle == FILE
    kind, mode, size = (1, 0o644, FILE_BYTES) if is_file else (2, 0o755, 4096)
    what = number(kind, mode, 1 if is_file else 2, 0, 0) + long(size, size) + number(0, 0)
    return what + long(1, 2 if is_file else 1) + number(1, 0) * 3


def after(handle: bytes) -> bytes:
    """post_op_attr."""
    return number(1) + attributes(handle)


def mounted(procedure: int, _: Arguments) -> bytes:
    return number(0) + opaque(ROOT) + number(1, 1) if procedure == 1 else b""


def served(procedure: int, given: Arguments) -> bytes:
    if procedure == 0:
        return b""
    handle = given.opaque()
    if procedure == 1:  # GETATTR
        return number(0) + attributes(handle)
    if procedure == 3:  # LOOKUP
        if given.opaque() != NAME:
            return number(NO_SUCH_FILE) + after(handle)
        return number(0) + opaque(FILE) + after(FILE) + after(handle)
    if procedure == 4:  # ACCESS
        return number(0) + after(handle) + number(given.number())
    if procedure == 6:  # READ
        offset, count = given.long(), given.number()
        count = max(0, min(count, PIECE, FILE_BYTES - offset))
        return number(0) + after(handle) + number(count, offset + count >= FILE_BYTES) + opaque(bytes(count))
    if procedure == 18:  # FSSTAT
        return number(0) + after(handle) + long(*[FILE_BYTES] * 3, 2, 0, 0) + number(0)
    if procedure == 19:  # FSINFO
        sizes = number(PIECE, PIECE, 4096, PIECE, PIECE, 4096, 4096)
        return number(0) + after(handle) + sizes + long(FILE_BYTES) + number(0, 1, 0x18)
    if procedure == 20:  # PATHCONF
        return number(0) + after(handle) + number(1, 255, 1, 1, 0, 1)
    return number(NOT_SUPPORTED)


class Connection(socketserver.StreamRequestHandler):
    """RPC (RFC 5531) over TCP: records of one fragment, which is what the kernel sends."""

    def handle(self) -> None:
        while len(mark := self.rfile.read(4)) == 4:
            call = Arguments(self.rfile.read(int.from_bytes(mark, "big") & 0x7FFF_FFFF))
            answer = self._answer(call)
            self.wfile.write(number(0x8000_0000 | len(answer)) + answer)

    @staticmethod
    def _answer(call: Arguments) -> bytes:
        number_of_call, _, _, program, _, procedure = (call.number() for _ in range(6))
        for _ in ("credentials", "verifier"):
            call.number()
            call.opaque()
        accepted = number(number_of_call, 1, 0, 0, 0)
        if program not in (MOUNT, NFS):
            return accepted + number(PROGRAM_UNAVAILABLE)
        found = (mounted if program == MOUNT else served)(procedure, call)
        return accepted + number(0) + found


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Connection) as server:
        server.serve_forever()

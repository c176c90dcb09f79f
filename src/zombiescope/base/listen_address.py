"""Where the server listens: an address, a port, and whether that is only this machine. Imports nothing heavy."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import secrets
import socket
from dataclasses import dataclass

ADDRESS = "127.0.0.1"
PORT = 8321
_TRIES = 100
_SHORTEST = 16
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{_SHORTEST},512}}")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """`port` 0: any that is free."""

    address: str
    port: int

    @property
    def loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def shown(self) -> str:
        return f"[{self.address}]" if ":" in self.address else self.address


DEFAULT = ListenAddress(ADDRESS, PORT)


def parse(text: str, usual_port: int = PORT) -> ListenAddress:
    """From "127.0.0.1:8321", "[::1]:8321", "0.0.0.0", ":9000" or "9000". Raises ValueError with one line."""
    name, colon, port = text.rpartition(":")
    if text.isascii() and text.isdigit():
        name, port = "", text
    elif not colon or text.endswith("]"):
        name, port = text, str(usual_port)
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{text!r} is not an address; write 127.0.0.1:{usual_port} or [::1]:{usual_port}")
    return ListenAddress(_address(name.removeprefix("[").removesuffix("]") or ADDRESS, text), int(port))


def _address(name: str, text: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        raise ValueError(f"{text!r}: {name} is not an address of this machine") from None
    return str(found[0][4][0])


def bound(listen: ListenAddress, *, or_next: bool = False) -> socket.socket:
    """A socket that listens there; with `or_next` on the next port that is free. Raises OSError."""
    for port in range(listen.port, min(listen.port + _TRIES, 65536)):
        family = socket.AF_INET6 if ":" in listen.address else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind((listen.address, port))
            made.listen(128)
        except OSError as error:
            made.close()
            if not or_next or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            continue
        return made
    raise OSError(errno.EADDRINUSE, f"no port from {listen.port} on is free")


def port_of(made: socket.socket) -> int:
    return int(made.getsockname()[1])


def new_token() -> str:
    """The one that $ZOMBIESCOPE_TOKEN says, for programs that ask, or one that nobody had before. Raises ValueError."""
    given = os.environ.pop("ZOMBIESCOPE_TOKEN", None)  # no child of ours needs it
    if given is None:
        return secrets.token_urlsafe(24)
    if not _TOKEN.fullmatch(given):
        raise ValueError(f"$ZOMBIESCOPE_TOKEN must be {_SHORTEST} or more of A-Z a-z 0-9 - _")
    return given


def url(listen: ListenAddress, port: int, token: str | None = None, path: str = "/") -> str:
    """What to open. Behind # stands what browsers send to nobody."""
    address = listen
    if ipaddress.ip_address(listen.address).is_unspecified:
        address = ListenAddress("::1" if ":" in listen.address else ADDRESS, port)
    tail = f"#token={token}" if token else ""
    return f"http://{address.shown}:{port}{path}{tail}"

"""The page's own process beside a recorder: it ends by itself when this process, or what it becomes, has ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

from zombiescope import _interrupt, _python
from zombiescope.commands.output import note
from zombiescope.commands.serve import bind, may_show, refuse_open_address, say_token, token_for
from zombiescope.web import listen_address


def start(
    directory: str, listen: listen_address.ListenAddress | None = None, *, open_: bool, token: bool = True
) -> None:
    """On a socket that is open from now on: whoever comes early waits a second."""
    where = listen or listen_address.DEFAULT
    refuse_open_address(where, token)
    made = bind(where, exact=listen is not None)
    secret = token_for(where, token)
    url = listen_address.url(where, listen_address.port_of(made), secret)
    note(f"the page: {url}")
    say_token(where, secret)
    settings = {
        "dir": directory,
        "node": os.uname().nodename,
        "listen": [where.address, where.port],
        "pid": os.getpid(),
        "socket": made.fileno(),
    }
    _start(settings, {"token": secret, "open": url if open_ and may_show(url) else None}, made)
    made.close()


def _start(settings: dict[str, Any], secret: dict[str, Any], made: socket.socket) -> None:
    """By way of a child that ends at once: the recorder, which this process becomes, has no part in the page's end.

    A command line can be read by everybody on the machine, so the token goes another way.
    """
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    code = 1
    _interrupt.hold()  # for good: Ctrl-C is for the recorder, and the page ends with it
    try:
        page = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
            _python.module("zombiescope.web", json.dumps(settings)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=_python.environment(),
            pass_fds=[made.fileno()],
        )
        assert page.stdin is not None
        page.stdin.write(json.dumps(secret).encode())
        page.stdin.close()
        code = 0
    finally:
        os._exit(code)

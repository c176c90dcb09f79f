"""The page's own process beside a recorder: what it is started with, and who starts it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from zombiescope.base import listen_address
from zombiescope.base import python as _python
from zombiescope.cli.output import note
from zombiescope.cli.serve import bind, display_note, has_display, refuse_open_address, token_for, token_note


def prepared(listen: listen_address.ListenAddress | None = None, *, open_: bool, token: bool = True) -> dict[str, Any]:
    """For the recorder that this process becomes: it starts the page, and says where it is, once it records.

    The socket is open from now on. A command line can be read by everybody on the machine, so the token goes another
    way: through a file that has no name.
    """
    where = listen or listen_address.DEFAULT
    refuse_open_address(where, token)
    made = bind(where, exact=listen is not None)
    secret = token_for(where, token)
    url = listen_address.url(where, listen_address.port_of(made), secret)
    lines = [f"the page: {url}", token_note(where, secret)]
    if open_ and not has_display():
        lines.append(display_note(url))
    hidden = os.memfd_create("zombiescope-page", 0)
    os.write(hidden, json.dumps({"token": secret, "open": _shown(url, open_), "lines": lines}).encode())
    made.set_inheritable(True)
    return {"socket": made.detach(), "secret": hidden, "listen": [where.address, where.port]}


def start(directory: str, *, open_: bool) -> subprocess.Popen[bytes]:
    """Beside a recorder that is another process; it ends with this one."""
    where = listen_address.DEFAULT
    made = bind(where, exact=False)
    secret = token_for(where, True)
    url = listen_address.url(where, listen_address.port_of(made), secret)
    note(f"the page: {url}")
    note(token_note(where, secret))
    about = {
        "pid": os.getpid(), "dir": directory, "node": os.uname().nodename, "listen": [where.address, where.port],
        "socket": made.fileno(),
    }  # fmt: skip
    page = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
        _python.module("zombiescope.web", json.dumps(about)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=_python.environment(),
        pass_fds=[made.fileno()],
    )
    made.close()
    assert page.stdin is not None
    page.stdin.write(json.dumps({"token": secret, "open": _shown(url, open_)}).encode())
    page.stdin.close()
    return page


def _shown(url: str, open_: bool) -> str | None:
    return url if open_ and has_display() else None

"""`zombiescope up`: the one command to start with: the recorder in the foreground, a doctor and a page beside it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Annotated, Any

import typer

from zombiescope.commands import record
from zombiescope.commands.failure import Failure
from zombiescope.commands.output import called, examples, note
from zombiescope.commands.quantities import human_bytes, human_s
from zombiescope.commands.serve import ListenOption, OpenOption, bind, may_show, say_token
from zombiescope.recording import locate
from zombiescope.web import listening

EXAMPLES = examples(
    "up                # then look at http://127.0.0.1:8321",
    "up --open         # in a browser, at once",
    "up /data/flight   # into a directory of your choice",
)


def command(
    directory: record.Dir = None,
    open_: OpenOption = False,
    listen: ListenOption = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="With the web page, or without.")] = True,
) -> None:
    """Record this node, diagnose it meanwhile, and show it on a web page.

    When a core is lost, a task hogs the kernel or the kernel complains, that is diagnosed within seconds and told here.

    It keeps the last twelve hours, at most 2 GB. Ctrl-C stops it.
    """
    if recorder := locate.running_recorder():
        raise Failure(
            f"a recorder (pid {recorder.pid}) already records this node into {recorder.recording}",
            "watch it with 'zombiescope serve' or 'zombiescope top', or stop it first",
        )
    config = record.configuration(dir=record.writable_dir(directory), diagnose=True)
    note(f"The last {human_s(config['keep_s'])} are kept, at most {human_bytes(config['max_bytes'])}.")
    note(f"In another terminal: '{called()} top' shows it live, '{called()} cores --last 5m' the past.")
    note("Ctrl-C stops it.")
    if page:
        _show_page(config["dir"], listen, open_)
    record.become_recorder(config)


def _show_page(directory: str, listen: listening.Listen | None, open_: bool) -> None:
    """Starts the page's process on a socket that is open from now on: whoever comes early waits a second."""
    where = listen or listening.DEFAULT
    made = bind(where, asked=listen is not None)
    token = None if where.loopback else listening.new_token()
    url = listening.url(where, listening.port_of(made), token)
    note(f"the page: {url}")
    say_token(where, token)
    settings = {
        "dir": directory,
        "node": os.uname().nodename,
        "listen": [where.address, where.port],
        "pid": os.getpid(),
        "socket": made.fileno(),
    }
    _start(settings, {"token": token, "open": url if open_ and may_show(url) else None}, made)
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
    try:
        page = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
            [sys.executable, "-m", "zombiescope.web", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[made.fileno()],
        )
        assert page.stdin is not None
        page.stdin.write(json.dumps(secret).encode())
        page.stdin.close()
        code = 0
    finally:
        os._exit(code)

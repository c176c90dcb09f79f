"""The page's own process beside a recorder: `python -m zombiescope.web '<json>'`, started by the recorder of
`zombiescope up`, which hands over the socket, and on standard input what nobody else may read. It tells the recorder
every two seconds that it answers.

It is not niced: on a machine on which twenty tasks wait for each core, a niced page shows an incident when it is over.
What it computes is what somebody asked for."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from zombiescope.base import helper as _helper


def main() -> int:
    if len(sys.argv) != 2:
        sys.stderr.write("zombiescope.web is started by `zombiescope up`\n")
        return 2
    beat = _beats()
    beat("loading")  # which takes seconds
    from zombiescope.base.confinement import CAP_SYSLOG, confine
    from zombiescope.base.listen_address import ListenAddress
    from zombiescope.web.recordings import Place
    from zombiescope.web.server import ServerConfig, serve

    given = {**json.loads(sys.argv[1]), **json.load(sys.stdin)}
    confine(keep=[CAP_SYSLOG], programs=True)  # the audit reads the kernel log, and --open starts a browser
    made = socket.socket(fileno=given["socket"])
    config = ServerConfig(
        places=(Place(Path(given["dir"]), given["node"]),),
        listen=ListenAddress(*given["listen"]),
        token=given["token"],
        with_pid=given["pid"],
        open_url=given["open"],
        beat=beat,
    )
    serve(made, config)
    return 0


def _beats() -> Callable[..., None]:
    """To the recorder, by what was our standard output; a browser that is opened must not write there."""
    told = os.dup(1)
    os.set_inheritable(told, False)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)

    def beat(stage: str = "") -> None:
        with suppress(OSError):
            os.write(told, json.dumps({"beat": True, "stage": stage}).encode() + b"\n")

    return beat


if __name__ == "__main__":
    _helper.begin()
    code = main()
    sys.stderr.flush()
    # Threads of pyarrow may abort the interpreter's own end (cli/main.py).
    os._exit(code)

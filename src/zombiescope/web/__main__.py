"""The page's own process beside a recorder: `python -m zombiescope.web '<json>'`, started by `zombiescope up`, which
hands over the socket, and on standard input what nobody else may read.

It is not niced: on a machine on which twenty tasks wait for each core, a niced page shows an incident when it is over.
What it computes is what somebody asked for."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

from zombiescope._confinement import CAP_SYSLOG, confine
from zombiescope.web.listen_address import ListenAddress
from zombiescope.web.recordings import Place
from zombiescope.web.server import ServerConfig, serve


def main() -> int:
    if len(sys.argv) != 2:
        sys.stderr.write("zombiescope.web is started by `zombiescope up`\n")
        return 2
    given = {**json.loads(sys.argv[1]), **json.load(sys.stdin)}
    confine(keep=[CAP_SYSLOG], programs=True)  # the audit reads the kernel log, and --open starts a browser
    made = socket.socket(fileno=given["socket"])
    config = ServerConfig(
        places=(Place(Path(given["dir"]), given["node"]),),
        listen=ListenAddress(*given["listen"]),
        token=given["token"],
        with_pid=given["pid"],
        open_url=given["open"],
    )
    serve(made, config)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Threads of pyarrow may abort the interpreter's own end (commands/main.py).
    os._exit(code)

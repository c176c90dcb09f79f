"""/sys/fs/fuse/connections: how many requests each FUSE file system has not answered.

A connection is named by the minor number of its device in mountinfo ("0:52" is 52), whatever mount namespace it is in.
`waiting` counts requests that were sent to the daemon, or are about to be, and are not answered: it is above 0 for a
moment all the time, and stays so when the daemon hangs. Writing to `abort` fails them all and frees whoever waits; it
also ends the mount. Nothing here writes.

Cost: a directory and one number a connection. Absence: fusectl is not mounted, or the file is not ours (0400, the
mounter's): needs CAP_DAC_READ_SEARCH.
"""

from __future__ import annotations

import os

from zombiescope.kernel.procfile import at, names_in, number

CONNECTIONS = "sys/fs/fuse/connections"
MOST = 256


def waiting(root: str = "/") -> dict[int, int]:
    """Connection -> requests without an answer; those that cannot be read are left out."""
    found = {}
    for name in (names_in(at(root, CONNECTIONS)) or [])[:MOST]:
        count = _number(at(root, f"{CONNECTIONS}/{name}/waiting")) if name.isdigit() else None
        if count is not None:
            found[int(name)] = count
    return found


def _number(path: str) -> int | None:
    """These files cannot be read at an offset (pread says ESPIPE), so not as all others are."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return number(os.read(fd, 64).strip())
    except OSError:
        return None
    finally:
        os.close(fd)

"""How close this node is to the limits of the kernel's own tables: tasks, open files, local ports; and its clock.

Sources: /proc/loadavg has the number of tasks already; /proc/sys/kernel/{pid_max,threads-max} their limits,
/proc/sys/fs/file-nr open files and their limit, /proc/net/sockstat TCP sockets in use and in TIME_WAIT,
/proc/sys/net/ipv4/ip_local_port_range the ports that connections may be made from.

Cost: five files of one line, every ten seconds; sockets are those of the reader's network namespace. Absence: None. A
server's accepted connections use no local port of their own, so that many sockets alone are no exhaustion.
"""

from __future__ import annotations

import re

from zombiescope.kernel.procfile import at, number, read_file, read_int, read_text

CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"
UNLIMITED = 1 << 53
"""What systemd writes (2^63 - 1) is no limit that anybody reaches."""
_TCP = re.compile(rb"^TCP: inuse (\d{1,12}) orphan \d{1,12} tw (\d{1,12})", re.M)
_NAME = re.compile(r"[\w-]{1,32}")


def read(root: str = "/") -> dict[str, int]:
    """Name -> number; what cannot be read is left out."""
    found: dict[str, int | None] = {
        "pid_max": read_int(at(root, "proc/sys/kernel/pid_max")),
        "threads_max": read_int(at(root, "proc/sys/kernel/threads-max")),
        **_files(read_file(at(root, "proc/sys/fs/file-nr")) or b""),
        **_sockets(read_file(at(root, "proc/net/sockstat")) or b""),
        "local_ports": _ports(read_file(at(root, "proc/sys/net/ipv4/ip_local_port_range")) or b""),
    }
    return {name: value for name, value in found.items() if value is not None}


def _files(data: bytes) -> dict[str, int | None]:
    words = data.split()
    if len(words) != 3:
        return {}
    most = number(words[2])
    return {"files_open": number(words[0]), "files_max": None if most is None or most >= UNLIMITED else most}


def _sockets(data: bytes) -> dict[str, int | None]:
    found = _TCP.search(data)
    return {} if found is None else {"tcp_in_use": int(found[1]), "tcp_time_wait": int(found[2])}


def _ports(data: bytes) -> int | None:
    first, last = (number(word) for word in words) if len(words := data.split()) == 2 else (None, None)
    return None if first is None or last is None or last < first else last - first + 1


def clocksource(root: str = "/") -> str | None:
    """tsc, kvm-clock, hpet; None where there is none."""
    name = read_text(at(root, CLOCKSOURCE)) or ""
    return name if _NAME.fullmatch(name) else None

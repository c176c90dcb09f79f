"""napi/CARD-ID: the threads that poll network cards with threaded NAPI (5.12), and how long they waited for a core.

Source: /sys/class/net/CARD/threaded says whether a card has them (1; 2 since 6.19: they poll all the time); the threads
are children of kthreadd with names such as napi/eth0-8193, cut to 15 characters; their schedstat has what they ran and
waited, stat the core that they were on. With them the softirq NET_RX of no core counts the card's polls.

Cost: a file per card and minute; with threads two small files each per tick. Absence: kernels before 5.12, and other
PID namespaces, where kernel threads cannot be seen.
"""

from __future__ import annotations

from typing import NamedTuple

from zombiescope.kernel.ksoftirqd import kernel_threads
from zombiescope.kernel.process import parse_stat
from zombiescope.kernel.procfile import at, names_in, read_file, read_int
from zombiescope.kernel.schedstat import task

_NAME = b"napi/"
MOST = 256
_PROCESSOR = 36
"""Field 39 of /proc/PID/stat, counted after the name."""


class NapiThread(NamedTuple):
    name: str
    run_us: int
    wait_us: int
    cpu: int | None


def threaded_cards(root: str = "/") -> tuple[str, ...]:
    base = at(root, "sys/class/net")
    return tuple(name for name in names_in(base) or () if (read_int(f"{base}/{name}/threaded") or 0) > 0)


def find(root: str = "/") -> dict[int, str]:
    """pid -> name; at most MOST."""
    found: dict[int, str] = {}
    for pid in kernel_threads(root):
        comm = (read_file(at(root, f"proc/{pid}/comm")) or b"").strip()
        if comm.startswith(_NAME) and len(found) < MOST:
            found[pid] = comm.decode("ascii", "replace")
    return found


def read(pid: int, name: str, root: str = "/") -> NapiThread | None:
    """None when it is gone; a pid that another took has another name."""
    delay, data = task(pid, root), read_file(at(root, f"proc/{pid}/stat"))
    stat = None if data is None else parse_stat(data)
    if delay is None or data is None or stat is None or stat.comm != name:
        return None
    fields = data.rpartition(b")")[2].split()
    cpu = int(fields[_PROCESSOR]) if len(fields) > _PROCESSOR and fields[_PROCESSOR].isdigit() else None
    return NapiThread(name, delay.run_ns // 1000, delay.wait_ns // 1000, cpu)

"""/proc/net/softnet_stat: the receive side of the network stack, one row per online CPU, in hex.

Fields: processed (packets), dropped (backlog full), time_squeeze (net_rx_action stopped with work left:
budget or two jiffies used up), received_rps (IPIs from other CPUs), flow_limit_count, backlog_len
(packets waiting now) and the CPU's number. All are 32 bits wide and wrap at WRAP but backlog_len, a gauge.

Kernels grew the row: received_rps is the 10th column, flow_limit_count the 11th (99bbc7074190, v3.11),
backlog_len and the CPU number the 12th and 13th (7d58e6555870). Where the number is missing, rows are the
online CPUs in order, which the caller passes.

The counters are per CPU and not per network namespace. Cost: one line per online CPU. Absence: a kernel
without networking, or a procfs without /proc/net.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from zombiescope.kernel import cpu
from zombiescope.kernel.procfile import at, read_file

WRAP = 1 << 32


class SoftnetCpu(NamedTuple):
    """One row. A tuple, not a dataclass: one is made for every CPU of every tick."""

    processed: int
    dropped: int
    time_squeeze: int
    received_rps: int | None
    flow_limit_count: int | None
    backlog_len: int | None


@dataclass(frozen=True, slots=True)
class Softnet:
    cpus: dict[int, SoftnetCpu]


def _rows(data: bytes) -> Iterator[tuple[int, ...]]:
    # Every value is eight digits, so the file as a whole is the hex dump of a table of 32-bit numbers.
    columns = len(data.partition(b"\n")[0].split())
    if columns < 3 or len(data) % (9 * columns):
        return iter(())
    try:
        table = bytes.fromhex(data.decode("ascii"))
        return struct.iter_unpack(f">{columns}I", table)
    except (ValueError, struct.error):
        return iter(())


def parse(data: bytes, online: Sequence[int] | None = None) -> Softnet:
    """The file's whole lines; online is used only where rows lack the CPU's number."""
    cpus: dict[int, SoftnetCpu] = {}
    for index, row in enumerate(_rows(data[: data.rfind(b"\n") + 1])):
        newer = (*row[9:12], None, None, None)
        cpus[_cpu_number(row, index, online)] = SoftnetCpu(*row[:3], *newer[:3])
    return Softnet(cpus)


def _cpu_number(row: tuple[int, ...], index: int, online: Sequence[int] | None) -> int:
    if len(row) > 12:
        return row[12]
    if online is not None and index < len(online):
        return online[index]
    return index


def read(root: str = "/") -> Softnet | None:
    data = read_file(at(root, "proc/net/softnet_stat"))
    return None if data is None else parse(data, cpu.online(root))

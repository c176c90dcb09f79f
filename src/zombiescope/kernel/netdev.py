"""/proc/net/dev: traffic, errors and drops of each network interface.

Fields: received and sent bytes, packets, errs, drop, fifo; received frame, sent carrier. For most drivers
fifo is rx overruns: the card had packets and no room to put them, which is a starved CPU.

The interfaces are those of one network namespace: that of the reader when the file was opened. A node with
many pods has hundreds of veths: pass the interfaces that matter (nic_queue.physical_interfaces).

Cost: one line an interface; some drivers take a lock or sum per-CPU counters for it. Absence: only without
networking.
"""

from collections.abc import Container
from typing import NamedTuple

from zombiescope.kernel.procfile import at, read_file

_COLUMNS = 16


class NetdevCounters(NamedTuple):
    """One interface. A tuple, not a dataclass: one is made for every interface of every tick."""

    rx_bytes: int
    rx_packets: int
    rx_errs: int
    rx_drop: int
    rx_fifo: int
    rx_frame: int
    tx_bytes: int
    tx_packets: int
    tx_errs: int
    tx_drop: int
    tx_fifo: int
    tx_carrier: int


def parse(data: bytes, only: Container[str] | None = None) -> dict[str, NetdevCounters]:
    """What is whole in the file's text, for all interfaces or only the given ones."""
    found: dict[str, NetdevCounters] = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        # The first column sticks to the colon on old kernels, and an alias may contain one.
        label, colon, text = line.rpartition(b":")
        name = label.strip().decode("utf-8", "replace")
        if not colon or (only is not None and name not in only):
            continue
        try:
            row = [int(field) for field in text.split()]
        except ValueError:
            continue
        if len(row) == _COLUMNS:
            found[name] = NetdevCounters._make((*row[:6], *row[8:13], row[14]))
    return found


def read(root: str = "/", only: Container[str] | None = None) -> dict[str, NetdevCounters] | None:
    data = read_file(at(root, "proc/net/dev"))
    return None if data is None else parse(data, only)

"""SIOCETHTOOL: a network driver's name and its own statistics, as `ethtool -i` and `ethtool -S` show them.

Fields: driver, version, firmware and bus of a card; of its statistics the counters that show loss, errors,
timeouts, resets and starvation (ENA's suspected_poll_starvation and allowance counters among them), at most
MAX_COUNTERS a card, device-wide ones before per-queue ones.

Cost: three ioctls, each under the kernel's rtnl lock: they wait while anything else reconfigures the network,
and some drivers ask the firmware (milliseconds). Read it every ten seconds, not every tick. No privilege is
needed. The socket belongs to the network namespace in which it was made.

Absence: a driver without statistics (EOPNOTSUPP) or an interface that is gone (ENODEV) is None, and `why`
keeps the reason. The ioctl is answered on a socket of any family, so a kernel without AF_INET is asked over
another; where there is none at all, every answer is None.

Kernels write as many values as the driver has at that moment, whatever room the caller announced. Buffers
therefore have twice the room that the count before the call asked for.
"""

import array
import errno
import fcntl
import os
import re
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from zombiescope.kernel.infiniband_counters import CARD

MAX_COUNTERS = 64

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x03
_GSTRINGS = 0x1B
_GSTATS = 0x1D
_GSSET_INFO = 0x37
_SS_STATS = 1

_DRVINFO = struct.Struct("=I32s32s32s32s32s12xIIIII")
_SSET_INFO = struct.Struct("=IIQI")
_HEADER = struct.Struct("=III")
_STATS_HEADER = struct.Struct("=II")
_STRING_BYTES = 32
_SLACK_COUNTERS = 256
_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)

NAMED = frozenset(
    {
        # ENA, of which suspected_poll_starvation and the resets came with 2.10.0
        "tx_timeout",
        "wd_expired",
        "suspected_poll_starvation",
        "total_resets",
        "os_netdev_wd",
        "missing_tx_cmpl",
        "missing_intr",
        "missing_admin_interrupt",
        "reset_fail",
        "device_request_reset",
        "bw_in_allowance_exceeded",
        "bw_out_allowance_exceeded",
        "pps_allowance_exceeded",
        "conntrack_allowance_exceeded",
        "linklocal_allowance_exceeded",
        "conntrack_allowance_available",
        "interface_up",
        "interface_down",
        # virtio_net, mlx5, bnxt, gve
        "tx_timeouts",
        "rx_out_of_buffer",
        "tx_queue_dropped",
        "link_down_events_phy",
        "tx_timeout_cnt",
    }
)
"""Device-wide counters that are always taken, beside those whose meaning is known (infiniband_counters.CARD)."""

_TELLING = re.compile(
    r"drop|discard|err(?!upt)|timeout|timedout|reset|miss|stall|fail|no_buf|out_of_buf|overrun|fifo|starv|lost",
)
_PER_QUEUE = re.compile(r"(?:^|_|\[)(?:queue|q|rx|tx|ch|ring|rxq|txq)_?\d+|\d+_(?:rx|tx)_|_\d+$|^\[\d+\]")


@dataclass(frozen=True, slots=True)
class Driver:
    driver: str
    version: str
    firmware: str
    bus: str


def choose(names: Sequence[str]) -> list[tuple[int, str]]:
    """(position, name) of the counters worth keeping, the most useful first."""
    named: list[tuple[int, str]] = []
    device: list[tuple[int, str]] = []
    queue: list[tuple[int, str]] = []
    for position, name in enumerate(names):
        if name in NAMED or name in CARD:
            named.append((position, name))
        elif _TELLING.search(name.lower()):
            (queue if _PER_QUEUE.search(name) else device).append((position, name))
    return (named + device + queue)[:MAX_COUNTERS]


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace").strip()


class Ethtool:
    """One socket for all interfaces; the names of a card's counters are asked for once per count."""

    __slots__ = ("_chosen", "_socket", "why")

    def __init__(self) -> None:
        self.why: str | None = None
        self._socket = self._open()
        self._chosen: dict[str, tuple[int, list[tuple[int, str]]]] = {}

    def _open(self) -> socket.socket | None:
        for family in _FAMILIES:
            try:
                return socket.socket(family, socket.SOCK_DGRAM)
            except OSError as error:
                self.why = f"socket: {error.strerror or error}"
        return None

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _ioctl(self, interface: str, request: bytes, room: int) -> bytes | None:
        if self._socket is None:
            return None
        buffer = array.array("B", request.ljust(room, b"\0"))
        ifreq = struct.pack("16sP16x", interface.encode()[:15], buffer.buffer_info()[0])
        try:
            fcntl.ioctl(self._socket, _SIOCETHTOOL, ifreq)
        except OSError as error:
            self.why = os.strerror(error.errno) if error.errno else str(error)
            return None
        self.why = None
        return buffer.tobytes()

    def driver(self, interface: str) -> Driver | None:
        answer = self._ioctl(interface, struct.pack("=I", _GDRVINFO), _DRVINFO.size)
        if answer is None:
            return None
        fields = _DRVINFO.unpack_from(answer)
        return Driver(_text(fields[1]), _text(fields[2]), _text(fields[3]), _text(fields[4]))

    def statistics(self, interface: str) -> dict[str, int] | None:
        """The chosen counters of a card; None, and `why`, where the driver has none."""
        count = self._count(interface)
        if count is None:
            return None
        chosen = self._names(interface, count)
        if not chosen:
            return None if chosen is None else {}
        room = _STATS_HEADER.size + 8 * (2 * count + _SLACK_COUNTERS)
        answer = self._ioctl(interface, _STATS_HEADER.pack(_GSTATS, count), room)
        if answer is None:
            return None
        filled = _STATS_HEADER.unpack_from(answer)[1]
        if filled != count:
            self.why = "the number of counters changed while they were read"
            return None
        values = struct.unpack_from(f"={count}Q", answer, _STATS_HEADER.size)
        return {name: values[position] for position, name in chosen}

    def _count(self, interface: str) -> int | None:
        request = _SSET_INFO.pack(_GSSET_INFO, 0, 1 << _SS_STATS, 0)
        answer = self._ioctl(interface, request, _SSET_INFO.size)
        if answer is None:
            return None
        _, _, mask, count = _SSET_INFO.unpack(answer)
        if not mask or not count:
            self.why = os.strerror(errno.EOPNOTSUPP)
            return None
        return int(count)

    def _names(self, interface: str, count: int) -> list[tuple[int, str]] | None:
        known = self._chosen.get(interface)
        if known is not None and known[0] == count:
            return known[1]
        room = _HEADER.size + _STRING_BYTES * (2 * count + _SLACK_COUNTERS)
        answer = self._ioctl(interface, _HEADER.pack(_GSTRINGS, _SS_STATS, count), room)
        if answer is None:
            return None
        strings = struct.unpack_from(f"{_STRING_BYTES}s" * count, answer, _HEADER.size)
        chosen = choose([_text(string) for string in strings])
        self._chosen[interface] = (count, chosen)
        return chosen

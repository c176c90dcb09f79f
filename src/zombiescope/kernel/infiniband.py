"""/sys/class/infiniband/DEV/ports/P: state, rate and counters of RDMA ports (InfiniBand, RoCE, EFA).

Fields: `state` ("4: ACTIVE"), `rate` ("400 Gb/sec (4X NDR)"), `link_layer`, and the counters of `counters` and
`hw_counters` whose meaning is known (infiniband_counters). EFA has counters of the device beside those of its port.

Cost: a counter file is a command to the card's firmware, milliseconds each on a card that is busy, and one that hangs
waits for its driver's timeout (a minute). One read refreshes the whole set of `hw_counters` for 10 ms, so they are read
back to back. Read every ten seconds, in a process that may be lost; a driver that refuses (EINVAL, EIO; mlx5 also logs
each refusal) is not asked again.

Absence: no RDMA card. `N/A (no PMA)` is a port without counters. A name of a device that is no file name is left out.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from zombiescope.kernel import infiniband_counters
from zombiescope.kernel.procfile import at, names_in, number, read_link, read_text

CLASS = "sys/class/infiniband"
MOST_PORTS = 64
MOST_COUNTERS = 64
"""Of a directory."""
ACTIVE = 4
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_RATE = re.compile(r"(\d{1,6})(?:\.(\d))?\s*Gb/sec")
_FILE_BYTES = 128


@dataclass(frozen=True, slots=True)
class Port:
    device: str
    port: str

    @property
    def name(self) -> str:
        return f"{self.device}/{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    state: int | None
    """1 down, 2 initialising, 3 armed, 4 active."""
    rate_mbps: int | None
    layer: str | None


@dataclass(slots=True)
class Reading:
    """Counters by name. `full` stand at their maximum. `failed`: the file that could not be read, and why; what comes
    after it was not asked."""

    values: dict[str, int] = field(default_factory=dict)
    full: list[str] = field(default_factory=list)
    failed: tuple[str, str] | None = None


def ports(root: str = "/") -> tuple[Port, ...]:
    directory = at(root, CLASS)
    devices = [name for name in names_in(directory) or () if _NAME.fullmatch(name)]
    found = [
        Port(device, port)
        for device in devices
        for port in names_in(f"{directory}/{device}/ports") or ()
        if port.isdecimal() and len(port) <= 3
    ]
    return tuple(found[:MOST_PORTS])


def bus_of(device: str, root: str = "/") -> str | None:
    """Where the card is, as drivers name it in the log: 0000:18:00.0."""
    link = read_link(at(root, f"{CLASS}/{device}/device"))
    return None if link is None else link.rpartition("/")[2]


def link(port: Port, root: str = "/") -> Link:
    directory = at(root, f"{CLASS}/{port.device}/ports/{port.port}")
    state = (read_text(f"{directory}/state") or "").partition(":")[0]
    rate = _RATE.match(read_text(f"{directory}/rate") or "")
    mbps = None if rate is None else int(rate[1]) * 1000 + int(rate[2] or 0) * 100
    return Link(int(state) if state.isdecimal() else None, mbps, read_text(f"{directory}/link_layer"))


def counters(port: Port, root: str = "/") -> Reading:
    """Every counter of a port whose meaning is known, up to the first that fails."""
    base = at(root, f"{CLASS}/{port.device}")
    reading = Reading()
    for directory in (f"{base}/ports/{port.port}/counters", f"{base}/ports/{port.port}/hw_counters"):
        _add(directory, reading)
    if port.port == "1":
        _add(f"{base}/hw_counters", reading)
    return reading


def _add(directory: str, into: Reading) -> None:
    names = [name for name in names_in(directory) or () if infiniband_counters.port(name) is not None]
    for name in names[:MOST_COUNTERS]:
        if into.failed is not None:
            return
        _read(directory, name, into)


def _read(directory: str, name: str, into: Reading) -> None:
    try:
        descriptor = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, _FILE_BYTES)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return  # the card went away between the listing and now
    except OSError as error:
        into.failed = (name, error.strerror or str(error))
        return
    value, meaning = number(data.strip()), infiniband_counters.port(name)
    if value is None or meaning is None:  # "N/A (no PMA)"
        return
    if meaning.sticks and value == meaning.full:
        into.full.append(name)
        return
    into.values[name] = value * meaning.unit


def wrapped(name: str, before: int, now: int) -> int | None:
    """What a counter that is smaller than before has added, if it began again at 0 after its last bit; None where it
    was reset: by more than a quarter of its range in a reading none of them rises."""
    meaning = infiniband_counters.port(name)
    if meaning is None or meaning.sticks or meaning.bits >= 64 or before > meaning.full:
        return None
    added = now + meaning.full + 1 - before
    return added if 0 <= added <= meaning.full // 4 else None

"""/proc/net/snmp and /proc/net/netstat: what the IP, TCP and UDP stacks counted.

Fields: FIELDS, under the names that nstat(8) prints (protocol and counter joined: TcpRetransSegs,
TcpExtListenDrops): retransmits and timeouts, drops because room is missing, resets, and the traffic to hold them
against.

Both files have two lines a protocol, names and values. The columns grow with the kernel but do not change
while it runs, so the positions are found once per header line.

The counters belong to one network namespace: that of the reader when the file was opened. Cost: the kernel
sums about 300 counters over all possible CPUs for both files. Absence: a counter that the kernel lacks is
None.
"""

from functools import lru_cache

from zombiescope.kernel.procfile import at, read_file

FIELDS = (
    # /proc/net/snmp
    "IpInReceives",
    "IpInDiscards",
    "IpOutDiscards",
    "TcpActiveOpens",
    "TcpPassiveOpens",
    "TcpAttemptFails",
    "TcpEstabResets",
    "TcpCurrEstab",
    "TcpInSegs",
    "TcpOutSegs",
    "TcpRetransSegs",
    "TcpInErrs",
    "TcpOutRsts",
    "UdpInDatagrams",
    "UdpNoPorts",
    "UdpInErrors",
    "UdpOutDatagrams",
    "UdpRcvbufErrors",
    "UdpSndbufErrors",
    # /proc/net/netstat
    "TcpExtListenOverflows",
    "TcpExtListenDrops",
    "TcpExtTCPTimeouts",
    "TcpExtTCPLossProbes",
    "TcpExtTCPFastRetrans",
    "TcpExtTCPSlowStartRetrans",
    "TcpExtTCPSynRetrans",
    "TcpExtTCPSpuriousRTOs",
    "TcpExtTCPLostRetransmit",
    "TcpExtTCPAbortOnTimeout",
    "TcpExtTCPAbortOnMemory",
    "TcpExtTCPBacklogDrop",
    "TcpExtTCPRcvQDrop",
    "TcpExtTCPReqQFullDrop",
    "TcpExtTCPMemoryPressures",
    "TcpExtTCPOFOQueue",
    "TcpExtPruneCalled",
)

_CHOSEN = frozenset(FIELDS)


@lru_cache(maxsize=64)
def _positions(names: bytes) -> tuple[tuple[int, str], ...]:
    """(column, field) of the chosen counters of one line of names."""
    protocol, _, counters = names.decode("ascii", "replace").partition(": ")
    fields = ((column, protocol + counter) for column, counter in enumerate(counters.split()))
    return tuple((column, field) for column, field in fields if field in _CHOSEN)


def parse(*files: bytes) -> dict[str, int | None]:
    """Every field of FIELDS, in that order, from the text of either file or both; None where absent."""
    found: dict[str, int | None] = dict.fromkeys(FIELDS)
    for data in files:
        lines = data[: data.rfind(b"\n") + 1].split(b"\n")
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            _pick(names, values, found)
    return found


def _pick(names: bytes, values: bytes, found: dict[str, int | None]) -> None:
    positions = _positions(names)
    if not positions or names.partition(b":")[0] != values.partition(b":")[0]:
        return
    row = values.split()[1:]
    for column, field in positions:
        try:
            found[field] = int(row[column])
        except (ValueError, IndexError):
            continue


def read(root: str = "/") -> dict[str, int | None] | None:
    files = [read_file(at(root, f"proc/net/{name}")) for name in ("snmp", "netstat")]
    present = [data for data in files if data is not None]
    return parse(*present) if present else None

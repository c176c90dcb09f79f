"""/proc/self/mountstats: how many requests each NFS mount sent and how many of them were answered.

Fields of a mount, all operations together: answered (ops), sent (ntrans, retransmissions included), major timeouts.
A mount on which tasks wait and nothing is answered hangs. The server is not asked: these are the client's own counts.

Cost: one line a mount, some forty for each of NFS: read only where there is one. Absence: no NFS, no such mounts.
"""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, number, read_file


@dataclass(frozen=True, slots=True)
class NfsCounts:
    answered: int = 0
    sent: int = 0
    timeouts: int = 0


def parse(data: bytes) -> dict[str, NfsCounts]:
    """By mount point as the file writes it; of two mounts at one point the later, which hides the other."""
    found: dict[str, NfsCounts] = {}
    point: str | None = None
    in_operations = False
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        if line.startswith(b"device "):
            point, in_operations = _point(line), False
            if point is not None:
                found[point] = NfsCounts()
        elif line.strip() == b"per-op statistics":
            in_operations = True
        elif in_operations and point is not None:
            found[point] = _added(found[point], line)
    return found


def _point(line: bytes) -> str | None:
    """Of a mount of NFS: "device srv:/data mounted on /mnt/data with fstype nfs4 statvers=1.1"."""
    head, _, kind = line.partition(b" with fstype ")
    if not kind.startswith(b"nfs"):
        return None
    _, on, point = head.partition(b" mounted on ")
    return point.decode("utf-8", "backslashreplace") if on else None


def _added(counts: NfsCounts, line: bytes) -> NfsCounts:
    """An operation's line: "        READ: ops ntrans timeouts sent received queue rtt execute errors"."""
    name, colon, rest = line.partition(b":")
    numbers = [number(field) for field in rest.split()[:3]]
    if not colon or not name.strip() or len(numbers) < 3 or None in numbers:
        return counts
    answered, sent, timeouts = (value or 0 for value in numbers)
    return NfsCounts(counts.answered + answered, counts.sent + sent, counts.timeouts + timeouts)


def read(root: str = "/") -> dict[str, NfsCounts] | None:
    data = read_file(at(root, "proc/self/mountstats"))
    return None if data is None else parse(data)

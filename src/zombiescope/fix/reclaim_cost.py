"""What reclaiming from a parent takes from the living: neither kernel interface aims at the dead.

v1 force_empty empties the parent itself and everything below it, and with swap it swaps out what their processes hold;
no setting of the parent keeps it from that, since each cgroup below has its own swappiness. v2 memory.reclaim takes a
part from each; from v6.9 on it is asked to leave such memory alone (68cd9050d871), before that it may swap too.

Cached files are read again, which is slow for a while. What may be taken from the living has a ceiling
(reclaim.LIVING_BYTES): on cgroup2 no more bytes are asked for than the dead hold and the ceiling; force_empty takes all
there is, so a parent on v1 whose living hold more has to be named by a person. So has one whose living could be swapped
(swapping out a training job is an outage), and one of which nothing can be said.
"""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.fix.reclaim import LIVING_BYTES, Parent, leaves_anonymous
from zombiescope.kernel import meminfo
from zombiescope.kernel.cgroup_leaf import parse_flat
from zombiescope.kernel.procfile import read_file

FEW_BYTES = 16 << 20
"""Of a shell and its helpers: swapped out, nobody notices."""


@dataclass(frozen=True, slots=True)
class Cost:
    """None: it cannot be told."""

    own_file_bytes: int | None
    """Page cache of the parent itself. On cgroup2 it cannot be told from that of the dead."""
    beside_file_bytes: int | None
    """Page cache of the cgroups below it that live."""
    swapped_bytes: int | None
    """Memory of processes that may be swapped out; 0 where there is no swap, or the kernel leaves it alone."""
    processes: int
    """In the parent itself."""
    most_living_bytes: int | None = None
    """Page cache of the living that may be lost at most; None: all there is (force_empty)."""

    @property
    def lines(self) -> list[str]:
        own, beside, swapped = self.own_file_bytes, self.beside_file_bytes, self.swapped_bytes
        found = (
            []
            if own is None
            else [f"{own:,} bytes of its page cache are dropped too: it has {self.processes} processes"]
        )
        if beside is None:
            found.append("how much page cache the live cgroups below it lose is unknown")
        else:
            most = "" if self.most_living_bytes is None else f", of which at most {self.most_living_bytes:,} are taken"
            found.append(
                f"{beside:,} bytes of page cache of the living are below it{most}; they are read from disk again"
            )
        if swapped:
            found.append(f"up to {swapped:,} bytes of the memory of living processes may be swapped out")
        return found

    @property
    def why_named(self) -> str | None:
        """Why it is not done before a person has named the parent; None where the plan's consent is enough."""
        if self.beside_file_bytes is None:
            return "what it would take from live cgroups is unknown"
        living = self.beside_file_bytes + (self.own_file_bytes or 0)
        if self.most_living_bytes is None and living > LIVING_BYTES:
            return (
                f"{living:,} bytes of page cache of the living would go, and {LIVING_BYTES:,} are the most without it"
            )
        if self.swapped_bytes is None or self.swapped_bytes > FEW_BYTES:
            return "living processes below it may be swapped out"
        return None


def cost(parent: Parent, root: str = "/") -> Cost:
    stat = parse_flat(read_file(f"{parent.directory}/memory.stat") or b"") if parent.held is not None else {}
    own = max(0, stat["cache"] - stat.get("shmem", 0)) if "cache" in stat else None
    beside = None if parent.held is None else parent.held.living_file_bytes
    processes = len((read_file(f"{parent.directory}/cgroup.procs") or b"").split())
    return Cost(own, beside, _swapped(parent, stat, root), processes, None if parent.version == 1 else LIVING_BYTES)


def _swapped(parent: Parent, stat: dict[str, int], root: str) -> int | None:
    known = meminfo.read(root)
    if known is not None and known.get("swap_total_bytes") == 0:
        return 0
    if parent.version == 2 and leaves_anonymous():
        return 0
    return stat.get("total_rss", stat.get("anon"))

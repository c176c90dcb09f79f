"""Who is connected to a runtime's socket at the moment a container is made: the one that asked for it is among them.

A supervisor that asks over the API (an agent's own loop, a library, curl) has no command line that names a container.
Its connection to the runtime lives until the container has started, so a look at the runtime's connections within
LATEST_S of the cgroup's creation finds it. Monitoring agents keep connections too; the recorder compares the looks of
several creations (recorder/clients.py) and names nobody while two clients fit.

Left out are servers of containers themselves: dockerd asks containerd, and kubelet's containers have their pods.

Cost: kernel/unix_sockets.py; at most one dump in REUSED_S, and a search for unknown holders spends at most a hundredth
of the time. Absence: None, with the reason in `why`; a client in another network namespace is not seen.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.kernel import process, unix_sockets
from zombiescope.kernel.namespaces import in_host
from zombiescope.kernel.unix_sockets import Connection, Holders
from zombiescope.node.containers import requester
from zombiescope.node.containers.requester import Requester

SOCKETS = {
    "docker": ("docker.sock",),
    "containerd": ("containerd.sock",),
    "crio": ("crio.sock",),
    "podman": ("podman.sock",),
}
"""Runtime of a container -> file names of the sockets over which it is asked for."""
SERVERS = frozenset({"dockerd", "containerd", "crio", "podman", "kubelet", "cri-dockerd", "systemd"})
ELSEWHERE = "the recorder has its own network namespace, and unix sockets are listed per namespace"
LATEST_S = 1.0
REUSED_S = 0.1
LOOK_SHARE = 0.02
"""Of the time, so much may go into dumps: a node with ten thousand unix sockets is looked at less often."""
SEARCH_S = 0.15
SEARCH_SHARE = 0.01
MOST_CLIENTS = 16


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that is connected."""

    who: Requester
    start_time_ticks: int
    is_new: bool
    """Its connection was made after the look before."""


class Peers:
    """Looks; one thread's own."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._holders = Holders(root)
        self._connections: list[Connection] = []
        self._looked_s = float("-inf")
        self._before: frozenset[int] | None = None
        self._look_from_s = self._search_from_s = 0.0
        self.why: str | None = None
        """Why the last look gave nothing."""

    def of(self, runtime: str | None) -> tuple[Peer, ...] | None:
        """Clients of a runtime now; None where not all of them could be found out."""
        names = SOCKETS.get(runtime or "docker")
        if names is None or self._root != "/" or not self._look():
            return None
        those = [one for one in self._connections if one.path.rpartition("/")[2] in names and not one.server_uid]
        if len(those) > MOST_CLIENTS * 4:
            return None
        holders = self._find({inode for one in self._connections for inode in (one.client, one.server)})
        return self._peers(those, holders)

    def _look(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._looked_s < REUSED_S:
            return self.why is None
        if now_s < self._look_from_s:
            return False
        before = frozenset(one.client for one in self._connections) if self.why is None else None
        self._before = before if self._looked_s > 0 else None
        self._looked_s = now_s
        try:
            names = [name for those in SOCKETS.values() for name in those]
            self._connections = unix_sockets.connections(names)
            self.why = None if in_host("net", self._root) is not False else ELSEWHERE
        except OSError as error:
            self._connections, self.why = [], f"unix sockets cannot be listed: {error.strerror or error}"
        self._look_from_s = now_s + (time.monotonic() - now_s) / LOOK_SHARE
        return self.why is None

    def _find(self, inodes: set[int]) -> dict[int, int]:
        now_s = time.monotonic()
        limit_s = SEARCH_S if now_s >= self._search_from_s else 0.0
        found = self._holders.find(inodes, limit_s)
        spent_s = time.monotonic() - now_s
        if limit_s:
            self._search_from_s = now_s + spent_s / SEARCH_SHARE
        return found

    def _peers(self, those: list[Connection], holders: dict[int, int]) -> tuple[Peer, ...] | None:
        found: dict[int, Peer] = {}
        for one in those:
            server, pid = holders.get(one.server), holders.get(one.client)
            if server is None or pid is None:
                return None
            if self._comm(server) not in SERVERS:
                continue  # another program bound a socket of that name
            stat = process.read_stat(pid, self._root)
            if stat is None or stat.comm in SERVERS:
                continue
            who = requester.connected(pid, self._root)
            if who is None:
                return None
            is_new = self._before is not None and one.client not in self._before
            if pid not in found or is_new:
                found[pid] = Peer(who, stat.start_time_ticks, is_new)
            if len(found) > MOST_CLIENTS:
                return None
        return tuple(found.values())

    def _comm(self, pid: int) -> str | None:
        stat = process.read_stat(pid, self._root)
        return None if stat is None else stat.comm

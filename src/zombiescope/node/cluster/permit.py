"""How many nodes are worked on at once, for the whole cluster: a permit is a Lease that only one can hold.

With a limit of two there are two Leases, zombiescope-maintenance-0 and -1. A node takes a free one and keeps it until
it is back; who comes too late is told who holds them. The server decides races: a Lease that changed since it was
read is not written (409).

A permit of a node that never came back is free after its duration and SKEW_S more: clocks of two nodes differ, and two
nodes down are worse than one that waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from zombiescope.node.cluster import access
from zombiescope.node.cluster.access import ClusterError
from zombiescope.node.cluster.pod import time_us

if TYPE_CHECKING:
    from lightkube import Client

NAME = "zombiescope-maintenance"
DURATION_S = 3600
SKEW_S = 600.0
MAX_NODES = 100
_CONFLICT, _MISSING = 409, 404


class Permits:
    def __init__(
        self, client: Client, node: str, namespace: str, *, most: int = 1, clock: Callable[[], float] = time.time
    ) -> None:
        if not 1 <= most <= MAX_NODES:
            raise ClusterError(f"{most} nodes at once", f"give a limit from 1 to {MAX_NODES}")
        self._client, self._node, self._namespace, self._most, self._clock = client, node, namespace, most, clock

    def held(self) -> str | None:
        """The name of the one that this node holds. Raises ClusterError."""
        for name, lease in self._all():
            if lease is not None and _spec(lease).get("holderIdentity") == self._node:
                return name
        return None

    def take(self) -> str:
        """Its name; again the same for the node that has one. Raises ClusterError with who holds them."""
        holders: list[str] = []
        leases = list(self._all())
        own = [one for one in leases if one[1] is not None and _spec(one[1]).get("holderIdentity") == self._node]
        for name, lease in own or leases:
            if lease is None:
                if self._write(name, None):
                    return name
            elif own or self._is_free(lease):
                if self._write(name, lease):
                    return name
            else:
                holders.append(str(_spec(lease).get("holderIdentity")))
        who = ", ".join(holders) or "another requester"
        raise ClusterError(f"{self._most} nodes may be worked on at once, and {who} is", "wait until it is back")

    def give_back(self) -> bool:
        """Whether there was one. Raises ClusterError."""
        for name, lease in self._all():
            if lease is not None and _spec(lease).get("holderIdentity") == self._node:
                return self._write(name, lease, holder="")
        return False

    def _is_free(self, lease: dict[str, Any]) -> bool:
        spec = _spec(lease)
        renewed_us, lasts = time_us(spec.get("renewTime")), spec.get("leaseDurationSeconds")
        if not spec.get("holderIdentity"):
            return True
        if renewed_us is None or not isinstance(lasts, int):
            return False
        return self._clock() > renewed_us / 1e6 + lasts + SKEW_S

    def _all(self) -> list[tuple[str, dict[str, Any] | None]]:
        return [(name, self._read(name)) for name in (f"{NAME}-{number}" for number in range(self._most))]

    def _read(self, name: str) -> dict[str, Any] | None:
        from lightkube.resources.coordination_v1 import Lease

        try:
            return dict(self._client.get(Lease, name, namespace=self._namespace).to_dict())
        except access.trouble() as error:
            if access.status_code(error) == _MISSING:
                return None
            raise self._trouble(error) from error

    def _write(self, name: str, lease: dict[str, Any] | None, holder: str | None = None) -> bool:
        """False when somebody was quicker."""
        from lightkube.resources.coordination_v1 import Lease

        at = _stamp(self._clock())
        who = self._node if holder is None else holder
        spec = {"holderIdentity": who, "leaseDurationSeconds": DURATION_S, "acquireTime": at, "renewTime": at}
        about = {"name": name, "namespace": self._namespace}
        if lease is not None:
            about["resourceVersion"] = str(lease["metadata"]["resourceVersion"])
        wanted = access.resource(
            Lease, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about, "spec": spec}
        )
        try:
            if lease is None:
                self._client.create(wanted)
            else:
                self._client.replace(wanted)
        except access.trouble() as error:
            if access.status_code(error) == _CONFLICT:
                return False
            raise self._trouble(error) from error
        return True

    def _trouble(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the Lease {self._namespace}/{NAME} cannot be used: {access.brief(error)}")


def _stamp(at_s: float) -> str:
    """These times must have six digits of a second, and the client leaves out those that are all 0."""
    at = datetime.fromtimestamp(at_s, UTC)
    return at.replace(microsecond=at.microsecond or 1).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(lease: dict[str, Any]) -> dict[str, Any]:
    found = lease.get("spec")
    return found if isinstance(found, dict) else {}

"""The node is taken out of its cluster: cordoned and drained. How is said in node/cluster/maintenance.py; here it is an
action, whose failures are those of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.node.cluster.access import ClusterError
from zombiescope.node.cluster.maintenance import CordonNode, DrainNode


@contextmanager
def as_failure() -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        raise ActionFailedError(error.what, error.fix) from error


@dataclass(frozen=True, slots=True, init=False)
class _NodeAction:
    inner: CordonNode | DrainNode
    made: ClassVar[type[CordonNode] | type[DrainNode]]

    def __init__(self, **arguments: Any) -> None:
        """Raises TypeError for arguments that it does not know."""
        object.__setattr__(self, "inner", self.made(**arguments))

    def arguments(self) -> dict[str, Any]:
        return self.inner.arguments()

    def command(self) -> tuple[str, ...] | None:
        return self.inner.command()

    def touches(self) -> tuple[str, ...]:
        with as_failure():
            return bounded(list(self.inner.touches()))

    def before(self) -> dict[str, Any]:
        with as_failure():
            return self.inner.before()

    def is_applied(self) -> bool:
        with as_failure():
            return self.inner.is_applied()

    def apply(self) -> None:
        with as_failure():
            self.inner.apply()

    def undo(self, before: Mapping[str, Any]) -> None:
        with as_failure():
            self.inner.undo(before)


class Cordon(_NodeAction):
    __slots__ = ()
    kind: ClassVar[str] = CordonNode.kind
    made = CordonNode


class Drain(_NodeAction):
    __slots__ = ()
    kind: ClassVar[str] = DrainNode.kind
    made = DrainNode


ACTIONS = (Cordon, Drain)

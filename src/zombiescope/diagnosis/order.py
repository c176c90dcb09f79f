"""In which order incidents are read: the worst first, and what is explained before what is not, of the same seconds.

One fault often shows in two places, and only one of them tells why. So an incident that nothing explains stands
directly behind the explained one of its time, whichever of the two looks worse; a remark (info) leads nobody. The same
order holds for a diagnosis and for the incidents that the doctor wrote while they happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from zombiescope.base.severity import rank
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.thresholds import UNCONFIRMED_MOST

Document = dict[str, Any]
One = TypeVar("One")


class _Standing(NamedTuple):
    rank: int
    is_explained: bool
    from_s: float
    to_s: float

    def leads(self, other: _Standing) -> bool:
        together = self.from_s <= other.to_s and other.from_s <= self.to_s
        return together and self.is_explained and self.rank > 0 and not other.is_explained


def is_explained(incident: Incident) -> bool:
    """By something that was measured."""
    return bool(incident.causes) and incident.causes[0].confidence > UNCONFIRMED_MOST


def is_news(incident: Incident) -> bool:
    """Explained, and by more than what healthy nodes do all day."""
    return is_explained(incident) and not incident.causes[0].is_ordinary


def ordered(incidents: Sequence[Incident]) -> list[Incident]:
    return _ordered(
        incidents,
        [_Standing(rank(one.severity), is_explained(one), one.from_us / 1e6, one.to_us / 1e6) for one in incidents],
    )


def worst_first(documents: Sequence[Document]) -> list[Document]:
    """The same for incidents as they are written down."""
    return _ordered(documents, [_standing(one) for one in documents])


def several_nodes(nodes: Sequence[Sequence[Document]]) -> list[Document]:
    """Incidents of several nodes, the worst first; what is in order for one node stays so."""
    weighed: list[tuple[int, Document]] = []
    for documents in nodes:
        ranks = [rank(str(one["severity"])) for one in documents]
        weighed.extend((max(ranks[place:]), one) for place, one in enumerate(documents))
    weighed.sort(key=lambda pair: -pair[0])
    return [one for _, one in weighed]


def _standing(one: Document) -> _Standing:
    causes = one.get("causes") or []
    explained = bool(causes) and float(causes[0].get("confidence") or 0) > UNCONFIRMED_MOST
    return _Standing(rank(str(one.get("severity"))), explained, float(one.get("from") or 0), float(one.get("to") or 0))


def _ordered(items: Sequence[One], standings: Sequence[_Standing]) -> list[One]:
    numbers = sorted(range(len(items)), key=lambda number: _alone(standings[number]))
    leader = {
        number: next((other for other in numbers if standings[other].leads(standings[number])), number)
        for number in numbers
    }
    followed: dict[int, list[int]] = {}
    for number in numbers:
        followed.setdefault(leader[number], []).append(number)

    def place(first: int) -> tuple[int, bool, float]:
        """Of a leader: as bad as the worst behind it."""
        worst = max(standings[number].rank for number in followed[first])
        return _alone(standings[first]._replace(rank=worst))

    return [
        items[number]
        for first in sorted(followed, key=place)
        for number in sorted(followed[first], key=lambda number: (number != first, _alone(standings[number])))
    ]


def _alone(one: _Standing) -> tuple[int, bool, float]:
    return -one.rank, not one.is_explained, one.from_s

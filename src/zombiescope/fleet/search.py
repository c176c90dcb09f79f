"""Where else does this occur: a function or a piece of a stack, a unit, an Xid, a leaking path, a cause.

A plain text is looked for everywhere, without regard to case. KIND:TEXT looks in one place only. What is searched is
the statistics of the window, not the samples: seconds for a fleet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zombiescope.base.errors import QuestionError
from zombiescope.fleet.statistics import Statistics

MOST = 500


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found, on the nodes that have it. `count`: samples, CPU milliseconds, events, cgroups or
    incidents, as `counts` says."""

    kind: str
    what: str
    nodes: tuple[str, ...]
    count: int
    counts: str
    first_us: int | None
    last_us: int | None


_PLACES: dict[str, tuple[str, str]] = {
    "stack": ("samples", """
        select stack, list(distinct node order by node), sum(samples)::bigint as n, null, null from stacks
        where contains(lower(replace(stack, '[k]', '')), $1) group by stack"""),
    "unit": ("ms of CPU", """
        select unit, list(distinct node order by node), sum(cpu_ms)::bigint as n, min(first_us), null from units
        where contains(lower(unit), $1) group by unit"""),
    "event": ("events", """
        select concat_ws(' ', kind, key), list(distinct node order by node), sum(count)::bigint as n, min(first_us),
               max(last_us) from events
        where contains(lower(concat_ws(' ', kind, key, text)), $1) group by all"""),
    "xid": ("events", """
        select concat('Xid ', key), list(distinct node order by node), sum(count)::bigint as n, min(first_us),
               max(last_us) from events where contains(lower(kind), 'xid') and key = $1 group by all"""),
    "leak": ("dying cgroups", """
        select path, list(distinct node order by node), sum(dying)::bigint as n, min(at_us), max(at_us) from leaks
        where contains(lower(concat_ws(' ', path, culprit)), $1) group by path"""),
    "cause": ("incidents", """
        select concat_ws(' by ', pattern, culprit), list(distinct node order by node), count(*) as n, min(from_us),
               max(to_us) from incidents
        where contains(lower(concat_ws(' ', pattern, culprit, hog, frames)), $1) group by all"""),
}  # fmt: skip
KINDS = tuple(_PLACES)


def search(statistics: Statistics, text: str) -> list[Hit]:
    """By kind, and in each by nodes, the most first. Raises QuestionError."""
    kind, colon, rest = text.partition(":")
    places: list[str] = [*KINDS]
    if colon and kind.lower() in _PLACES:
        places, text = [kind.lower()], rest
    text = text.strip().lower()
    if not text:
        raise QuestionError("there is nothing to look for", f"name a text, or KIND:TEXT with one of {', '.join(KINDS)}")
    found = [hit for place in places for hit in _hits(statistics, place, text)]
    return found[:MOST]


def _hits(statistics: Statistics, place: str, text: str) -> list[Hit]:
    counts, query = _PLACES[place]
    wanted = text.removeprefix("xid").strip() if place == "xid" else text
    rows: list[tuple[Any, ...]] = statistics.rows(
        f"{query} order by len(list(distinct node)) desc, n desc, 1 limit {MOST}", [wanted]
    )
    return [
        Hit(place, what, tuple(nodes), int(count or 0), counts, first, last) for what, nodes, count, first, last in rows
    ]


def document(text: str, hits: list[Hit]) -> dict[str, Any]:
    nodes = {node for hit in hits for node in hit.nodes}
    return {
        "query": text, "nodes": sorted(nodes),
        "hits": [
            {"kind": hit.kind, "what": hit.what, "nodes": list(hit.nodes), "count": hit.count, "counts": hit.counts,
             "first": None if hit.first_us is None else hit.first_us / 1e6,
             "last": None if hit.last_us is None else hit.last_us / 1e6}
            for hit in hits
        ],
    }  # fmt: skip

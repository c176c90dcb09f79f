"""`zombiescope fleet search`: where else does this occur."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.cli.fleet.asking import (
    EngineName,
    Last,
    RayAddress,
    ResultsDir,
    Root,
    Until,
    Workers,
    engine_of,
    gathered,
)
from zombiescope.cli.output import Json, console, examples, note, print_document, table

EXAMPLES = examples(
    "fleet search ./fleet mem_cgroup_iter           # a function, anywhere in a stack or a diagnosis",
    "fleet search ./fleet unit:ecs.service",
    "fleet search ./fleet xid:79 --last 7d",
    "fleet search ./fleet leak:/docker --json",
)
_NODES_SHOWN, _ROWS = 4, 40


def command(
    root: Root,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="What to look for; stack:, unit:, event:, xid:, leak: or cause: before it."
        ),
    ],
    last: Last = "24h",  # type: ignore[assignment]  # read by its parser
    until: Until = None,
    engine: EngineName = "duckdb",
    workers: Workers = None,
    ray_address: RayAddress = None,
    results: ResultsDir = None,
    json_: Json = False,
) -> None:
    """Find other nodes with the same stack, unit, Xid, leaking path or cause.

    Searches rollups, incidents and incident windows of all nodes. Exits 0 even if it finds nothing.
    """
    with gathered(root, last, until, engine_of(engine, workers, ray_address), results) as found:
        from zombiescope.fleet.search import document, search

        hits = search(found.statistics, text)
    if json_:
        print_document("fleet.search", document(text, hits))
        return
    if not hits:
        note(f"zombiescope: {text!r} occurs on none of {len(found.listing.nodes):,} nodes in this window")
        return
    rows = table("kind", "what", "nodes", "count", right=("count",), wraps=("what", "nodes"))
    for hit in hits[:_ROWS]:
        more = f" and {len(hit.nodes) - _NODES_SHOWN} more" if len(hit.nodes) > _NODES_SHOWN else ""
        what = " > ".join(hit.what.split(";")[-3:]) if hit.kind == "stack" else hit.what
        rows.add_row(hit.kind, what, ", ".join(hit.nodes[:_NODES_SHOWN]) + more, f"{hit.count:,} {hit.counts}")
    console().print(rows)
    if len(hits) > _ROWS:
        note(f"and {len(hits) - _ROWS:,} more; --json lists them")

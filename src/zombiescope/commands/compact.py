"""`zombiescope compact`: the log becomes Parquet now, not at the recorder's next turn."""

from __future__ import annotations

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, print_document
from zombiescope.commands.quantities import human_bytes, human_count
from zombiescope.commands.reading import Dir, Node, node_dir

EXAMPLES = examples(
    "compact                     # a running recorder does this by itself every 15 minutes",
    "compact ./rec --json        # before reading ./rec with DuckDB, Polars or Spark",
)


def command(directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """Turn closed log segments into Parquet, which other programs read."""
    with node_dir(directory, node) as path:
        from zombiescope.recording.compact import BusyError, compact

        try:
            done = compact(path)
        except BusyError as error:
            raise Failure(str(error)) from error
    rows = sum(facts.rows for part in done.parts for facts in part.tables.values())
    size = sum(facts.bytes for part in done.parts for facts in part.tables.values())
    if json_:
        names = [part.name for part in done.parts]
        print_document("compact", {"segments": done.segments, "parts": names, "rows": rows, "bytes": size})
    elif done.segments:
        made = f"{human_count(rows)} rows, {human_bytes(size)} of Parquet"
        console().print(f"{done.segments} segments became {len(done.parts)} parts: {made}")
    else:
        console().print("nothing to do: every closed segment is Parquet already")

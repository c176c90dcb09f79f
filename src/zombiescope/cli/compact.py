"""`zombiescope compact`: the log becomes Parquet now, not at the recorder's next turn."""

from __future__ import annotations

from zombiescope.cli import progress
from zombiescope.cli.output import Json, console, examples, note, print_document
from zombiescope.cli.quantities import human_bytes, human_count
from zombiescope.cli.recording_argument import Dir, Node, node_dir

EXAMPLES = examples(
    "compact",
    "compact ./rec     # before DuckDB, Polars or Spark read ./rec",
)


def command(directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """Turn the log into Parquet now.

    A running recorder does this every 15 minutes. Other programs can read Parquet.
    """
    with node_dir(directory, node) as path:
        from zombiescope.store.compact import compact

        with progress.shown("making Parquet"):
            done = compact(path)
    rows = sum(facts.rows for part in done.parts for facts in part.tables.values())
    size = sum(facts.bytes for part in done.parts for facts in part.tables.values())
    if json_:
        names = [part.name for part in done.parts]
        left = [{"segment": entry.file, "why": entry.what} for entry in done.left]
        document = {"segments": done.segments, "parts": names, "rows": rows, "bytes": size, "left": left}
        print_document("compact", document)
    elif done.segments:
        made = f"{human_count(rows)} rows, {human_bytes(size)} of Parquet"
        console().print(f"{_counted(done.segments, 'segment')} became {_counted(len(done.parts), 'part')}: {made}")
    elif not done.left:
        console().print("nothing to do: every closed segment is Parquet already")
    for entry in done.left:
        note(f"left as it is: {entry.file} {entry.what}; update zombiescope, and compact again")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

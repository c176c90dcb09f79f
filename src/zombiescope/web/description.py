"""The interface described: docs/api.json as OpenAPI, docs/api.md for people; both are made from the code.

python -m zombiescope.web.description docs && scripts/page types

The second makes the page's own types from the first. What an answer looks like is said in web/shapes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zombiescope.web.app import described
from zombiescope.web.recordings import Place, Recordings

_HEAD = """# The interface of the page

Everything that the page shows it asks for here, and so can you. `zombiescope serve` and `zombiescope up` answer below
`/api/v1/`; what is in it does not change its meaning before there is a `/api/v2/`. All of it is read-only.

    export ZOMBIESCOPE_TOKEN=$(openssl rand -hex 24)
    zombiescope serve incident.zscope &
    alias ask='curl -s -H "Authorization: Bearer $ZOMBIESCOPE_TOKEN"'
    ask 'http://127.0.0.1:8321/api/v1/cores?last=5m' | jq '.cores[39]'
    ask 'http://127.0.0.1:8321/api/v1/events?at_least=critical'
    ask -N http://127.0.0.1:8321/api/v1/live

JSON answers are the documents that the commands print with `--json`: same keys, times in Unix seconds, ratios 0..1, what
was not measured is null. The window and the filters are named and written as the options are: `from=12:03:22`, `last=5m`,
`cpu=0-3`, `comm=kubelet`; those that may be repeated are repeated (`cpu=3&cpu=8`). An expression (`match`, `paint`) is
RE2: no look-around, no references.

An error is `{"error": {"what": ..., "fix": ...}}`: what is wrong, and how to fix it or null.

**Columns.** Large answers are `application/vnd.zombiescope.columns`: the bytes `ZSC1`, a 32-bit little-endian length, a
JSON header of that length (padded with spaces), then arrays, each starting at a multiple of 8 bytes. The header has the
scalars and `"arrays": [{"name", "type", "length"}]` in order; types are u8, u16, u32, i32, f32, f64, little-endian. In
Python `zombiescope.documents.columns.decoded(bytes)` reads it.

| answer | scalars | arrays |
|---|---|---|
| strip | from, to, column_s, columns, cpus, from_samples (an import without counters) | user, system, irq, softirq, steal, iowait (u8, index = column * cpus + row: 0..254 of the worst tick of the column, 255 not measured); average_busy, average_kernel (f32, mean of all cores; NaN not measured); worst_core (i32, -1 none) |
| heatmap | start, column_s, columns, rows, cores, total, max, blind | values (u32, index = column * rows + row); spread (f32, the same by exact time, to be drawn; where samples were read); with `paint` also painted (u32) |
| flamegraph | from, to, total, base_total, scale, pruned, names, modules, kinds, total_recording_samples | name, module (u32; 4294967295 none), kind (u8), parent (i32, -1 the root), depth (u16), value, self (f64); with `against` also base, base_self (f64). Breadth first, siblings in the order of name |
| flamechart | from, to, names, modules, kinds, rows_left_off | name, module, kind, depth, start, end (f64, seconds), samples (u32); in the order of start, then depth |
| tracks | from, to, by, columns, column_s, hz, others, tracks: [{name, comm, pid, tid, unit, container, pod, image, samples}] | samples, kernel (u32, index = track * columns + column) |

**Live.** `live` is a stream of server-sent events: `tick` once a second ({at, interval_s, cpus, user, system, irq,
softirq, steal, iowait as lists of ratios, average_busy, average_kernel, dying, total, hz_samples}), `event` (as in
events), `incidents` (a list of {id, state, severity, from, to, summary}, at the beginning and when it changes) and
`recorder` ({running}, when the recorder stops or starts again). A comment keeps the connection open every 15 s.

**Access.** Clients send the token that the server printed, or that `$ZOMBIESCOPE_TOKEN` set:
`Authorization: Bearer TOKEN`. There are no cookies: browsers send those to every port of a host. With `--no-token`, on the loopback only, every user of the machine. Host must
be an address of the server (or a `--host`), Origin, if there is one, its own. Answers carry an ETag; ask with
`If-None-Match`. `Accept-Encoding: zstd` and `gzip` are understood.

This page is made from [api.json](api.json) (OpenAPI 3.1), which a running server answers as `/api/v1/openapi.json`.
"""  # noqa: E501  a row of a table is one line


def openapi() -> dict[str, Any]:
    made: dict[str, Any] = described(Recordings([Place(Path())]))
    return made


def markdown(document: dict[str, Any]) -> str:
    """One section for each endpoint."""
    return _HEAD + "".join(f"\n{part}" for path, item in document["paths"].items() for part in _path(path, item))


def _path(path: str, item: dict[str, Any]) -> Iterator[str]:
    for method, operation in item.items():
        yield f"## {method.upper()} {path}\n\n"[:-1]
        said = " ".join(str(operation.get("description", "")).split())
        answer = operation["responses"].get("200", {}).get("description", "")
        yield f"{said} {answer}".strip() + "\n"
        rows = [_row(each) for each in operation.get("parameters", [])]
        if rows:
            yield "| parameter | | default |\n|---|---|---|\n" + "".join(rows)


def _row(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    said = str(parameter.get("description") or schema.get("description") or "").replace("|", "\\|")
    choices = schema.get("enum") or next((each["enum"] for each in schema.get("anyOf", []) if "enum" in each), None)
    if choices:
        said += f" One of {', '.join(map(str, choices))}."
    default = "required" if parameter.get("required") else json.dumps(schema["default"]) if "default" in schema else ""
    return f"| `{parameter['name']}` | {said.strip()} | {'' if default == 'null' else default} |\n"


def write(folder: Path) -> None:
    document = openapi()
    (folder / "api.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "api.md").write_text(markdown(document))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m zombiescope.web.description", description="Writes api.json and api.md, which describe the API."
    )
    parser.add_argument("docs", metavar="DOCS", type=Path)
    write(parser.parse_args().docs)


if __name__ == "__main__":
    main()

"""`make bench`: runs every benchmark, prints tables and writes them into docs/data/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    agent,
    audit,
    churn,
    cost,
    diagnosis,
    doctor,
    field,
    fleet,
    import_perf,
    import_text,
    loss,
    memory,
    page,
    python,
    size,
    starvation,
    steady,
    tick,
    views,
    width,
)
from benchmarks.table import Row, as_markdown

PAGE = Path(__file__).parents[1] / "docs" / "data" / "benchmarks.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

BENCHMARKS: dict[str, tuple[str, Callable[[float], list[Row]], float]] = {
    "cost": ("CPU, against perf record and mpstat", cost.measure, 60),
    "steady": ("Steady cost, by process", steady.measure, 60),
    "width": ("192 busy cores, fed", width.measure, 60),
    "agent": ("The agent, against the recorder alone", agent.measure, 60),
    "memory": ("Memory", memory.measure, 600),
    "size": ("Disk", size.measure, 60),
    "tick": ("Independence of the number of cgroups", tick.measure, 30),
    "loss": ("Records lost", loss.measure, 20),
    "audit": ("Audit of a large root", audit.measure, 10),
    "import": ("Import of perf.data, against perf script", import_perf.measure, 0),
    "import-text": ("Import of perf script text", import_text.measure, 0),
    "views": ("Views of twelve hours of 96 cores", views.measure, 43_200),
    "page": ("The web page in a browser", page.measure, 43_200),
    "diagnosis": ("Diagnosis of twelve hours of 96 cores, and of half an hour of two", diagnosis.measure, 43_200),
    "fleet": ("A fleet reported", fleet.measure, 0),
    "doctor": ("Live diagnosis", doctor.measure, 60),
    "field": ("Wide nodes: the rtnl lock, many threads, floods of the kernel log", field.measure, 10),
    "python": ("Python from outside, against py-spy", python.measure, 60),
    "soak": ("An hour", memory.measure, 3600),
    "churn": ("Hours of churn", churn.measure, 7200),
    "starvation": ("Starvation", starvation.measure, 20),
}
SOAKS = {"soak", "churn", "starvation", "field"}
"""What takes long, and is run when it is named; docs/data/reliability.md has the figures of the last two."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; all but {', '.join(sorted(SOAKS))} when none is named"
    )
    parser.add_argument("--seconds", type=float, help="how long each measures; of views, how much is recorded")
    options = parser.parse_args()
    names = options.names or [name for name in BENCHMARKS if name not in SOAKS]
    if os.geteuid() != 0 and not set(names) <= {"views", "page", "fleet"}:
        print("the benchmarks need root: they compare with system-wide perf and make cgroups", file=sys.stderr)
        return 1
    tables = {}
    for name in names:
        title, measure, seconds = BENCHMARKS[name]
        rows = measure(options.seconds or seconds)
        tables[title] = as_markdown(title, rows)
        print(tables[title], flush=True)
    if options.seconds is None and not set(names) & {"churn", "starvation"}:
        _write_page(tables, everything=not options.names)
    return 0


def _write_page(tables: dict[str, str], *, everything: bool) -> None:
    """Replaces the measured part of the page, or the tables that were measured now."""
    here = f"{os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}"
    head = f"Measured on {time.strftime('%Y-%m-%d')}: {here}.\n"
    before, _, rest = PAGE.read_text().partition(BEGIN)
    measured, _, after = rest.partition(END)
    if not everything:
        head, *kept = measured.strip("\n").split("\n### ")
        older = {text.partition("\n")[0]: f"### {text.rstrip()}\n" for text in kept}
        tables = older | tables
    PAGE.write_text(f"{before}{BEGIN}\n{head.rstrip()}\n\n" + "\n".join(tables.values()) + f"{END}{after}")


if __name__ == "__main__":
    raise SystemExit(main())

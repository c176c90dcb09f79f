"""docs/metrics.md, made of the declarations: `python -m zombiescope.agent.metrics.reference > docs/metrics.md`."""

from __future__ import annotations

import argparse
import sys

from zombiescope.agent.parts import families
from zombiescope.agent.tally import Family

_HEAD = """# Metrics

What `zombiescope agent` exports at `/metrics`, as OpenMetrics or as Prometheus' text. The work of each second is
done on the node: a scrape every minute misses nothing. Nothing here repeats node_exporter.

- **Counters** begin at 0 when the agent starts, as Prometheus expects. When only its services were started again they
  continue from what was already counted, so no second counts twice.
- **What was not measured has no line.** A missing line is not a 0: `zombiescope_source_missing` and
  `zombiescope_gap_seconds_total` say why.
- **The number of series is bounded** whatever names the processes, units and containers of the node have: the last
  column says how. What is beyond a bound is counted together under the value `other`; names are cut at 128 characters.
- `instance` is what your Prometheus calls the node.

[The agent](agent.md) says how they are scraped; deploy/prometheus has alerts and recording rules, deploy/grafana a
dashboard.

| metric | | what it says | labels | series |
|---|---|---|---|---|
"""


def document() -> str:
    return _HEAD + "".join(map(_line, families()))


def _line(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    series = (
        f"{family.per}; at most {family.most}"
        if family.labels
        else f"{len(family.buckets) + 3}"
        if family.buckets
        else "1"
    )
    return f"| `{family.name}` | {family.kind} | {family.doc} | {labels} | {series} |\n"


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m zombiescope.agent.metrics.reference", description="Prints the reference of all metrics."
    ).parse_args()
    sys.stdout.write(document())


if __name__ == "__main__":
    main()

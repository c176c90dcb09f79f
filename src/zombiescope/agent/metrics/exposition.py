"""The tally as text: OpenMetrics where the client asks for it, else Prometheus' own. prometheus-client writes both."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from zombiescope.agent.tally import Family, Tally


class TallyCollector:
    """Makes the families anew at each scrape: nothing is kept between two."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        for family in self._tally.families.values():
            values = self._tally.values(family.name)
            if values or not family.labels:
                yield _metric(family, values)


def _metric(family: Family, values: dict[tuple[str, ...], float]) -> Metric:
    if family.kind == "histogram":
        return _histogram(family, values)
    made: CounterMetricFamily | GaugeMetricFamily
    if family.kind == "counter":
        made = CounterMetricFamily(family.name.removesuffix("_total"), family.doc, labels=family.labels)
        values = values or ({} if family.labels else {(): 0.0})
    else:
        made = GaugeMetricFamily(family.name, family.doc, labels=family.labels)
    for labels, value in sorted(values.items()):
        made.add_metric(labels, value)
    return made


def _histogram(family: Family, values: dict[tuple[str, ...], float]) -> Metric:
    made = HistogramMetricFamily(family.name, family.doc)
    counts = [(str(float(end)), values.get((f"{end:g}",), 0.0)) for end in family.buckets]
    made.add_metric((), [*counts, ("+Inf", values.get(("+Inf",), 0.0))], values.get(("sum",), 0.0))
    return made


def registry(tally: Tally) -> CollectorRegistry:
    made = CollectorRegistry(auto_describe=False)
    made.register(TallyCollector(tally))
    return made


def page(registered: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """(the text, its content type)."""
    encode, content_type = choose_encoder(accept)
    return encode(registered), content_type

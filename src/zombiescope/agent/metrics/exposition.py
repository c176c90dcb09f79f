"""The tally as text: OpenMetrics where the client asks for it, else Prometheus' own. prometheus-client writes both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Exemplar, Sample

from zombiescope.agent import tally
from zombiescope.agent.tally import Family, Tally


class TallyCollector:
    """Makes the families anew at each scrape: nothing is kept between two."""

    def __init__(self, counted: Tally) -> None:
        self._tally = counted

    def collect(self) -> Iterator[Metric]:
        for family in self._tally.families.values():
            values = self._tally.values(family.name)
            if values or not family.labels:
                made = _metric(family, values)
                _exemplify(made, self._tally.exemplars(family.name), family)
                yield made
                if family.former is not None:
                    doc = f"{family.name} under its former name, which the next version drops."
                    yield _metric(replace(family, name=family.former, doc=doc), values)


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


def _exemplify(made: Metric, known: dict[tuple[str, ...], tally.Exemplar], family: Family) -> None:
    """On the samples of a counter; only OpenMetrics shows them."""
    for place, sample in enumerate(made.samples if known else ()):
        example = known.get(tuple(sample.labels[label] for label in family.labels))
        if example is not None:
            shown = Exemplar(dict(example.labels), 1.0, example.at_s)
            made.samples[place] = Sample(sample.name, sample.labels, sample.value, sample.timestamp, shown)


def _histogram(family: Family, values: dict[tuple[str, ...], float]) -> Metric:
    made = HistogramMetricFamily(family.name, family.doc)
    counts = [(str(float(end)), values.get((f"{end:g}",), 0.0)) for end in family.buckets]
    made.add_metric((), [*counts, ("+Inf", values.get(("+Inf",), 0.0))], values.get(("sum",), 0.0))
    return made


def registry(counted: Tally) -> CollectorRegistry:
    made = CollectorRegistry(auto_describe=False)
    made.register(TallyCollector(counted))
    return made


def page(registered: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """(the text, its content type)."""
    encode, content_type = choose_encoder(accept)
    return encode(registered), content_type

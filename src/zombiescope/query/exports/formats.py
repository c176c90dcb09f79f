"""Which formats there are, and who writes them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Literal

if TYPE_CHECKING:
    from zombiescope.query.exports.samples import ExportSamples


class Format(StrEnum):
    COLLAPSED = "collapsed"
    PPROF = "pprof"
    OTLP = "otlp"
    SPEEDSCOPE = "speedscope"
    FIREFOX = "firefox"
    PERF_SCRIPT = "perf-script"
    PERFETTO = "perfetto"


BINARY = (Format.PPROF, Format.OTLP, Format.PERFETTO)
EVERY_EVENT = (Format.PERF_SCRIPT, Format.OTLP)
"""Formats that say of each sample which event it is of."""

By = Literal["core", "owner", "unit", "pod", "container", "image", "process", "thread", "comm"]
Write = Callable[["ExportSamples", BinaryIO], None]


def writer(format_: Format, title: str, *, bare: bool = False, annotate: bool = False, by: By | None = None) -> Write:
    """`title`, `bare`, `annotate` and `by` are for the formats that know of them."""
    if format_ is Format.COLLAPSED:
        from zombiescope.query.exports import collapsed

        first = None if bare else "comm" if by is None or by == "core" else by
        return lambda samples, out: collapsed.write(samples, out, first=first, annotate=annotate)
    if format_ is Format.SPEEDSCOPE:
        from zombiescope.query.exports import speedscope

        return lambda samples, out: speedscope.write(samples, out, by=by or "core", title=title)
    if format_ is Format.FIREFOX:
        from zombiescope.query.exports import firefox

        return lambda samples, out: firefox.write(samples, out, title=title)
    if format_ is Format.PPROF:
        from zombiescope.query.exports import pprof

        return pprof.write
    if format_ is Format.PERFETTO:
        from zombiescope.query.exports import perfetto

        return perfetto.write
    if format_ is Format.OTLP:
        from zombiescope.query.exports import otlp

        return otlp.write
    from zombiescope.query.exports import perf_script

    return perf_script.write

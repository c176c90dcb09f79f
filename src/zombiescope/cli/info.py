"""`zombiescope info`: what is in a recording."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from zombiescope.cli.output import Json, console, examples, print_document, table
from zombiescope.cli.quantities import human_bytes, human_count, human_s
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.cli.window import Utc, clock, zone_of
from zombiescope.kernel.cpu import format_list
from zombiescope.questions.window import Window

if TYPE_CHECKING:
    from datetime import tzinfo

    from zombiescope.query.info import Info

EXAMPLES = examples(
    "info",
    "info incident.zscope",
    "info ./rec --json | jq .gaps",
)

_GAPS_SHOWN = 10


def command(directory: Dir = None, utc: Utc = False, node: Node = None, json_: Json = False) -> None:
    """Describe a recording: node, time span, tables, size and gaps."""
    with opened(directory, node) as recording:
        if json_:
            from zombiescope.documents.info import answer

            print_document("info", answer(recording))
        else:
            from zombiescope.query.info import info

            _print(info(recording), zone_of(recording.node, utc))


def _print(found: Info, zone: tzinfo) -> None:
    out = console()
    span_s = (found.end_us - found.start_us) / 1e6
    out.print(found.node, style="bold")
    facts = table("", " ", wraps=" ")
    facts.show_header = False
    facts.add_row("kernel", f"{found.kernel or '?'} on {found.machine or '?'}, {found.os or '?'}")
    cores = str(found.cpus if found.cpus is not None else "?")
    apart = f"; {format_list(found.left_out)} left out of sampling" if found.left_out else ""
    facts.add_row("cores", cores + apart)
    facts.add_row("GPUs", _gpus(found))
    facts.add_row("labels", ", ".join(f"{key}={value}" for key, value in found.labels.items()) or "none")
    facts.add_row("window", f"{Window(found.start_us, found.end_us, zone).heading()}, {human_s(span_s)}")
    facts.add_row("boots", str(len(found.boots)))
    facts.add_row("samples", human_count(found.samples))
    parts = f"{found.parquet_parts} Parquet parts, {found.log_segments} log segments"
    facts.add_row("on disk", f"{human_bytes(found.bytes)} in {parts}")
    out.print(facts)
    rows = ", ".join(f"{name} {human_count(count)}" for name, count in found.tables.items() if count)
    out.print(f"rows: {rows or 'none'}")
    _print_blindness(found, zone)


def _gpus(found: Info) -> str:
    """Equal ones together: 8 x NVIDIA H200, driver 570.86.15."""
    if not found.gpus:
        return "none" if found.gpu_driver is None else f"none was read, though driver {found.gpu_driver} was loaded"
    kinds = ", ".join(f"{count} x {name}" for name, count in Counter(found.gpus).items())
    return f"{kinds}, driver {found.gpu_driver or '?'}"


def _print_blindness(found: Info, zone: tzinfo) -> None:
    out = console()
    for gap in found.gaps[:_GAPS_SHOWN]:
        span = f"{clock(gap.from_us, zone)} – {clock(gap.to_us, zone)}"
        out.print(f"blind {span}  {gap.source}: {gap.why}", style="yellow")
    if len(found.gaps) > _GAPS_SHOWN:
        out.print(f"and {len(found.gaps) - _GAPS_SHOWN} more gaps; --json has them all", style="yellow")
    for item in found.missing:
        out.print(f"missing {item.get('source')}: {item.get('why')}; {item.get('grant')}", style="yellow")
    for damage in found.damage:
        out.print(f"damaged {damage.file}: {damage.what}", style="red")

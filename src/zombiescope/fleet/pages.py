"""A report as one HTML file: nothing is loaded from anywhere, and whatever somebody else named is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from zombiescope.base.text import printable
from zombiescope.fleet.digest import lost, moment, remarks
from zombiescope.fleet.flames import FleetFlames
from zombiescope.fleet.labels import Group
from zombiescope.fleet.report import FleetReport
from zombiescope.query import svg

MOST_NODES, MOST_ROWS = 200, 20
_STYLE = """
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;margin-bottom:.2rem}h2{font-size:1.05rem;margin-top:2rem}.lead{font-size:1.1rem}.faint{opacity:.7}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .8rem .2rem 0;
border-bottom:1px solid #8883;
vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.sick{color:#c62828}.found{font-weight:600}
svg{max-width:100%;height:auto}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}"""

_STATES = {
    "sick": "sick", "healthy": "", "not_judged": "not judged", "blind": "recorded nothing", "copy": "a copy",
}  # fmt: skip

Cell = str | int | float | None


def page(report: FleetReport, flames: FleetFlames | None = None) -> str:
    body = "\n".join(_sections(report, flames))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text('Fleet report of ' + report.place)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _sections(report: FleetReport, flames: FleetFlames | None) -> Iterator[str]:
    yield f"<h1>{text(report.place)}</h1>"
    yield f'<p class="faint">{moment(report.start_us)} to {moment(report.end_us)}; {len(report.nodes):,} nodes</p>'
    yield f'<p class="lead">{text(report.headline)}.</p><p>{text(lost(report))}.</p>'
    yield from _shared(report)
    yield from _causes(report)
    yield from _began(report)
    yield from _clusters(report)
    yield from _next(report)
    if flames is not None and flames.tree.total:
        yield f"<h2>Flame graph</h2>{svg.flamegraph(flames.tree, printable(flames.title))}"
    yield from _nodes(report)
    yield from _unread(report)


def _shared(report: FleetReport) -> Iterator[str]:
    yield "<h2>What the sick nodes share</h2>"
    groups = [group for group in report.by.groups if group.significant or group in report.by.groups[:5]]
    rows = [
        (("+ " if group in report.by.found else "") + group.full_text + (" (spared)" if group.spared else ""),
         group.cause or "any incident",
         f"{group.affected:,} of {group.nodes:,}", f"{group.rest_affected:,} of {group.rest_nodes:,}", group.not_judged,
         "∞" if group.lift is None else f"{group.lift:,.1f}", f"{group.p_corrected:.2g}",
         group.because or ("" if not group.explained_by else "explained by " + explained(group)))
        for group in [*groups[:MOST_ROWS], *(step for step in report.by.course if step.significant)]
    ]  # fmt: skip
    found = "+ marks an independent finding" if report.by.found else "no statistically significant difference"
    yield f'<p class="faint">{report.by.tried:,} groups of nodes were tried; {found}.</p>'
    yield table(
        ("nodes with", "cause", "affected", "others", "not judged", "lift", "p, corrected", ""), rows, numbers=(4, 5, 6)
    )
    units = [share for share in report.units if share.significant]
    if units:
        shares = [(share.unit, f"{share.sick:,} of {share.sick_nodes:,}",
                   f"{share.healthy:,} of {share.healthy_nodes:,}",
                   share.not_judged, f"{share.p_corrected:.2g}") for share in units]  # fmt: skip
        yield "<h2>Units of sick nodes that healthy ones lack</h2>" + table(
            ("unit", "sick", "healthy", "not judged", "p, corrected"), shares, (3, 4)
        )


def explained(group: Group) -> str:
    return " and ".join(value if " " in value else f"{label}={value}" for label, value in group.explained_by or ())


def _causes(report: FleetReport) -> Iterator[str]:
    if report.causes:
        rows = [(cause.name, cause.nodes, cause.incidents, f"{cause.job_hours_lost:,.2f}",
                 None if cause.gpu_seconds_lost is None else f"{cause.gpu_seconds_lost:,.0f}", moment(cause.first_us))
                for cause in report.causes[:MOST_ROWS]]  # fmt: skip
        heads = ("cause", "nodes", "incidents", "job-hours lost", "GPU-seconds lost", "first")
        yield "<h2>Causes</h2>" + table(heads, rows, numbers=(1, 2, 3, 4))


def _began(report: FleetReport) -> Iterator[str]:
    rows: list[Sequence[Cell]] = [
        (f"{each.label}={each.value} arrived", moment(each.first_us), f"{each.sick_after:,} sick only after",
         f"{each.sick_before:,} only before") for each in report.arrivals if each.significant
    ]  # fmt: skip
    rows += [
        ("many nodes fell ill", moment(each.from_us), f"{each.nodes:,} of {each.of_nodes:,}", "within two hours")
        for each in report.onsets
    ]
    if rows:
        yield "<h2>What began</h2>" + table(("what", "when", "", ""), rows)


def _clusters(report: FleetReport) -> Iterator[str]:
    if report.clusters:
        rows = [(" › ".join(each.path[-5:]), each.nodes, each.incidents, ", ".join(name for name, _ in each.patterns))
                for each in report.clusters]  # fmt: skip
        yield "<h2>Like incidents</h2>" + table(("kernel path", "nodes", "incidents", "patterns"), rows, numbers=(1, 2))


def _next(report: FleetReport) -> Iterator[str]:
    if report.outlook.nodes:
        rows = [(each.node, each.dying, f"{each.per_hour:,.0f}", None if each.hours is None else f"{each.hours:,.1f} h")
                for each in report.outlook.nodes[:MOST_ROWS]]  # fmt: skip
        yield "<h2>Who is next</h2>" + table(
            ("node", "dying cgroups", "more an hour", "sick in"), rows, numbers=(1, 2, 3)
        )


def _nodes(report: FleetReport) -> Iterator[str]:
    sick = report.sick
    ranked = sorted(report.nodes, key=lambda node: (node.node not in sick, -(node.saturated_s or 0), node.node))
    rows = [
        (node.node, _STATES[report.state(node)], node.labels.get("image"), node.labels.get("zone"),
         node.labels.get("instance_type"), node.kernel,
         None if node.saturated_s is None else f"{node.saturated_s:,.0f}",
         node.dying, None if node.dying_per_hour is None else f"{node.dying_per_hour:,.1f}", node.restarts)
        for node in ranked[:MOST_NODES]
    ]  # fmt: skip
    more = f", the first {MOST_NODES} of {len(ranked):,}" if len(ranked) > MOST_NODES else ""
    heads = ("node", "", "image", "zone", "type", "kernel", "core-seconds lost", "dying", "an hour", "restarts")
    yield f"<h2>Nodes{more}</h2>" + table(heads, rows, numbers=(6, 7, 8, 9))


def _unread(report: FleetReport) -> Iterator[str]:
    for remark in remarks(report):
        yield f'<p class="faint">{text(remark)}.</p>'
    if report.damage:
        rows = [(node, day, what) for node, day, what in report.damage[:MOST_ROWS]]
        yield f"<h2>Not read, {len(report.damage):,}</h2>" + table(("node", "day", "what"), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], numbers: Sequence[int] = ()) -> str:
    def row(cells: Sequence[Cell], tag: str) -> str:
        made = (
            f"<{tag}{' class=n' if place in numbers else ''}>{text(cell)}</{tag}>" for place, cell in enumerate(cells)
        )
        return f"<tr>{''.join(made)}</tr>"

    return f"<table>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


def text(value: Cell) -> str:
    """Escaped; what was not measured is a question mark."""
    if value is None:
        return "?"
    return html.escape(printable(f"{value:,}" if isinstance(value, int) else str(value)))

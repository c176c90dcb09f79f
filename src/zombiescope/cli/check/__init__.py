"""`zombiescope check`: ten seconds of this node on one screen.

window.py       a private recorder for the window, and what is watched beside it
screen.py       the page: the verdict, the panels, how they share the room
panels.py       one panel per subject
core_strips.py  the panel of the cores
styles.py       how severities look
document.py     the JSON document
"""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.cli.output import Json, console, examples, print_document
from zombiescope.cli.quantities import duration_s, within
from zombiescope.cli.window import Utc

EXAMPLES = examples(
    "check                        # ten seconds, then one screen",
    "check --for 1m",
    "check --fail-on critical     # exit 3 only for what is critical",
    "check --json | jq '.findings[0]'",
)

_FOUND = 3


def _for_s(text: str) -> float:
    return within(duration_s(text), 1, 600, "1s to 10m")


def _severity(text: str) -> str:
    from zombiescope.base.severity import SEVERITIES

    if text not in SEVERITIES:
        raise typer.BadParameter(f"{text!r} is not a severity; it is {', '.join(SEVERITIES)}")
    return text


For = Annotated[float, typer.Option("--for", parser=_for_s, metavar="DURATION", help="How long to examine the node.")]
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        parser=_severity,
        metavar="SEVERITY",
        help="Exit 3 when something this bad or worse is found: info, warning or critical.",
    ),
]


def command(
    # The default stands as a person would type it: typer sends it through the same parser.
    for_s: For = "10s",  # type: ignore[assignment]
    fail_on: FailOn = "warning",
    utc: Utc = False,
    json_: Json = False,
) -> int:
    """Examine this node for ten seconds, on one screen.

    Each core against the average that hides it, stalls, pressure, cgroups, network, units, and the worst audit
    findings.

    Needs no recording. Without root it shows what it can read, and lists what is missing.
    """
    from zombiescope.base.severity import SEVERITIES, rank
    from zombiescope.cli.check.window import look

    check = look(for_s)
    if json_:
        from zombiescope.cli.check.document import document

        print_document("check", document(check))
    else:
        from zombiescope.cli.check.screen import show

        show(check, console(), utc=utc)
    worst = max((rank(finding.severity) for finding in check.all_findings()), default=-1)
    return _FOUND if worst >= SEVERITIES.index(fail_on) else 0

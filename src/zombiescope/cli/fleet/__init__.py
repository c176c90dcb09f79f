"""`zombiescope fleet`: many nodes.

asking.py      ROOT and the options that all of them share; progress; the statistics
report.py      what the sick nodes share
top.py         causes by what they cost
job.py         one distributed job, and its late rank
search.py      where else does this occur
flamegraph.py  stacks of all nodes
digest.py      a week in Markdown or HTML
"""

from __future__ import annotations

from zombiescope.cli.application import Application
from zombiescope.cli.fleet import digest, flamegraph, job, report, search, top
from zombiescope.cli.output import examples

EXAMPLES = examples(
    "fleet report ./fleet                        # what do the sick nodes share",
    "fleet report s3://recordings/prod --last 7d",
    "fleet top ./fleet --by gpu-seconds",
    "fleet job ./fleet --job 4711.0              # which rank held the others up",
    "fleet search ./fleet mem_cgroup_iter",
    "fleet flamegraph ./fleet --against-healthy -o sick.svg",
    "fleet digest ./fleet -o week.md",
)

app = Application(help="Compare many nodes: what do the sick ones share?", epilog=EXAMPLES, no_args_is_help=True)
app.command("report", epilog=report.EXAMPLES)(report.command)
app.command("top", epilog=top.EXAMPLES)(top.command)
app.command("job", epilog=job.EXAMPLES)(job.command)
app.command("search", epilog=search.EXAMPLES)(search.command)
app.command("flamegraph", epilog=flamegraph.EXAMPLES)(flamegraph.command)
app.command("digest", epilog=digest.EXAMPLES)(digest.command)

"""`zombiescope lab`: real faults on a real kernel, and a throw-away machine to try things on.

scenarios.py  list and run
scenario_run.py  one scenario: started, recorded, diagnosed, ended, compared
score.py       all of them, and the page of the result
widen.py       a recorded fault on a node of many cores
demo.py        the story in two minutes
node.py        a whole machine under QEMU
clean.py       what a kill -9 left, and cached images
"""

from __future__ import annotations

from zombiescope.cli.application import Application
from zombiescope.cli.lab import clean, demo, node, scenarios, score, widen
from zombiescope.cli.output import examples

EXAMPLES = examples(
    "lab list                     # what can be done to this machine",
    "lab run smaps-reader         # says what it will do, and asks",
    "lab score --page docs/data/lab-runs.md",
    "lab widen fork.zscope --onto train.zscope --cores 96 -o wide",
    "lab demo                     # leak, diagnosis, repair, check",
    "lab node                     # a shell in a disposable machine",
    "lab clean",
)

app = Application(
    help="Reproduce real faults on a real kernel, or in a disposable machine.", epilog=EXAMPLES, no_args_is_help=True
)
app.command("list", epilog=scenarios.EXAMPLES)(scenarios.list_)
app.command("run", epilog=scenarios.EXAMPLES)(scenarios.run)
app.command("score", epilog=score.EXAMPLES)(score.command)
app.command("widen", epilog=widen.EXAMPLES)(widen.command)
app.command("demo", epilog=demo.EXAMPLES)(demo.command)
app.command("node", epilog=node.EXAMPLES, context_settings={"allow_interspersed_args": False})(node.node)
app.command("clean", epilog=clean.EXAMPLES)(clean.command)

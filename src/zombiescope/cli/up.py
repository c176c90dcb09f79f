"""`zombiescope up`: the one command to start with: the recorder in the foreground, a doctor and a page beside it."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.cli import page_process, record
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import examples, note
from zombiescope.cli.quantities import human_bytes, human_s
from zombiescope.cli.serve import ListenOption, OpenOption, TokenOption
from zombiescope.cli.typed import called_elsewhere, demo
from zombiescope.store import locate
from zombiescope.store.core_lists import ISOLATED

EXAMPLES = examples(
    "up                # then open the address that it prints",
    "up --open         # in a browser, at once",
    "up /data/flight   # into a directory of your choice",
)


def command(
    directory: record.Dir = None,
    for_s: record.For = None,
    open_: OpenOption = False,
    listen: ListenOption = None,
    token: TokenOption = True,
    read_by_all: record.ReadByAll = False,
    leave_out_cores: record.LeaveOutCores = ISOLATED,
    python: record.Python = True,
    whole_stacks: record.WholeStacks = True,
    schedule: record.Schedule = True,
    closer_looks: record.CloserLooks = True,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Start the web page, or do not.")] = True,
) -> None:
    """Record this node, diagnose it live, and show it on a web page.

    When a core is starved, a task keeps the kernel busy or the kernel reports an error, the diagnosis appears here
    within seconds.

    Keeps the last 12 hours, at most 2 GB. Ctrl-C stops it.
    """
    if recorder := locate.running_recorder():
        raise Failure(
            f"a recorder (pid {recorder.pid}) already records this node into {recorder.recording}",
            "watch it with 'zombiescope serve' or 'zombiescope top', record another one with 'zombiescope record DIR', "
            "or stop it first",
        )
    place = record.writable_dir(directory)
    config = record.configuration(
        dir=place,
        for_s=for_s,
        read_by_all=read_by_all,
        leave_out_cores=leave_out_cores,
        python=python,
        whole_stacks=whole_stacks,
        schedule=schedule,
        closer_looks=closer_looks,
        diagnose=True,
        demo=demo(),
    )
    note(f"The last {human_s(config['keep_s'])} are kept, at most {human_bytes(config['max_bytes'])}.")
    note(f"In another terminal, live: {called_elsewhere()} top")
    note(f"and the past:              {called_elsewhere()} cores --last 5m")
    note("Ctrl-C stops it.")
    if page:
        config["page"] = page_process.prepared(listen, open_=open_, token=token)
    record.become_recorder(config)

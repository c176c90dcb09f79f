"""`zombiescope record`: checks its options, then becomes the recorder.

The recorder replaces this process (execve), so that it does not carry the command line's modules in memory for
weeks.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from zombiescope.base import interrupt
from zombiescope.base import python as _python
from zombiescope.base.time import AUTO, CPU_CLOCK, CYCLES
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, examples
from zombiescope.cli.quantities import duration_s, size_bytes, within
from zombiescope.cli.typed import as_root, called
from zombiescope.store import locate
from zombiescope.store.core_lists import ISOLATED, NONE

EXAMPLES = examples(
    "record                         # until Ctrl-C",
    "record ./rec --for 20s --json  # then a summary",
    "record --interval 100ms --hz 499",
    "record --leave-out-cores isolated",
    "record --keep 3d --max-bytes 20GB --label zone=us-east-1a",
)

INTERVAL_S = (0.1, 60.0)
HZ = (1, 999)


def _interval_s(text: str) -> float:
    return within(duration_s(text), *INTERVAL_S, "100ms to 60s")


def _positive_s(text: str) -> float:
    return within(duration_s(text), 0.001, 1e9, "longer than nothing")


def _segment_s(text: str) -> float:
    return within(duration_s(text), 5, 3600, "5s to 1h")


def _compact_every_s(text: str) -> float:
    return within(duration_s(text), 60, 86400, "1m to 1d")


def _max_bytes(text: str) -> int:
    return round(within(size_bytes(text), 10**6, 10**18, "at least 1MB"))


def _cores(text: str) -> str:
    if text and text not in (ISOLATED, NONE) and not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        raise typer.BadParameter(f"{text!r} is not a list of cores; write it as 2-5,8, isolated or none")
    return text


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter(f"{text!r} is not a label; write it as zone=us-east-1a")
    return key, value


Dir = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR",
        show_default=False,
        help="Where to record. Default: $ZOMBIESCOPE_DIR, else /var/lib/zombiescope, or "
        "~/.local/state/zombiescope where that may not be written.",
    ),
]
For = Annotated[
    float | None,
    typer.Option("--for", parser=_positive_s, metavar="DURATION", help="Stop after this long. Default: until stopped."),
]
Hz = Annotated[
    int | None,
    typer.Option(
        "--hz",
        min=HZ[0],
        max=HZ[1],
        metavar="N",
        help="Stack samples per second and core.",
        show_default="99; 49 from 128 cores on",
    ),
]
Interval = Annotated[
    float,
    typer.Option("--interval", parser=_interval_s, metavar="DURATION", help="How often counters are read."),
]
Segment = Annotated[
    float, typer.Option("--segment", parser=_segment_s, metavar="DURATION", help="Length of one log file.")
]
Keep = Annotated[
    float,
    typer.Option("--keep", parser=_positive_s, metavar="DURATION", help="Delete what is older than this."),
]
MaxBytes = Annotated[
    int, typer.Option("--max-bytes", parser=_max_bytes, metavar="SIZE", help="Never use more disk than this.")
]
Label = Annotated[
    list[Any] | None,
    typer.Option("--label", parser=_label, metavar="KEY=VALUE", help="Kept with the recording; may be repeated."),
]
Event = Annotated[
    str,
    typer.Option(
        "--event",
        metavar="EVENT",
        help="What makes a sample: cpu-clock (counts are time) or cycles (sees code with interrupts off, and wakes no "
        "idle core; needs a PMU). Default: cycles from 128 cores on, where there is a PMU and no nohz_full.",
        show_default=False,
    ),
]
ReadByAll = Annotated[
    bool,
    typer.Option(
        "--read-by-all",
        help="Every user of this machine may read the recording: command lines, paths and stacks of all users. Without "
        "it the group zombiescope may.",
    ),
]
Node = Annotated[
    str | None,
    typer.Option("--node", metavar="NAME", help="Record under this name. Default: the host's.", show_default=False),
]
CompactEvery = Annotated[
    float,
    typer.Option(
        "--compact-every",
        parser=_compact_every_s,
        metavar="DURATION",
        help="How often the log is turned into Parquet.",
    ),
]


LeaveOutCores = Annotated[
    str,
    typer.Option(
        "--leave-out-cores",
        parser=_cores,
        metavar="LIST",
        help="Cores not to sample: 2-5,8, or 'isolated' for those that the kernel keeps apart (isolcpus, nohz_full), "
        "or 'none'.",
    ),
]


Python = Annotated[
    bool,
    typer.Option(
        "--python/--no-python",
        help="Read Python stacks of hot processes, of those that wait and of those on a GPU, or do not.",
    ),
]
WholeStacks = Annotated[
    bool,
    typer.Option(
        "--whole-stacks/--no-whole-stacks",
        help="Copy some stacks of the hottest threads, to see callers in libraries without frame pointers.",
    ),
]

Schedule = Annotated[
    bool,
    typer.Option(
        "--schedule/--no-schedule",
        help="Keep the schedule of the cores that matter in rings, for who delayed whom, or do not.",
    ),
]

CloserLooks = Annotated[
    bool,
    typer.Option(
        "--closer-looks/--no-closer-looks",
        help="Follow the system calls of a suspect that no pattern explains, for one second, or do not.",
    ),
]


def command(
    directory: Dir = None,
    for_s: For = None,
    hz: Hz = None,
    # These defaults stand as a person would type them: typer sends them through the same parser.
    interval_s: Interval = "1s",  # type: ignore[assignment]
    segment_s: Segment = "120s",  # type: ignore[assignment]
    keep_s: Keep = "12h",  # type: ignore[assignment]
    max_bytes: MaxBytes = "2GB",  # type: ignore[assignment]
    compact_every_s: CompactEvery = "15m",  # type: ignore[assignment]
    labels: Label = None,
    event: Event = AUTO,
    node: Node = None,
    read_by_all: ReadByAll = False,
    leave_out_cores: LeaveOutCores = ISOLATED,
    python: Python = True,
    whole_stacks: WholeStacks = True,
    schedule: Schedule = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing while recording.")] = False,
    json_: Json = False,
) -> None:
    """Record this node until stopped.

    Ctrl-C and SIGTERM end it cleanly. Sources that it may not read are listed with the command that grants each.
    """
    if event not in (AUTO, CPU_CLOCK, CYCLES):
        raise typer.BadParameter(f"--event {event!r} is not known; it is {CPU_CLOCK} or {CYCLES}")
    become_recorder(
        configuration(
            dir=writable_dir(directory),
            node=_node_name(node),
            for_s=for_s,
            hz=hz or 0,
            event=event,
            interval_s=interval_s,
            segment_s=segment_s,
            keep_s=keep_s,
            max_bytes=max_bytes,
            labels=dict(labels or ()),
            compact_every_s=compact_every_s,
            read_by_all=read_by_all,
            leave_out_cores=leave_out_cores,
            python=python,
            whole_stacks=whole_stacks,
            schedule=schedule,
            json=json_,
            quiet=quiet,
        )
    )


def configuration(**changes: Any) -> dict[str, Any]:
    """What the recorder is started with; whatever is not named stands as `record` without options has it."""
    return {
        "dir": None,
        "node": None,
        "for_s": None,
        "hz": 0,
        "event": AUTO,
        "interval_s": 1.0,
        "segment_s": 120.0,
        "keep_s": 12 * 3600.0,
        "max_bytes": 2 * 10**9,
        "labels": {},
        "compact_every_s": 900.0,
        "read_by_all": False,
        "leave_out_cores": ISOLATED,
        "python": True,
        "whole_stacks": True,
        "schedule": True,
        "closer_looks": True,
        "diagnose": False,
        "json": False,
        "quiet": False,
        "called": called(),
        "as_root": "" if os.geteuid() == 0 else as_root(),
    } | changes


def recorder_arguments(config: dict[str, Any]) -> list[str]:
    """The command line of the recorder process."""
    config = config | {"startup_cpu_s": time.process_time()}
    return _python.module("zombiescope.recorder", json.dumps(config))


def become_recorder(config: dict[str, Any]) -> NoReturn:
    """Replace this process by the recorder."""
    arguments = recorder_arguments(config)
    sys.stdout.flush()
    sys.stderr.flush()
    environment = _python.steady_environment() | {"ZOMBIESCOPE_CALLED": str(config["called"])}  # for the doctor
    interrupt.hold()
    try:
        os.execve(arguments[0], arguments, environment)  # noqa: S606  our own interpreter, our own module
    except OSError as error:
        why = f"{arguments[0]} cannot be executed by this user: {error.strerror}"
        raise Failure(why, "build .venv with an interpreter that may be: make setup PYTHON=/usr/bin/python3") from error
    finally:  # only where it did not become it
        interrupt.release()


def writable_dir(directory: str | None) -> str:
    """Where to record, made absolute; the recorder itself makes the directory and says what is wrong with
    it."""
    if directory is not None and "://" in directory:
        raise Failure(f"{directory}: a recorder writes to a disk of its node", "name a directory")
    path = Path(directory) if directory is not None else locate.default_dir_for_writing()
    if path.exists() and not path.is_dir():
        raise Failure(f"{path} is a file", "name a directory to record into")
    return str(path.absolute())


def _node_name(name: str | None) -> str | None:
    if name is not None and (not name or "/" in name or name.startswith(".")):
        raise typer.BadParameter(f"--node {name!r} cannot be the name of a directory")
    return name

"""`zombiescope lab node`: a throw-away machine to try things on."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, examples, note, print_document

if TYPE_CHECKING:
    from zombiescope.lab.node import LabNode, Plan

EXAMPLES = examples(
    "lab node                     # a shell in it; exit powers it off",
    "lab node -- systemctl list-units",
    "lab node --cgroup v1 --kernel bullseye -- zombiescope cgroups",
    "lab node --cgroup v1 --kernel ./bzImage -- zombiescope lab run zombie-tmpfs --yes",
    "lab node --cpus 16 -- zombiescope record --for 10s",
    "lab node --get /var/lib/zombiescope:out -- zombiescope record --for 30s",
)

_UNTIL_IT_ENDS_S = 30 * 86_400.0


def node(
    command: Annotated[list[str] | None, typer.Argument(help="What to run in it. Default: a shell.")] = None,
    cgroup: Annotated[Literal["v1", "v2"], typer.Option("--cgroup", help="Cgroup hierarchy of the node.")] = "v2",
    kernel: Annotated[
        str,
        typer.Option("--kernel", metavar="SUITE|FILE", help="bookworm, trixie, bullseye, or a kernel image (bzImage)."),
    ] = "bookworm",
    cpus: Annotated[
        int, typer.Option("--cpus", metavar="N", min=1, max=255, help="How many CPUs it has.", show_default=True)
    ] = 4,
    bare: Annotated[bool, typer.Option("--bare", help="Without zombiescope in it.")] = False,
    put: Annotated[
        list[str] | None, typer.Option("--put", metavar="FILE:PATH", help="Copy a file into it first; may be repeated.")
    ] = None,
    get: Annotated[
        list[str] | None,
        typer.Option("--get", metavar="PATH:DIR", help="Copy a file or tree out of it at the end; may be repeated."),
    ] = None,
    json_: Json = False,
) -> int:
    """Boot a whole node under QEMU, run a command in it, and discard it.

    Debian with systemd, D-Bus and four CPUs (or --cpus), zombiescope installed, no network. Returns the command's
    exit code.

    The image is built once, as root, from apt's Debian mirror, and kept in ~/.cache/zombiescope.
    """
    from zombiescope.lab.node import Plan

    # SIGTERM is to power the machine off as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return _booted(Plan(cgroup, kernel, not bare, cpus), command or [], _pairs(put), _pairs(get), json_)


def _pairs(given: list[str] | None) -> list[tuple[str, str]]:
    found = [one.partition(":") for one in given or []]
    for source, colon, target in found:
        if not source or not colon or not target:
            raise typer.BadParameter(f"{source}{colon}{target!r} is not FROM:TO")
    return [(source, target) for source, _, target in found]


def _booted(
    plan: Plan, command: list[str], put: list[tuple[str, str]], get: list[tuple[str, str]], as_document: bool
) -> int:
    from zombiescope.lab.node import boot

    if not command and (as_document or not sys.stdin.isatty()):
        raise Failure("a shell needs a terminal", "name a command: zombiescope lab node -- uname -a")
    files = [(Path(source).read_bytes(), target) for source, target in put]
    note("booting; the first time builds the image, which takes some minutes")
    with boot(plan, note) as booted:
        for data, target in files:
            booted.put(target, data)
        code = _told(booted, command) if as_document else _shown(booted, command)
        for source, target in get:
            note(f"copied out: {booted.get(source, Path(target))}")
    return code


def _told(booted: LabNode, command: list[str]) -> int:
    done = booted.run(*command, limit_s=_UNTIL_IT_ENDS_S)
    texts = {"stdout": done.text, "stderr": done.stderr.decode(errors="replace")}
    print_document("lab", {**_facts(booted), "command": command, "exit": done.exit, **texts})
    return done.exit or 0


def _facts(booted: LabNode) -> dict[str, Any]:
    plan, seconds = booted.plan, booted.boot_seconds
    facts = {
        "cgroup": plan.cgroup,
        "kernel": booted.image.release,
        "suite": plan.kernel,
        "cpus": plan.cpus,
        "kvm": booted.accelerated,
    }
    return {**facts, "boot_s": None if seconds is None else round(seconds, 1)}


def _shown(booted: LabNode, command: list[str]) -> int:
    note(f"up after {booted.boot_seconds:.0f} s: Linux {booted.image.release}, cgroup {booted.plan.cgroup}")
    if not command:
        from zombiescope.lab.node import attach

        return attach(booted)

    def show(stream: str, chunk: bytes) -> None:
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.buffer.write(chunk)
        target.flush()

    done = booted.run(*command, limit_s=_UNTIL_IT_ENDS_S, watch=show)
    if done.why:
        note(f"zombiescope lab: {done.why}")
    return done.exit or 0

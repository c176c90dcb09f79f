"""`zombiescope lab`: a throw-away machine to try things on."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import human_bytes

if TYPE_CHECKING:
    from zombiescope.lab.node import Node, Plan

EXAMPLES = examples(
    "lab node                     # a shell in it; exit powers it off",
    "lab node -- systemctl list-units",
    "lab node --cgroup v1 --kernel bullseye -- zombiescope cgroups",
    "lab clean                    # removes cached images",
)

app = typer.Typer(help="A throw-away machine to try things on.", epilog=EXAMPLES, no_args_is_help=True)

_UNTIL_IT_ENDS_S = 30 * 86_400.0


@app.command("node", epilog=EXAMPLES, context_settings={"allow_interspersed_args": False})
def node(
    command: Annotated[list[str] | None, typer.Argument(help="What to run in it; a shell if nothing.")] = None,
    cgroup: Annotated[Literal["v1", "v2"], typer.Option("--cgroup", help="Cgroup hierarchy of the node.")] = "v2",
    kernel: Annotated[str, typer.Option("--kernel", help="Debian suite: bookworm, trixie or bullseye.")] = "bookworm",
    bare: Annotated[bool, typer.Option("--bare", help="Without zombiescope in it.")] = False,
    json_: Json = False,
) -> int:
    """Boot a whole node under QEMU, run a command in it, and throw it away.

    Debian with systemd, D-Bus and four CPUs, zombiescope installed, and no network. The exit code is the command's.

    The image is built once, as root, from apt's own Debian mirror, and kept in ~/.cache/zombiescope.
    """
    from zombiescope.lab.failure import LabError
    from zombiescope.lab.node import Plan

    # SIGTERM is to power the machine off as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _booted(Plan(cgroup, kernel, not bare), command or [], json_)
    except LabError as error:
        raise Failure(str(error)) from error


def _booted(plan: Plan, command: list[str], as_document: bool) -> int:
    from zombiescope.lab.node import boot

    if not command and (as_document or not sys.stdin.isatty()):
        raise Failure("a shell needs a terminal", "name a command: zombiescope lab node -- uname -a")
    note("booting; the first time builds the image, which takes some minutes")
    with boot(plan, note) as booted:
        if as_document:
            done = booted.run(*command, limit_s=_UNTIL_IT_ENDS_S)
            texts = {"stdout": done.text, "stderr": done.stderr.decode(errors="replace")}
            print_document("lab", {**_facts(booted), "command": command, "exit": done.exit, **texts})
            return done.exit or 0
        note(f"up after {booted.boot_seconds:.0f} s: Linux {booted.image.release}, cgroup {plan.cgroup}")
        return _shown(booted, command)


def _facts(booted: Node) -> dict[str, Any]:
    plan, seconds = booted.plan, booted.boot_seconds
    facts = {
        "cgroup": plan.cgroup,
        "kernel": booted.image.release,
        "suite": plan.kernel,
        "kvm": booted.accelerated,
    }
    return {**facts, "boot_s": None if seconds is None else round(seconds, 1)}


def _shown(booted: Node, command: list[str]) -> int:
    if not command:
        from zombiescope.lab.terminal import attach

        return attach(booted)

    def show(stream: str, chunk: bytes) -> None:
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.buffer.write(chunk)
        target.flush()

    done = booted.run(*command, limit_s=_UNTIL_IT_ENDS_S, watch=show)
    if done.why:
        note(f"zombiescope lab: {done.why}")
    return done.exit or 0


@app.command("clean")
def clean(json_: Json = False) -> None:
    """Remove the cached images. Machines themselves leave nothing behind."""
    from zombiescope.lab import cache

    freed = cache.clear()
    if json_:
        print_document("lab", {"cache": str(cache.directory()), "freed_bytes": freed})
    else:
        console().print(f"removed {human_bytes(freed)} from {cache.directory()}")

"""`zombiescope ship`: a recording to an object store or another directory, now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.cli import progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, note, print_document
from zombiescope.cli.quantities import duration_s, human_bytes, size_bytes
from zombiescope.cli.recording_argument import Node, node_dir

if TYPE_CHECKING:
    from zombiescope.store.shipping.shipper import Round

EXAMPLES = examples(
    "ship s3://ml-incidents/nodes",
    "ship /var/lib/zombiescope /mnt/efs/nodes --all",
    "ship gs://bucket/nodes --redact --keep 90d",
)


def command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[DIR] TARGET",
            show_default=False,
            help="Where to: s3://bucket/prefix, gs://, abfs://, or a directory; before it the recording, if it is not "
            "the default: $ZOMBIESCOPE_DIR, else that of the recorder running here, else /var/lib/zombiescope.",
        ),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Everything that is recorded, and not only the frozen windows.")
    ] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace host, users, paths, command lines and ids, as pack does.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DURATION", show_default=False, help="Delete what is older at the target."),
    ] = None,
    verify: Annotated[
        str,
        typer.Option("--verify", metavar="none|size|read", help="What to read back from the target after each file."),
    ] = "size",
    spool: Annotated[
        str, typer.Option("--spool", metavar="BYTES", help="How much to keep of what retention has deleted.")
    ] = "512MB",
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", show_default=False, help="Where ledger and spool are: DIR/shipping."),
    ] = None,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Copy frozen windows, or a whole recording, to an object store or a directory.

    The target has the layout of a recording (node=NAME/date=...), so every command and fleet report can read it.
    Files that are already there are skipped. The agent ships automatically.
    """
    from zombiescope.store.shipping.policy import ShippingPolicy

    directory, target = _places(arguments)
    policy = ShippingPolicy(
        target=target,
        what="everything" if everything else "incidents",
        redact=redact,
        keep_days=0 if keep is None else duration_s(keep) / 86_400,
        spool_bytes=size_bytes(spool),
        verify=verify,  # type: ignore[arg-type] # the policy says what is allowed
    )
    with node_dir(directory, node) as path, progress.shown(f"sending to {policy.shown}"):
        done = _ship(path, state or path.resolve().parent / "shipping", policy)
    for said in done.notes:
        note(f"zombiescope: {said}")
    if json_:
        print_document("ship", _document(policy.shown, path, done))
    else:
        console().print(_line(policy.shown, done))


def _ship(path: Path, state: Path, policy: Any) -> Round:
    from zombiescope.store.shipping.shipper import Shipper
    from zombiescope.store.shipping.target import open_target
    from zombiescope.store.shipping.worker import only_one, state_folder

    name = path.resolve().name.removeprefix("node=")
    try:
        folder = state_folder(state, name, policy)
    except OSError as error:
        raise Failure(f"{state} cannot be written: {error.strerror}", "name another place with --state") from error
    with only_one(folder):
        return Shipper(path.resolve(), folder, policy, open_target(policy)).round()


def _places(arguments: list[str]) -> tuple[str | None, str]:
    if len(arguments) > 2:
        raise typer.BadParameter("there may be one recording and one target, in this order")
    return arguments[0] if len(arguments) == 2 else None, arguments[-1]


def _document(target: str, path: Path, done: Round) -> dict[str, Any]:
    return {
        "node": path.resolve().name.removeprefix("node="),
        "target": target,
        "units": done.units,
        "bytes": done.bytes,
        "already_there": done.known,
        "lost_bytes": done.dropped_bytes,
        "deleted": done.deleted,
    }


def _line(target: str, done: Round) -> str:
    if not done.units:
        return f"nothing new for {target}: frozen windows are sent, or everything with --all"
    known = f", of which {done.known} were there already" if done.known else ""
    return f"{target} has {done.units:,} units more, {human_bytes(done.bytes)}{known}"

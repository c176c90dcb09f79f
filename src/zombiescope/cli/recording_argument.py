"""The recording that a command reads: the DIR argument and --node, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from zombiescope.cli import completion, progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import note
from zombiescope.questions.window import held
from zombiescope.store import locate

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

READ_FIX = (
    "run as the recorder's user, join the group zombiescope (usermod -aG zombiescope USER), or record with "
    "--read-by-all"
)

Dir = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR",
        show_default=False,
        help="A recording: a directory, the address of an object store (s3://...), or a file made by pack. Default: "
        "$ZOMBIESCOPE_DIR, else that of the recorder running here, else /var/lib/zombiescope.",
    ),
]
Dirs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DIR",
        show_default=False,
        help="Recordings: directories, or files made by pack. Default: $ZOMBIESCOPE_DIR, else that of the recorder "
        "running here, else /var/lib/zombiescope.",
    ),
]
Node = Annotated[
    str | None,
    typer.Option(
        "--node", metavar="NAME", help="Which node, where the recording holds several.", autocompletion=completion.nodes
    ),
]


class _Closed(NamedTuple):
    """What is known of a recording when it is closed."""

    held: str
    no_stacks: str


_LAST: list[Recording | _Closed] = []
"""The recording that was opened last."""


def recorded_range() -> str:
    """From when to when something is recorded, for whoever asked and got nothing."""
    last = _LAST[-1] if _LAST else _Closed("", "")
    return last.held if isinstance(last, _Closed) else held(last)


def why_no_stacks() -> str:
    """Where its recorder was not allowed to sample: that, and what grants it."""
    last = _LAST[-1] if _LAST else _Closed("", "")
    return last.no_stacks if isinstance(last, _Closed) else _no_stacks(last)


def _no_stacks(recording: Recording) -> str:
    missing = recording.node.get("missing")
    entries = [one for one in missing if isinstance(one, dict)] if isinstance(missing, list) else []
    lacking = next((one for one in entries if one.get("source") == "stack samples"), None)
    return "" if lacking is None else f"{lacking.get('why')}; {lacking.get('grant')}, or record as root"


def place_of(directory: str | None) -> Path:
    """Where the recording lies."""
    if directory is not None and "://" in directory:
        raise Failure(f"{directory}: this command needs a recording on this machine's disks", "copy it here first")
    return locate.default_dir() if directory is None else Path(directory)


def node_of(directory: str | None, node: str | None) -> str | None:
    """The node that is meant; without DIR it is the one being recorded here."""
    if node is not None or directory is not None:
        return node
    recorder = locate.running_recorder()
    return recorder.node if recorder is not None and recorder.recording == locate.default_dir() else None


@contextmanager
def opened(directory: str | None, node: str | None = None) -> Iterator[Recording]:
    """The recording, open; what of it could not be read is said at the end."""
    from zombiescope.store.reader import open_recording

    place = directory if directory is not None and "://" in directory else place_of(directory)
    with progress.shown(f"reading {place}"):
        try:
            recording = open_recording(place, node_of(directory, node))
        except PermissionError as error:
            what = error.filename or place
            raise Failure(f"{what} may not be read by this user", READ_FIX) from error
        with recording:
            _LAST[:] = [recording]
            yield recording
            _LAST[:] = [_Closed(held(recording), _no_stacks(recording))]
            _report_damage(recording)


def _report_damage(recording: Recording) -> None:
    damage = recording.damage
    if damage:
        first = damage[0]
        more = f", and {len(damage) - 1} more" if len(damage) > 1 else ""
        note(f"zombiescope: not all of it could be read: {first.file}: {first.what}{more}")


@contextmanager
def node_dir(directory: str | None, node: str | None = None) -> Iterator[Path]:
    """The directory of the node, for a command that changes files there."""
    place = place_of(directory)
    with opened(directory, node) as recording:
        if place.is_file():
            raise Failure(f"{place} is a pack, and a pack is never changed", "name a recording directory")
        path = place / recording.prefix
        try:
            yield path
        except PermissionError as error:
            raise Failure(f"{path} may not be written by this user", "run as the recorder's user") from error

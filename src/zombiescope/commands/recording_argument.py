"""The recording that a command reads: the DIR argument and --node, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import note
from zombiescope.recording import locate

if TYPE_CHECKING:
    from zombiescope.recording.reader import Recording

READ_FIX = (
    "run as the recorder's user, join the group zombiescope (usermod -aG zombiescope USER), or record with "
    "--read-by-all"
)

Dir = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR",
        show_default=False,
        help="A recording: a directory, or a file made by pack. Default: $ZOMBIESCOPE_DIR, else that of the "
        "recorder running here, else /var/lib/zombiescope.",
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
    typer.Option("--node", metavar="NAME", help="Which node, where the recording holds several."),
]


def place_of(directory: str | None) -> Path:
    """Where the recording lies."""
    if directory is not None and "://" in directory:
        raise Failure(f"{directory}: recordings are read from this machine's disks", "copy it here first")
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
    from zombiescope.recording.reader import open_recording

    place = place_of(directory)
    try:
        recording = open_recording(place, node_of(directory, node))
    except PermissionError as error:
        what = error.filename or place
        raise Failure(f"{what} may not be read by this user", READ_FIX) from error
    with recording:
        yield recording
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
    if place.is_file():
        raise Failure(f"{place} is a pack, and a pack is never changed", "name a recording directory")
    with opened(directory, node) as recording:
        path = place / recording.prefix
        try:
            yield path
        except PermissionError as error:
            raise Failure(f"{path} may not be written by this user", "run as the recorder's user") from error

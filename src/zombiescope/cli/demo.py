"""`zombiescope demo`: the founding case, rebuilt on this machine and diagnosed."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base import listen_address
from zombiescope.cli import diagnose, progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, note, print_document
from zombiescope.cli.quantities import human_bytes
from zombiescope.cli.serve import bind, may_show, token_for
from zombiescope.cli.typed import called
from zombiescope.questions.window import WHOLE, Window

if TYPE_CHECKING:
    from zombiescope.diagnosis.incident import Incident
    from zombiescope.store.reader import Recording

EXAMPLES = examples(
    "demo",
    "demo --open          # on the page, at the incident",
    "demo --json | jq '.incidents[0].causes[0]'",
    "demo --output ./case # keep raw files and recording there",
)


def command(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Write raw files and recording into DIR.", show_default=False
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Show the incident in a browser, if there is a display; Ctrl-C ends it.")
    ] = False,
    json_: Json = False,
) -> None:
    """Rebuild and diagnose the founding incident on this machine. Needs no root.

    Generates the files that the engineers had (a profile of 96 cores, mpstat, dmesg, docker events, a copy of
    /proc/cgroups) from their published figures, imports them, and explains them. Records and changes nothing of this
    machine.
    """
    place = _place() if output is None else output / "recording"
    if output is not None and (taken := [path for path in (place, output / "raw") if path.exists()]):
        raise Failure(f"{taken[0]} exists already", "name another directory, or remove it")
    try:
        shutil.rmtree(place, ignore_errors=True)
        _rebuild(place, output / "raw" if output else None, quiet=json_)
    except OSError as error:
        raise Failure(
            f"{error.filename or place} could not be written: {error.strerror}", "name a directory with --output"
        ) from error
    from zombiescope.store.reader import open_recording

    with open_recording(place) as recording:
        guilty = _explain(recording, place, json_)
    if open_ and not json_:
        _show(place, guilty)


def _place() -> Path:
    """Where the recording stays, so that a newcomer can look around in it; replaced each time."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "zombiescope" / "demo"


def _rebuild(place: Path, raw: Path | None, *, quiet: bool) -> None:
    from zombiescope.imports.raw_case import rebuild_founding_case

    with progress.shown("rebuilding the founding case: 96 cores, 68,680 memory cgroups"):
        rebuilt = rebuild_founding_case(place, raw)
    if not quiet:
        note(
            f"rebuilt the founding case: {rebuilt.files} files, {human_bytes(rebuilt.bytes)}, "
            f"{rebuilt.samples:,} samples of {rebuilt.cpus} cores"
        )


def _explain(recording: Recording, place: Path, json_: bool) -> str:
    """Answers the address of its guilty seconds on the page."""
    from zombiescope.documents.incidents import diagnosed

    whole = WHOLE.choose(recording)
    # Docker's events go back for nine minutes; the profile is their last half minute.
    window = Window(recording.end_us - 30_000_000, recording.end_us + 1, whole.zone)
    with progress.shown("looking for causes"):
        found = diagnosed(recording, window)
    if json_:
        print_document("demo", found.document())
        return ""
    diagnose.show(found)
    first = next(iter(found.found.incidents), None)
    at = f"--from {window.clock(first.from_us)} --to {window.clock(first.to_us)}" if first else "--last 30s"
    out = console()
    out.print()
    out.print("look at it yourself", style="bold")
    looks = (("heatmap", "--last 30s --by core"), ("flamegraph", at), ("diagnose", "--last 30s -o report.html"))
    for name, options in looks:
        out.print(
            f"  {called()} {name} {shlex.quote(str(place))} {options}", soft_wrap=True
        )  # broken lines cannot be pasted
    guilty = _guilty(window, first)
    port = _free_port()
    url = listen_address.url(listen_address.DEFAULT, port, path=guilty)
    elsewhere = "" if port == listen_address.PORT else f" --listen {listen_address.ADDRESS}:{port}"
    out.print()
    out.print("or on the page", style="bold")
    # Nothing in it is anybody's secret, and so the address below can be opened as it stands.
    out.print(f"  {called()} serve --no-token{elsewhere} {shlex.quote(str(place))}", soft_wrap=True)
    out.print(f"  {url}", soft_wrap=True)
    return guilty


def _free_port() -> int:
    """The usual one, unless somebody has it: an `up`, whose page would be opened in place of the demo's."""
    try:
        made = listen_address.bound(listen_address.DEFAULT, or_next=True)
    except OSError:
        return listen_address.PORT
    with made:
        return listen_address.port_of(made)


def _guilty(window: Window, first: Incident | None) -> str:
    """The page on the seconds of the incident, in the half minute around it."""
    ends = (first.from_us, first.to_us) if first else (window.start_us, window.end_us)
    view = f"from={window.start_us / 1e6:.3f}&to={window.end_us / 1e6:.3f}"
    return f"/?page=node&{view}&sel={ends[0] / 1e6:.3f}..{ends[1] / 1e6:.3f}"


def _show(place: Path, guilty: str) -> None:
    """Serves it and opens a browser; without a display the address above has to do."""
    if not may_show("it as above,"):
        return
    made = bind(listen_address.DEFAULT, exact=False)
    token = token_for(listen_address.DEFAULT, token=True)
    url = listen_address.url(listen_address.DEFAULT, listen_address.port_of(made), token, path=guilty)
    note(f"{url}\nCtrl-C stops it.")
    from zombiescope.web.recordings import Place
    from zombiescope.web.server import ServerConfig, serve

    serve(made, ServerConfig((Place(place),), listen_address.DEFAULT, token=token, open_url=url))

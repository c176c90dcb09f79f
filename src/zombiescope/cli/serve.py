"""`zombiescope serve`: the web page over recordings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base import listen_address
from zombiescope.base.listen_address import ListenAddress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import examples, note
from zombiescope.cli.recording_argument import READ_FIX, Dirs, Node, node_of, place_of

if TYPE_CHECKING:
    import socket

EXAMPLES = examples(
    "serve                       # what is recorded here",
    "serve incident.zscope --open",
    "serve node-a.zscope node-b.zscope",
    "serve --fleet s3://recordings/prod",
    "serve --listen 10.0.0.5:8321 --host gpu-17.example.org",
)


def listen_at(text: str) -> ListenAddress:
    try:
        return listen_address.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


ListenOption = Annotated[
    ListenAddress | None,
    typer.Option(
        "--listen",
        parser=listen_at,
        metavar="ADDRESS:PORT",
        help="Default: 127.0.0.1:8321, or the next free port.",
        show_default=False,
    ),
]
TokenOption = Annotated[
    bool,
    typer.Option(
        "--token/--no-token",
        help="Require the token that is printed with the address, or let every user of this machine read the page. "
        "$ZOMBIESCOPE_TOKEN chooses the token. On any address but the loopback it is required.",
    ),
]
OpenOption = Annotated[bool, typer.Option("--open", help="Show it in a browser, if there is a display.")]


def command(
    directories: Dirs = None,
    listen: ListenOption = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="Another NAME or NAME:PORT under which it is reached; may be repeated.",
            show_default=False,
        ),
    ] = None,
    token: TokenOption = True,
    open_: OpenOption = False,
    node: Node = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            "--fleet",
            metavar="ROOT",
            help="Show a fleet: a directory or object-store address with node=NAME directories.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Open recordings in the web UI: cores, heat map, flame graph, diagnosis.

    Listens on this machine only and is read-only. It requires a token, which is part of the address that it prints; a
    restart creates a new one.
    """
    chosen: list[str] | list[None] = directories or ([] if fleet is not None else [None])
    if fleet is not None and "://" not in fleet and not Path(fleet).is_dir():
        raise Failure(f"{fleet} is not a directory", "name the directory that holds node=NAME directories")
    places = [(place_of(each), node_of(each, node)) for each in chosen]
    for place, name in places:
        refuse_unreadable(place, name)
    where = listen or listen_address.DEFAULT
    refuse_open_address(where, token)
    made = bind(where, exact=listen is not None)
    port = listen_address.port_of(made)
    secret = token_for(where, token)
    url = listen_address.url(where, port, secret)
    note(url)
    say_token(where, secret)
    note("Ctrl-C stops it.")
    from zombiescope.web.recordings import Place
    from zombiescope.web.server import ServerConfig, serve

    shown = url if open_ and may_show(url) else None
    opened = tuple(Place(Path(place), name) for place, name in places)
    serve(made, ServerConfig(opened, where, tuple(names or ()), secret, open_url=shown, fleet=fleet))


def refuse_unreadable(place: Path, node: str | None) -> None:
    """Now, not as an answer to every question that the page asks."""
    from zombiescope.store.reader import check

    if not place.exists():
        raise Failure(f"there is no recording at {place}", "'zombiescope up' starts one")
    try:
        check(place, node)
    except PermissionError as error:
        raise Failure(f"{error.filename or place} may not be read by this user", READ_FIX) from error


def bind(where: ListenAddress, *, exact: bool) -> socket.socket:
    """The socket; where nobody asked for this port, the next free one will do, and that is said."""
    try:
        made = listen_address.bound(where, or_next=not exact)
    except OSError as error:
        raise Failure(
            f"{where.shown}:{where.port} cannot be listened on: {error.strerror}", "name another with --listen"
        ) from error
    if where.port and listen_address.port_of(made) != where.port:
        note(f"port {where.port} is taken; the page is on {listen_address.port_of(made)}")
    return made


def refuse_open_address(where: ListenAddress, token: bool) -> None:
    if not token and not where.loopback:
        raise typer.BadParameter(f"--no-token: {where.shown} is reached from other machines; leave it out")


def token_for(where: ListenAddress, token: bool) -> str | None:
    """What whoever asks must bring along."""
    if not token and where.loopback:
        return None
    try:
        return listen_address.new_token()
    except ValueError as error:
        raise Failure(str(error), "unset it, and a token is made") from None


def say_token(where: ListenAddress, token: str | None) -> None:
    note(token_note(where, token))


def token_note(where: ListenAddress, token: str | None) -> str:
    if token is None:
        return "Every user of this machine can read it (--no-token)."
    who = "Anyone who opens this address" if where.loopback else "Anyone who opens this address, from any machine,"
    return f"{who} needs the token (the part after #). It is shown once; a restart creates a new one."


def may_show(url: str) -> bool:
    """Whether there is a display; says where to look where there is none."""
    if has_display():
        return True
    note(display_note(url))
    return False


def display_note(url: str) -> str:
    return f"there is no display here; open {url} yourself"


def has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

"""The server's process: uvicorn on a socket that is open already, until it is stopped or the recorder has
ended."""

from __future__ import annotations

import asyncio
import gc
import html
import os
import select
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from zombiescope.base.listen_address import ListenAddress, port_of
from zombiescope.query.strip import strip
from zombiescope.store.locate import is_alive
from zombiescope.web.app import application
from zombiescope.web.connection import KEEP_ALIVE_S, Connection
from zombiescope.web.guard import access
from zombiescope.web.recordings import Place, Recordings
from zombiescope.web.refusal import Refusal

if TYPE_CHECKING:
    from zombiescope.web.fleet import FleetRoot

LET_GO_S = 1
_LOOK_S = 1.0
_USUAL_COLUMNS = 1_200


@dataclass(frozen=True, slots=True)
class ServerConfig:
    places: tuple[Place, ...]
    listen: ListenAddress
    names: tuple[str, ...] = ()
    """Further names that it goes by."""
    token: str | None = None
    with_pid: int | None = None
    """Ends with this process."""
    open_url: str | None = None
    """Shown in a browser once it answers."""
    beat: Callable[[], None] | None = None
    """Called every two seconds by the loop that answers requests."""
    fleet: str | None = None
    """A directory or the address of an object store with many nodes."""


def serve(made: socket.socket, config: ServerConfig) -> None:
    """Answers requests until SIGINT or SIGTERM."""
    # Commands die of it, as a pipe expects (`| head`); a server would die of every browser that leaves in the middle.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    recordings = Recordings(config.places, _fleet(config.fleet))
    allowed = access(config.listen.address, port_of(made), config.names, config.token)
    settings = uvicorn.Config(
        application(recordings, allowed),
        access_log=False,
        log_level="critical" if not os.environ.get("ZOMBIESCOPE_DEBUG") else "debug",
        server_header=False,
        date_header=False,
        lifespan="on",
        loop="asyncio",
        http=Connection,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=LET_GO_S,
        h11_max_incomplete_event_size=64 * 1024,
        callback_notify=None if config.beat is None else partial(_beat, config.beat),
        timeout_notify=1,  # looked at once a second: at least every two
        proxy_headers=False,
    )
    server = _Server(settings, recordings)
    if config.with_pid is not None:
        _end_with(config.with_pid, server)
    threading.Thread(target=_warm, args=(recordings,), daemon=True).start()
    if config.open_url is not None:
        threading.Thread(target=_show, args=(server, config.open_url), daemon=True).start()
    gc.freeze()
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
        asyncio.run(server.serve(sockets=[made]))


async def _beat(beat: Callable[[], None]) -> None:
    beat()


class _Server(uvicorn.Server):
    """Lets go of whoever watches before it waits for requests to end."""

    def __init__(self, settings: uvicorn.Config, recordings: Recordings) -> None:
        super().__init__(settings)
        self._recordings = recordings

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._recordings.followers.end()
        await super().shutdown(sockets)


def _fleet(place: str | None) -> FleetRoot | None:
    if place is None:
        return None
    from zombiescope.web.fleet import FleetRoot

    return FleetRoot(place)


def _warm(recordings: Recordings) -> None:
    """Reads what will be asked for first, while the browser is on its way: files come off the disk, threads start."""
    with suppress(Refusal, OSError), recordings.named(None).reading() as recording:
        strip(recording, recording.start_us, recording.end_us + 1, _USUAL_COLUMNS)


def _end_with(pid: int, server: uvicorn.Server) -> None:
    """A page whose recorder has ended has nobody to end it."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        server.should_exit = True
        return
    except OSError:  # a kernel before 5.3, or a filter that does not know the call
        watched = None

    def wait() -> None:
        if watched is not None:
            select.select([watched], [], [])
        while watched is None and is_alive(pid):
            threading.Event().wait(_LOOK_S)
        server.should_exit = True

    threading.Thread(target=wait, daemon=True).start()


def _show(server: uvicorn.Server, url: str) -> None:
    while not server.started:
        if server.should_exit:
            return
        threading.Event().wait(0.05)
    with suppress(webbrowser.Error, OSError), browser_address(url) as address:
        webbrowser.open(address)
        while not server.should_exit:  # the browser may take its time to read it
            threading.Event().wait(0.5)


@contextmanager
def browser_address(url: str) -> Iterator[str]:
    """What a browser's command line may say: everybody on the machine reads that, so a token goes through a file that
    only we read."""
    if "#token=" not in url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="zombiescope-page-") as folder:
        page = Path(folder) / "open.html"
        page.touch(0o600)
        there = html.escape(url)
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={there}"><a href="{there}">open</a>')
        yield page.as_uri()

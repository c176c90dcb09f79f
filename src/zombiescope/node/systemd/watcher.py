"""systemd over D-Bus: restarts, failures and state changes of services.

Which calls and signals are used stands in :mod:`zombiescope.node.systemd.bus`, what becomes an event in
:mod:`zombiescope.node.systemd.units`. Everything runs in a thread of its own, so that a bus that hangs,
which is usual on the very nodes that are worth recording, never holds up the recorder. Costs nothing while
no unit changes, 0.7 ms per restart of a unit (14 signals). Needs no privilege: every user may read the
properties of units.

Without a bus (a container that does not mount /run/dbus, a machine without systemd) there are no unit
events, and `state` says so, with the fix. asyncio and dbus-fast are imported only once there
is a socket.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from zombiescope.base.errors import UserError
from zombiescope.kernel.namespaces import node_root
from zombiescope.node.systemd.units import UnitBook, UnitEvent, UnitState

if TYPE_CHECKING:
    from zombiescope.node.systemd.bus import BusSession

SYSTEM_BUS = "unix:path=/run/dbus/system_bus_socket"
SYSTEMD = "org.freedesktop.systemd1"
PROPERTIES = "org.freedesktop.DBus.Properties"
_RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)

Status = Literal["starting", "connected", "absent", "failed"]


@dataclass(frozen=True, slots=True)
class WatcherState:
    """`why` and `fix` are empty while connected."""

    status: Status
    why: str = ""
    fix: str = ""


class BusUnavailableError(UserError):
    """Carries the state that the watcher is in because of it."""

    def __init__(self, state: WatcherState) -> None:
        super().__init__(state.why, state.fix or None)
        self.state = state


class SystemdWatcher:
    """Follows systemd until stopped, connecting again whenever the bus goes away.

    `on_event` is called in the watcher's thread: it must be quick and safe to call from there (deque.append
    is)."""

    def __init__(
        self,
        bus_address: str | None,
        on_event: Callable[[UnitEvent], None],
        deadline_s: float = 2.0,
        poll_s: float = 60.0,
    ) -> None:
        self.bus_address = bus_address or os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or system_bus()
        self.state = WatcherState("starting")
        self._on_event = on_event
        self._deadline_s = deadline_s
        self._poll_s = poll_s
        self._book = UnitBook()
        self._stop = threading.Event()
        self._session: BusSession | None = None
        self._was_connected = False
        self._thread = threading.Thread(target=self._run, name="systemd-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, timeout_s: float = 3.0) -> None:
        """Ends the thread; gives up waiting after `timeout_s` (it is a daemon thread, it cannot keep us
        alive)."""
        self._stop.set()
        session = self._session
        if session is not None:
            session.request_stop()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def snapshot(self) -> list[UnitState]:
        """Every service that systemd has loaded, as last described; stale while not connected."""
        return self._book.snapshot()

    def _run(self) -> None:
        attempt = 0
        while not self._stop.is_set():
            try:
                self._follow()
            except BusUnavailableError as unavailable:
                attempt = 0 if self.state.status == "connected" else attempt
                self.state = self._after_loss(unavailable.state)
            if not self._stop.is_set():
                self._stop.wait(_RETRY_S[min(attempt, len(_RETRY_S) - 1)])
            attempt += 1

    def _follow(self) -> None:
        """Returns when stopped; raises BusUnavailableError when there is no bus, or no longer."""
        path = socket_path(self.bus_address)
        if path is not None and not os.path.exists(path):  # noqa: PTH110 - no pathlib in the recorder's hot start
            raise BusUnavailableError(no_bus(path))
        from zombiescope.node.systemd.bus import BusSession

        session = BusSession(self.bus_address, self._book, self._on_event, self._deadline_s, self._poll_s)
        self._session = session
        if self._stop.is_set():  # stop() may have looked before there was a session
            session.request_stop()
        session.run(self._connected)

    def _connected(self) -> None:
        self._was_connected = True
        self.state = WatcherState("connected")

    def _after_loss(self, state: WatcherState) -> WatcherState:
        if state.status == "absent" and self._was_connected:
            return WatcherState("failed", f"the bus went away: {state.why}", state.fix)
        return state


def system_bus() -> str:
    """The node's bus: in a pod where the socket is not mounted, below the root of process 1."""
    path = socket_path(SYSTEM_BUS) or ""
    of_node = node_root().rstrip("/") + path
    elsewhere = not os.path.exists(path) and os.path.exists(of_node)  # noqa: PTH110 - no pathlib in the recorder
    return f"unix:path={of_node}" if elsewhere else SYSTEM_BUS


def socket_path(address: str) -> str | None:
    """The file of a unix:path= address; None for other transports, which have to be tried."""
    transport, _, options = address.partition(":")
    if transport != "unix" or ";" in address:
        return None
    return dict(option.partition("=")[::2] for option in options.split(",")).get("path")


def no_bus(path: str) -> WatcherState:
    return WatcherState(
        "absent",
        f"no D-Bus system bus at {path}",
        "start it (systemctl start dbus.socket); in a container mount the host's /run/dbus",
    )

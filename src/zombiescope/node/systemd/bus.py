"""One connection to the system bus, as long as it lasts.

Calls: Manager.Subscribe, Manager.ListUnits at start and after a reload, Properties.GetAll of a service's
Service interface and Get of its InvocationID. Signals: PropertiesChanged below
/org/freedesktop/systemd1/unit, UnitNew, UnitRemoved, JobRemoved, Reloading. Every call has a deadline.

PropertiesChanged of the Service interface carries NRestarts, Result and the ExecMain values each time, so a
crash loop costs no call at all. Asked for is what no signal carries (the control group, and everything
about units that were there before us): one unit at a time, none more often than every five seconds, because
each GetAll costs pid 1 a millisecond. A poll every minute of the units that are starting makes up for
signals that were lost.

Any process on the bus can send us a signal in any shape: those that do not come from the owner of the name
org.freedesktop.systemd1, which only pid 1 may own, are ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, InvalidAddressError
from dbus_fast.unpack import unpack_variants

from zombiescope.node.systemd.units import (
    SERVICE_INTERFACE,
    UNIT_INTERFACE,
    UNIT_PATH,
    UnitBook,
    UnitEvent,
    unit_name,
)
from zombiescope.node.systemd.watcher import PROPERTIES, SYSTEMD, BusUnavailableError, WatcherState, no_bus

_MANAGER_PATH = "/org/freedesktop/systemd1"
_MANAGER = "org.freedesktop.systemd1.Manager"
_DBUS = "org.freedesktop.DBus"
_SERVICE_SUFFIX = "_2eservice"
_ASK_EVERY_S = 5.0
_ASK_MAX = 1_000
_MISSED_MAX = 3

_MATCHES = (
    f"type='signal',sender='{SYSTEMD}',interface='{PROPERTIES}',member='PropertiesChanged',"
    f"path_namespace='{_MANAGER_PATH}/unit'",
    f"type='signal',sender='{SYSTEMD}',interface='{_MANAGER}',path='{_MANAGER_PATH}',member='UnitNew'",
    f"type='signal',sender='{SYSTEMD}',interface='{_MANAGER}',path='{_MANAGER_PATH}',member='UnitRemoved'",
    f"type='signal',sender='{SYSTEMD}',interface='{_MANAGER}',path='{_MANAGER_PATH}',member='JobRemoved'",
    f"type='signal',sender='{SYSTEMD}',interface='{_MANAGER}',path='{_MANAGER_PATH}',member='Reloading'",
    f"type='signal',sender='{_DBUS}',interface='{_DBUS}',member='NameOwnerChanged',arg0='{SYSTEMD}'",
)


class CallFailedError(Exception):
    """systemd or the bus answered with an error."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class BusSession:
    """`run` connects, follows the signals, and returns after `request_stop`."""

    def __init__(
        self,
        address: str,
        book: UnitBook,
        on_event: Callable[[UnitEvent], None],
        deadline_s: float,
        poll_s: float,
    ) -> None:
        self._address = address
        self._book = book
        self._on_event = on_event
        self._deadline_s = deadline_s
        self._poll_s = poll_s
        self._bus: MessageBus | None = None
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._owner = ""  # the unique name of pid 1
        self._to_ask: dict[str, None] = {}  # unit paths in the order asked for
        self._asked_s: dict[str, float] = {}
        self._relist = False
        self._reads_again = False  # from the start of a reload until units were listed after it
        self._missed = 0
        self._wake = asyncio.Event()

    def run(self, connected: Callable[[], None]) -> None:
        """Raises BusUnavailableError when the bus cannot be reached, or goes away."""
        try:
            self._task = self._loop.create_task(self._follow(connected))
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            return
        except TimeoutError:
            raise BusUnavailableError(self._silent()) from None
        except (OSError, EOFError, AuthError, InvalidAddressError, CallFailedError) as error:
            raise BusUnavailableError(self._explain(error)) from error
        finally:
            self._loop.close()

    def request_stop(self) -> None:
        """From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended by itself
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self, connected: Callable[[], None]) -> None:
        self._bus = bus = MessageBus(bus_address=self._address)
        async with asyncio.timeout(self._deadline_s):
            await bus.connect()
        bus.add_message_handler(self._on_message)
        try:
            for rule in _MATCHES:
                await self._call(_DBUS, "/org/freedesktop/DBus", _DBUS, "AddMatch", "s", [rule])
            (self._owner,) = await self._call(_DBUS, "/org/freedesktop/DBus", _DBUS, "GetNameOwner", "s", [SYSTEMD])
            await self._subscribe()
            connected()
            await self._until_disconnected(bus)
        finally:
            bus.disconnect()
            with contextlib.suppress(Exception):  # only to give it the moment in which it closes its socket
                async with asyncio.timeout(0.2):
                    await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]

    async def _subscribe(self) -> None:
        await self._call(SYSTEMD, _MANAGER_PATH, _MANAGER, "Subscribe")
        await self._list_units()

    async def _until_disconnected(self, bus: MessageBus) -> None:
        gone = asyncio.ensure_future(bus.wait_for_disconnect())  # type: ignore[no-untyped-call]
        work = asyncio.ensure_future(self._work())
        try:
            await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
            for ended in (task for task in (work, gone) if task.done()):
                ended.result()  # raises why it ended
            raise EOFError("the bus closed the connection")
        finally:
            for task in (gone, work):
                task.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)

    async def _work(self) -> None:
        """Tells what has settled, and asks systemd for what no signal carries."""
        poll_at_s = time.monotonic() + self._poll_s
        while True:
            await self._sleep_until(poll_at_s)
            if time.monotonic() >= poll_at_s:
                poll_at_s = time.monotonic() + self._poll_s
                for unit in self._book.restarting():
                    self._ask(_path_of(unit), again=True)
            self._tell(self._book.due(time.monotonic_ns()))
            if self._relist:
                self._relist = False
                await self._subscribe()  # pid 1 may have executed itself anew
            await self._ask_next()

    async def _sleep_until(self, poll_at_s: float) -> None:
        if self._to_ask or self._relist:
            await asyncio.sleep(0.005)  # a pause between two calls: pid 1 has other things to do
            return
        self._wake.clear()
        due_ns = self._book.next_due_ns()
        seconds = poll_at_s - time.monotonic()
        if due_ns is not None:
            seconds = min(seconds, (due_ns - time.monotonic_ns()) / 1e9)
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _list_units(self) -> None:
        rows: Sequence[Sequence[Any]] = (await self._call(SYSTEMD, _MANAGER_PATH, _MANAGER, "ListUnits"))[0]
        now_ns = time.monotonic_ns()
        services = [row for row in rows if row[0].endswith(".service") and row[2] != "not-found"]
        self._book.keep_only({row[0] for row in services})
        for name, _, _, active_state, sub_state, _, path, job_id, *_ in services:
            self._tell(self._book.listed(name, active_state, sub_state, now_ns))
            if active_state != "inactive" or job_id:
                self._ask(path, again=True)
        self._book.list_ended()
        self._reads_again = False

    def _ask(self, path: str, again: bool = False) -> None:
        """Puts a unit in the queue; without `again` only if it was never asked about."""
        if len(self._to_ask) >= _ASK_MAX or (not again and path in self._asked_s):
            return
        if time.monotonic() - self._asked_s.get(path, -_ASK_EVERY_S) >= _ASK_EVERY_S:
            self._to_ask[path] = None
            self._wake.set()

    async def _ask_next(self) -> None:
        path = next(iter(self._to_ask), None)
        if path is None:
            return
        del self._to_ask[path]
        self._asked_s[path] = time.monotonic()
        unit = unit_name(path)
        if unit not in self._book:
            return
        try:
            (service,) = await self._call(SYSTEMD, path, PROPERTIES, "GetAll", "s", [SERVICE_INTERFACE])
            (invocation,) = await self._call(SYSTEMD, path, PROPERTIES, "Get", "ss", [UNIT_INTERFACE, "InvocationID"])
        except CallFailedError:
            return  # the unit is gone, or this systemd does not have the property
        except TimeoutError:
            self._missed += 1  # a late answer on a starved node is no reason to start over, silence is
            if self._missed >= _MISSED_MAX:
                raise
            return
        self._missed = 0
        properties = {**service, "InvocationID": invocation}
        self._tell(self._book.changed(unit, unpack_variants(properties), time.monotonic_ns()))

    def _on_message(self, message: Message) -> None:
        if message.message_type is not MessageType.SIGNAL:
            return
        if message.sender == _DBUS and message.member == "NameOwnerChanged":
            self._owner_changed(message.body)
        if message.sender != self._owner:
            return
        path = message.path or ""
        if message.member == "PropertiesChanged":
            if path.endswith(_SERVICE_SUFFIX):
                self._properties_changed(path, message.body[0], message.body[1])
        elif path == _MANAGER_PATH and message.interface == _MANAGER:
            self._manager_signal(message.member or "", message.body)

    def _owner_changed(self, body: list[Any]) -> None:
        name, _, owner = body
        if name == SYSTEMD and owner:
            self._owner = owner
            self._relist = True
            self._wake.set()

    def _properties_changed(self, path: str, interface: str, changed: dict[str, Any]) -> None:
        unit = unit_name(path)
        properties = unpack_variants(changed)
        self._tell(self._book.changed(unit, properties, time.monotonic_ns()))
        if interface == SERVICE_INTERFACE:
            self._ask(path, again="NRestarts" not in properties and unit in self._book.restarting())
        self._wake.set()

    def _manager_signal(self, member: str, body: list[Any]) -> None:
        now_ns = time.monotonic_ns()
        if member in ("UnitNew", "UnitRemoved") and self._reads_again:
            return  # a reload takes every unit out and puts it in again; the list after it shows the difference
        if member == "UnitNew" and body[0].endswith(".service"):
            self._book.appeared(body[0])
        elif member == "UnitRemoved":
            self._tell(self._book.removed(body[0], now_ns))
            self._to_ask.pop(body[1], None)
            self._asked_s.pop(body[1], None)
        elif member == "JobRemoved":
            self._tell(self._book.job_removed(body[2], body[3], now_ns))
        elif member == "Reloading":
            self._reloading(bool(body[0]), now_ns)

    def _reloading(self, begins: bool, now_ns: int) -> None:
        text = "systemd is reading its configuration again" if begins else "systemd has read its configuration again"
        self._tell([UnitEvent(now_ns, "unit_state", "info", "systemd", text, {"unit": "systemd"})])
        if begins:
            self._reads_again = True
        else:
            self._relist = True
            self._wake.set()

    def _tell(self, events: list[UnitEvent]) -> None:
        for event in events:
            self._on_event(event)

    async def _call(
        self,
        destination: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        body: Sequence[Any] = (),
    ) -> list[Any]:
        assert self._bus is not None
        message = Message(
            destination=destination,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
        )
        async with asyncio.timeout(self._deadline_s):
            reply: Message | None = await self._bus.call(message)
        if reply is None:
            raise EOFError("the bus closed the connection")
        if reply.message_type is MessageType.ERROR:
            raise CallFailedError(reply.error_name or "unknown error", str(reply.body[0]) if reply.body else "")
        return list(reply.body)

    def _silent(self) -> WatcherState:
        return WatcherState(
            "failed",
            f"no answer from {self._address} within {self._deadline_s:g} s",
            "is pid 1 or the bus starved or stopped? It is tried again until it answers",
        )

    def _explain(self, error: Exception) -> WatcherState:
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            return no_bus(self._address)
        if isinstance(error, CallFailedError) and error.name.endswith((".ServiceUnknown", ".NameHasNoOwner")):
            return WatcherState("absent", f"no systemd on {self._address}", "give the address of the host's bus")
        denied = isinstance(error, CallFailedError) and error.name.endswith(".AccessDenied")
        if isinstance(error, (PermissionError, AuthError)) or denied:
            return WatcherState("failed", f"{self._address}: {error}", "run as root, or allow it in the bus policy")
        return WatcherState("failed", f"{self._address}: {error or type(error).__name__}", "it is tried again")


def _path_of(unit: str) -> str:
    """crash-loop.service -> .../crash_2dloop_2eservice: all but letters and digits, and a leading digit,
    escaped."""
    escaped = "".join(
        chr(byte)
        if chr(byte).isalnum() and byte < 128 and not (position == 0 and chr(byte).isdigit())
        else f"_{byte:02x}"
        for position, byte in enumerate(unit.encode())
    )
    return UNIT_PATH + (escaped or "_")

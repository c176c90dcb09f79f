"""What the running systemd knows of one unit, and what it can be told to do: stop, start, disable, mask, and back.

Calls over the system bus: Manager.LoadUnit, Properties.GetAll of the interfaces Unit and Service, StopUnit, StartUnit,
DisableUnitFiles, EnableUnitFiles, MaskUnitFiles, UnmaskUnitFiles, Reload, ResetFailedUnit. Reading needs no privilege,
the others need root or polkit. Each call has a deadline of its own, a longer one where systemd reads every unit file
again, which takes a sick node long; and a stop is waited for as long as the unit may take to stop. BusUnavailableError
where there is no bus, or it does not answer; UnitCallError where systemd says no.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from zombiescope.base.errors import UserError
from zombiescope.node.systemd.watcher import (
    PROPERTIES,
    SYSTEM_BUS,
    SYSTEMD,
    BusUnavailableError,
    WatcherState,
    no_bus,
    socket_path,
)

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

_MANAGER_PATH = "/org/freedesktop/systemd1"
_MANAGER = f"{SYSTEMD}.Manager"
_CALL_S = 25.0  # as systemctl waits
_RELOADS = {"Reload", "DisableUnitFiles", "EnableUnitFiles", "MaskUnitFiles", "UnmaskUnitFiles"}
_RELOAD_TIMES = 4
_SETTLE_MAX_S = 120.0
_ENDED = ("inactive", "failed")
_EXITED = 1  # CLD_EXITED
T = TypeVar("T")


class UnitCallError(UserError):
    """systemd refused: no rights, no such unit, a file in the way."""

    def __init__(self, what: str, fix: str | None, name: str) -> None:
        super().__init__(what, fix)
        self.name = name


@dataclass(frozen=True, slots=True)
class LoadedUnit:
    """One unit as systemd has it loaded now."""

    name: str
    load_state: str
    active_state: str
    sub_state: str
    file_state: str
    """enabled, disabled, static, masked, generated, transient, indirect, linked ...; empty without a unit file."""
    fragment: str
    triggered_by: tuple[str, ...]
    """Sockets, timers and paths that start it."""
    wanted_by: tuple[str, ...]
    invocation: str
    control_group: str
    restarts: int | None
    main_pid: int | None
    exit_status: int | None
    """Of its last run, where that exited by itself."""
    has_job: bool
    stops_with: tuple[str, ...] = ()
    """Units that systemd stops when it stops this one, because they require it or belong to it."""
    slice: str = ""
    """Where its cgroup is made when it starts."""

    @property
    def exists(self) -> bool:
        return self.load_state not in ("not-found", "error", "bad-setting") or self.active_state not in _ENDED

    @property
    def is_running(self) -> bool:
        """Or about to: a unit between two restarts is "activating"."""
        return self.active_state not in _ENDED or self.has_job


class Manager:
    """systemd of this machine. Every method is one connection: a plan makes few calls, and none of them may hang."""

    def __init__(self, address: str | None = None, call_s: float = _CALL_S) -> None:
        self._address = address or os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or SYSTEM_BUS
        self._call_s = call_s

    def unit(self, name: str) -> LoadedUnit:
        return self._run(lambda bus: self._unit(bus, name))

    def stop(self, name: str) -> LoadedUnit:
        """Until it has stopped: as long as its own TimeoutStopSec lets it take."""
        return self._run(lambda bus: self._until(bus, name, "StopUnit", running=False))

    def start(self, name: str) -> None:
        """Queued, and not waited for: a unit that crashes again and again never gets there."""
        self._run(lambda bus: self._call(bus, "StartUnit", "ss", name, "replace"))

    def disable(self, names: Sequence[str]) -> None:
        self._files("DisableUnitFiles", "asb", [list(names), False])

    def enable(self, names: Sequence[str], *, runtime: bool = False) -> None:
        self._files("EnableUnitFiles", "asbb", [list(names), runtime, False])

    def mask(self, names: Sequence[str]) -> None:
        self._files("MaskUnitFiles", "asbb", [list(names), False, False])

    def unmask(self, names: Sequence[str]) -> None:
        self._files("UnmaskUnitFiles", "asb", [list(names), False])

    def reload(self) -> None:
        self._run(lambda bus: self._call(bus, "Reload"))

    def reset_failed(self, name: str) -> None:
        self._run(lambda bus: self._call(bus, "ResetFailedUnit", "s", name))

    def _files(self, member: str, signature: str, body: list[Any]) -> None:
        async def change(bus: MessageBus) -> None:
            await self._call(bus, member, signature, *body)
            await self._call(bus, "Reload")

        self._run(change)

    async def _unit(self, bus: MessageBus, name: str) -> LoadedUnit:
        from dbus_fast.unpack import unpack_variants

        (path,) = await self._call(bus, "LoadUnit", "s", name)
        values: dict[str, Any] = {}
        own = {"service": "Service", "scope": "Scope", "socket": "Socket"}.get(name.rpartition(".")[2])
        for interface in ("Unit", own) if own else ("Unit",):
            (found,) = await self._ask(bus, path, PROPERTIES, "GetAll", "s", f"{SYSTEMD}.{interface}")
            values |= unpack_variants(found)
        return _loaded(name, values)

    async def _until(self, bus: MessageBus, name: str, member: str, *, running: bool) -> LoadedUnit:
        await self._call(bus, member, "ss", name, "replace")
        end_s = time.monotonic() + _SETTLE_MAX_S
        while (unit := await self._unit(bus, name)).is_running is not running:
            if time.monotonic() > end_s:
                raise UnitCallError(f"{name} is still {unit.active_state} after {_SETTLE_MAX_S:g} s", None, "timeout")
            await asyncio.sleep(0.1)
        return unit

    async def _call(self, bus: MessageBus, member: str, signature: str = "", *body: Any) -> list[Any]:
        return await self._ask(bus, _MANAGER_PATH, _MANAGER, member, signature, *body)

    async def _ask(
        self, bus: MessageBus, path: str, interface: str, member: str, signature: str, *body: Any
    ) -> list[Any]:
        from dbus_fast import Message, MessageType

        message = Message(SYSTEMD, path, interface, member, signature=signature, body=list(body))
        async with asyncio.timeout(self._call_s * (_RELOAD_TIMES if member in _RELOADS else 1)):
            reply: Message | None = await bus.call(message)
        if reply is None:
            raise EOFError("the bus closed the connection")
        if reply.message_type is MessageType.ERROR:
            raise _refused(member, reply.error_name or "", str(reply.body[0]) if reply.body else "")
        return list(reply.body)

    def _run(self, work: Callable[[MessageBus], Awaitable[T]]) -> T:
        path = socket_path(self._address)
        if path is not None and not os.path.exists(path):  # noqa: PTH110  as in watcher.py
            raise BusUnavailableError(no_bus(path))
        return asyncio.run(self._connected(work))

    async def _connected(self, work: Callable[[MessageBus], Awaitable[T]]) -> T:
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import AuthError, InvalidAddressError

        bus = MessageBus(bus_address=self._address)
        try:
            async with asyncio.timeout(self._call_s):
                await bus.connect()
            return await work(bus)
        except TimeoutError:
            why = f"systemd did not answer on {self._address} in time ({self._call_s:g} s a call)"
            raise BusUnavailableError(WatcherState("failed", why, "is pid 1 or the bus starved?")) from None
        except (OSError, EOFError, AuthError, InvalidAddressError) as error:
            why = f"{self._address}: {error or type(error).__name__}"
            raise BusUnavailableError(WatcherState("failed", why, "run as root on the node itself")) from error
        finally:
            bus.disconnect()


def _loaded(name: str, values: dict[str, Any]) -> LoadedUnit:
    def text(key: str) -> str:
        value = values.get(key)
        return value if isinstance(value, str) else ""

    def names(*keys: str) -> tuple[str, ...]:
        lists = (values.get(key) for key in keys)
        return tuple(str(each) for found in lists if isinstance(found, list) for each in found)

    job, invocation = values.get("Job"), values.get("InvocationID")
    return LoadedUnit(
        name=text("Id") or name,
        load_state=text("LoadState"),
        active_state=text("ActiveState"),
        sub_state=text("SubState"),
        file_state=text("UnitFileState"),
        fragment=text("FragmentPath"),
        triggered_by=names("TriggeredBy"),
        wanted_by=names("WantedBy", "RequiredBy", "UpheldBy"),
        invocation=invocation.hex() if isinstance(invocation, bytes) else "",
        control_group=text("ControlGroup"),
        restarts=values.get("NRestarts"),
        main_pid=values.get("MainPID") or None,
        exit_status=values.get("ExecMainStatus") if values.get("ExecMainCode") == _EXITED else None,
        has_job=isinstance(job, (list, tuple)) and bool(job) and job[0] != 0,
        stops_with=names("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"),
        slice=text("Slice"),
    )


def _refused(member: str, name: str, text: str) -> UnitCallError:
    denied = name.endswith((".AccessDenied", ".InteractiveAuthorizationRequired"))
    fix = "run it as root" if denied else None
    return UnitCallError(f"systemd refused {member}: {text or name}", fix, name)

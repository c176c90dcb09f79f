"""What the running systemd says of its services, asked once: the answers of `systemctl show`.

Calls over the system bus: Manager.ListUnits, then Properties.GetAll of the interfaces Unit and Service for each
service that is not idle. About 2 ms of pid 1 per service; a node has dozens of them. No privilege is needed.
BusUnavailableError where there is no bus or no systemd on it, or it does not answer in time.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class RunningUnit:
    """One unit that systemd has loaded. `properties` are there for services that are not idle."""

    name: str
    load_state: str
    active_state: str
    sub_state: str
    properties: dict[str, Any]

    def text(self, name: str) -> str | None:
        value = self.properties.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int | None:
        value = self.properties.get(name)
        return value if isinstance(value, int) else None


@dataclass(frozen=True, slots=True)
class UnitList:
    units: dict[str, RunningUnit]
    """Every loaded unit by name."""
    unanswered: int
    """Services whose properties did not come in time: of these only the state is known."""


def running_units(address: str | None = None, deadline_s: float = 10.0, properties_s: float = 10.0) -> UnitList:
    """The list has to come within `deadline_s`. Properties are asked for of services that are not idle, the restless
    ones first, and what has not come after `properties_s` is left: on a starved node the list alone says most."""
    address = address or os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or SYSTEM_BUS
    path = socket_path(address)
    if path is not None and not os.path.exists(path):  # noqa: PTH110 - as in systemd.py
        raise BusUnavailableError(no_bus(path))
    return asyncio.run(_ask(address, deadline_s, properties_s))


async def _ask(address: str, deadline_s: float, properties_s: float) -> UnitList:
    from dbus_fast.aio import MessageBus
    from dbus_fast.errors import AuthError, InvalidAddressError

    bus = MessageBus(bus_address=address)
    try:
        async with asyncio.timeout(deadline_s):
            await bus.connect()
            (rows,) = await _call(bus, "/org/freedesktop/systemd1", f"{SYSTEMD}.Manager", "ListUnits")
        return await _describe(bus, rows, properties_s)
    except TimeoutError:
        why = f"no answer from {address} within {deadline_s:g} s"
        raise BusUnavailableError(WatcherState("failed", why, "is pid 1 or the bus starved?")) from None
    except (OSError, EOFError, AuthError, InvalidAddressError) as error:
        fix = "run as root, or give the address of the host's bus in DBUS_SYSTEM_BUS_ADDRESS"
        raise BusUnavailableError(WatcherState("failed", f"{address}: {error}", fix)) from error
    finally:
        bus.disconnect()


async def _describe(bus: MessageBus, rows: list[Any], properties_s: float) -> UnitList:
    units = {row[0]: RunningUnit(row[0], row[2], row[3], row[4], {}) for row in rows}
    paths = {row[0]: row[6] for row in rows}
    busy = [unit for unit in units.values() if unit.name.endswith(".service") and unit.load_state == "loaded"]
    busy = [unit for unit in busy if unit.active_state != "inactive"]
    waiting = sorted(busy, key=lambda unit: (unit.active_state == "active", unit.name))

    async def one_after_the_other() -> None:
        for unit in waiting:
            found = await _properties(bus, paths[unit.name])
            if found:
                units[unit.name] = replace(unit, properties=found)

    try:
        async with asyncio.timeout(properties_s):
            await one_after_the_other()
    except TimeoutError:
        pass
    return UnitList(units, sum(1 for unit in waiting if not units[unit.name].properties))


async def _properties(bus: MessageBus, path: str) -> dict[str, Any]:
    from dbus_fast.unpack import unpack_variants

    found: dict[str, Any] = {}
    for interface in ("Unit", "Service"):
        try:
            (values,) = await _call(bus, path, PROPERTIES, "GetAll", "s", [f"{SYSTEMD}.{interface}"])
        except OSError:
            continue  # it went away between the list and the question
        found |= unpack_variants(values)
    return found


async def _call(
    bus: MessageBus, path: str, interface: str, member: str, signature: str = "", body: Any = ()
) -> list[Any]:
    from dbus_fast import Message, MessageType

    message = Message(SYSTEMD, path, interface, member, signature=signature, body=list(body))
    reply: Message | None = await bus.call(message)
    if reply is None:
        raise EOFError("the bus closed the connection")
    if reply.message_type is MessageType.ERROR:
        raise OSError(f"{reply.error_name}: {reply.body[0] if reply.body else ''}")
    return list(reply.body)

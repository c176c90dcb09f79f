"""What the running systemd says of its services, asked once: the answers of `systemctl show`.

Calls over the system bus: Manager.ListUnits, then Properties.GetAll of the interfaces Unit and Service for each
service that is loaded. About 2 ms of pid 1 per service; a node has a hundred or two. No privilege is needed.
BusUnavailableError where there is no bus or no systemd on it, or it does not answer in time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zombiescope.sources.systemd import SYSTEM_BUS, BusUnavailableError, WatcherState, no_bus, socket_path

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

_SYSTEMD = "org.freedesktop.systemd1"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class RunningUnit:
    """One unit that systemd has loaded. Properties are filled in for services, and None where this systemd has none."""

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


def running_units(
    address: str | None = None, deadline_s: float = 10.0, wanted: Callable[[str], bool] | None = None
) -> dict[str, RunningUnit]:
    """Every loaded unit by name. Properties are asked for of services for which `wanted` is true."""
    address = address or os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or SYSTEM_BUS
    path = socket_path(address)
    if path is not None and not os.path.exists(path):  # noqa: PTH110 - as in systemd.py
        raise BusUnavailableError(no_bus(path))
    return asyncio.run(_ask(address, deadline_s, wanted or (lambda _: True)))


async def _ask(address: str, deadline_s: float, wanted: Callable[[str], bool]) -> dict[str, RunningUnit]:
    from dbus_fast.aio import MessageBus
    from dbus_fast.errors import AuthError, InvalidAddressError

    bus = MessageBus(bus_address=address)
    try:
        async with asyncio.timeout(deadline_s):
            await bus.connect()
            return await _list(bus, wanted)
    except TimeoutError:
        why = f"no answer from {address} within {deadline_s:g} s"
        raise BusUnavailableError(WatcherState("failed", why, "is pid 1 or the bus starved?")) from None
    except (OSError, EOFError, AuthError, InvalidAddressError) as error:
        mend = "run as root, or give the address of the host's bus in DBUS_SYSTEM_BUS_ADDRESS"
        raise BusUnavailableError(WatcherState("failed", f"{address}: {error}", mend)) from error
    finally:
        bus.disconnect()


async def _list(bus: MessageBus, wanted: Callable[[str], bool]) -> dict[str, RunningUnit]:
    (rows,) = await _call(bus, "/org/freedesktop/systemd1", f"{_SYSTEMD}.Manager", "ListUnits")
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(row: Any) -> RunningUnit:
        name, _, load_state, active_state, sub_state, _, path, *_ = row
        properties: dict[str, Any] = {}
        if name.endswith(".service") and load_state == "loaded" and wanted(name):
            async with gate:
                properties = await _properties(bus, path)
        return RunningUnit(name, load_state, active_state, sub_state, properties)

    return {unit.name: unit for unit in await asyncio.gather(*map(one, rows))}


async def _properties(bus: MessageBus, path: str) -> dict[str, Any]:
    from dbus_fast.unpack import unpack_variants

    found: dict[str, Any] = {}
    for interface in ("Unit", "Service"):
        try:
            (values,) = await _call(bus, path, _PROPERTIES, "GetAll", "s", [f"{_SYSTEMD}.{interface}"])
        except OSError:
            continue  # it went away between the list and the question
        found |= unpack_variants(values)
    return found


async def _call(
    bus: MessageBus, path: str, interface: str, member: str, signature: str = "", body: Any = ()
) -> list[Any]:
    from dbus_fast import Message, MessageType

    message = Message(_SYSTEMD, path, interface, member, signature=signature, body=list(body))
    reply: Message | None = await bus.call(message)
    if reply is None:
        raise EOFError("the bus closed the connection")
    if reply.message_type is MessageType.ERROR:
        raise OSError(f"{reply.error_name}: {reply.body[0] if reply.body else ''}")
    return list(reply.body)

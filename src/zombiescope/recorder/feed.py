"""What services beside us know: whose a pod is, and what the cluster did to it. Rows of events and containers.

A datagram socket in the runtime directory that only our own user can write to (0600, and the kernel says who sent each
datagram). What is in it was still written by strangers: names of pods and images, messages of controllers. So a
datagram is taken only in the shape that base/feed.py gives it, texts are cut, and there is a budget a second. It is
looked at once a second; a sender that finds the socket full tries again.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.feed import MAX_BYTES, MAX_ITEMS
from zombiescope.base.severity import SEVERITIES
from zombiescope.store.event import Event

MAX_A_SECOND = 4
"""Datagrams: each holds up to MAX_ITEMS things."""
SOURCE = "what services tell"
MAX_NAME = 253
MAX_TEXT = 500
MAX_FIELDS = 24
MAX_CONTAINERS = 64
LATE_US = 3_600_000_000
"""An API server that was away may tell an hour later."""
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_CREDENTIALS = struct.Struct("iII")


@dataclass(frozen=True, slots=True)
class FedContainer:
    id: str
    name: str | None
    image: str | None
    restarts: int | None


@dataclass(frozen=True, slots=True)
class FedPod:
    uid: str
    namespace: str | None
    name: str | None
    owner: str | None
    """As kubectl writes it: Deployment/web."""
    containers: tuple[FedContainer, ...] = ()


@dataclass(frozen=True, slots=True)
class FedLabels:
    """Of the node: zone, instance_type, image, pool."""

    labels: dict[str, str]


Fed = Event | FedPod | FedLabels


class FeedSocket:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.refused = 0
        with suppress(FileNotFoundError):
            path.unlink()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        before = os.umask(0o177)  # between bind and chmod anybody could open it
        try:
            self._socket.bind(str(path))
        finally:
            os.umask(before)

    def read(self, now_us: int) -> Iterator[Fed]:
        """What has arrived, as far as the budget goes; the rest waits in the socket, and its senders with it."""
        for _ in range(MAX_A_SECOND):
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(MAX_BYTES + 1, socket.CMSG_SPACE(_CREDENTIALS.size))
            except OSError:
                return
            if not _is_ours(ancillary) or flags & socket.MSG_TRUNC:
                self.refused += 1
                continue
            yield from parse(data, now_us)

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            self.path.unlink()


def _is_ours(ancillary: list[tuple[int, int, bytes]]) -> bool:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            return _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[1] in (0, os.geteuid())
    return False


def parse(data: bytes, now_us: int) -> list[Fed]:
    """Without whatever is not in the shape of base/feed.py."""
    try:
        said = _json.loads(data)
    except ValueError:
        return []
    events = [_event(one, now_us) for one in _listed(said, "events")]
    pods = [_pod(one) for one in _listed(said, "pods")]
    labels = _labels(said.get("labels")) if isinstance(said, dict) else None
    return [one for one in (*events, *pods, labels) if one is not None]


def _listed(said: object, key: str) -> list[dict[str, Any]]:
    found = said.get(key) if isinstance(said, dict) else None
    return [one for one in found[:MAX_ITEMS] if isinstance(one, dict)] if isinstance(found, list) else []


def _event(said: dict[str, Any], now_us: int) -> Event | None:
    kind, source, text = said.get("kind"), said.get("source"), _text(said.get("text"), MAX_TEXT)
    severity, at = said.get("severity"), said.get("at_us")
    if not (_is_word(kind) and _is_word(source) and severity in SEVERITIES and text):
        return None
    is_near = isinstance(at, int) and not isinstance(at, bool) and now_us - LATE_US < at <= now_us
    fields = said.get("fields")
    kept = dict(list(_fields(fields))[:MAX_FIELDS]) if isinstance(fields, dict) else {}
    return Event(at if is_near and isinstance(at, int) else now_us, str(kind), str(source), str(severity), text, kept)


def _fields(said: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in said.items():
        if not _is_word(key):
            continue
        if isinstance(value, str):
            yield key, _text(value, MAX_TEXT)
        elif value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63):
            yield key, value


def _pod(said: dict[str, Any]) -> FedPod | None:
    uid = _text(said.get("uid"), MAX_NAME)
    listed = said.get("containers")
    found = (_container(one) for one in (listed if isinstance(listed, list) else [])[:MAX_CONTAINERS])
    if uid is None:
        return None
    namespace, name, owner = (_text(said.get(key), MAX_NAME) for key in ("namespace", "name", "owner"))
    return FedPod(uid, namespace, name, owner, tuple(one for one in found if one is not None))


def _labels(said: object) -> FedLabels | None:
    if not isinstance(said, dict):
        return None
    found = {key: _text(value, MAX_NAME) for key, value in list(said.items())[:MAX_FIELDS] if _is_word(key)}
    kept = {key: value for key, value in found.items() if value}
    return FedLabels(kept) if kept else None


def _container(said: object) -> FedContainer | None:
    if not isinstance(said, dict) or (identity := _text(said.get("id"), MAX_NAME)) is None:
        return None
    restarts = said.get("restarts")
    is_count = isinstance(restarts, int) and not isinstance(restarts, bool) and 0 <= restarts < 2**31
    return FedContainer(
        identity, _text(said.get("name"), MAX_NAME), _text(said.get("image"), MAX_TEXT), restarts if is_count else None
    )


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 40 and set(value) <= _WORD


def _text(value: object, most: int) -> str | None:
    """Half of a surrogate pair is valid JSON and no Unicode: it could not be written."""
    return value[:most].encode(errors="replace").decode() if isinstance(value, str) and value else None

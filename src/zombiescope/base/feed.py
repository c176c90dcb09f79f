"""What a service knows and the recorder records: datagrams to a UNIX socket that only the recorder's user can open.

    feed = Feed()
    feed.event({"at_us": ..., "kind": "pod_evicted", "source": "kubernetes", "severity": "warning", "text": ...})
    feed.pod({"uid": ..., "namespace": ..., "name": ..., "owner": "Deployment/web", "containers": [...]})
    feed.labels({"zone": "us-east-1a"})
    feed.flush()

Beside the marks, which anybody may send and which are only text. It never raises and never waits longer than 50 ms.
What no recorder took is kept, up to a bound, and sent with the next flush. The recorder looks once a second, so many
things go into one datagram.
"""

from __future__ import annotations

import json
import os
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from zombiescope import _mark

SOCKET = "feed.sock"
MAX_BYTES = 131_072
MAX_ITEMS = 100
"""In one datagram."""
MAX_EVENTS = 1000
MAX_PODS = 4096
TIMEOUT_S = 0.05


class Feed:
    """Of the recorder that runs on this machine."""

    def __init__(self, directories: Sequence[str] | None = None) -> None:
        self._directories = directories
        self._events: deque[Mapping[str, Any]] = deque(maxlen=MAX_EVENTS)
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._labels: Mapping[str, str] = {}

    @property
    def waiting(self) -> int:
        return len(self._events) + len(self._pods) + bool(self._labels)

    def event(self, event: Mapping[str, Any]) -> None:
        """at_us, kind, source, severity, text, fields; the oldest go when no recorder takes them for long."""
        self._events.append(event)

    def pod(self, pod: Mapping[str, Any]) -> None:
        """uid (as in the paths of its cgroups), namespace, name, owner, containers (id, name, image, restarts)."""
        uid = str(pod.get("uid"))
        if uid in self._pods or len(self._pods) < MAX_PODS:
            self._pods[uid] = pod

    def labels(self, labels: Mapping[str, str]) -> None:
        """Of the node, as a fleet compares it."""
        self._labels = labels

    def flush(self) -> bool:
        """Whether a recorder took all that there was."""
        most = MAX_ITEMS
        while self._events or self._pods or self._labels:
            events = [self._events[number] for number in range(min(most, len(self._events)))]
            pods = dict(list(self._pods.items())[: most - len(events)])
            said = {"events": events, "pods": list(pods.values())}
            data = _encoded({**said, "labels": self._labels} if self._labels else said)
            if len(data) > MAX_BYTES and most > 1:
                most //= 2
                continue
            # One thing that is too large for any datagram is dropped: names of Kubernetes cannot make it so.
            if len(data) <= MAX_BYTES and not self._send(data):
                return False
            self._labels = {}
            for _ in events:
                self._events.popleft()
            for uid in pods:
                del self._pods[uid]
        return True

    def _send(self, data: bytes) -> bool:
        return any(_sent(data, place) for place in self._directories or _mark.runtime_directories())


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _sent(data: bytes, directory: str) -> bool:
    try:
        if os.lstat(directory).st_uid not in (0, os.geteuid()):  # /tmp is everybody's: somebody else made this one
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(TIMEOUT_S)
            sender.sendto(data, f"{directory}/{SOCKET}")
    except OSError:
        return False
    return True

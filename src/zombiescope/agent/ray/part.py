"""The section `ray` and its service: what Ray tells becomes events on this node's axis.

Nothing needs to be configured where a raylet's command line can be read: it says where its logs and its dashboard are.
The dashboard is asked by a thread of its own, because it may hang; what happens on this node is told meanwhile.

A command line is anybody's: to an address found there no token is sent, and a link-local one is not asked.
"""

from __future__ import annotations

import ipaddress
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zombiescope.agent.config.setting import Duration, setting
from zombiescope.agent.service import Context, Service
from zombiescope.agent.tally import Family
from zombiescope.base.errors import UserError
from zombiescope.base.feed import Feed
from zombiescope.node.ray.cluster import Cluster
from zombiescope.node.ray.dashboard import Dashboard, DashboardError, is_plain
from zombiescope.node.ray.raylet import is_address
from zombiescope.node.ray.report import Report
from zombiescope.node.ray.watch import MOST_OF_A_USER, Watch

LOOK_S = 1.0
NOBODY_LOOK_S = 5.0
"""Where no raylet runs: a new one is found as soon as that."""
HURRY_S = 60.0
HURRIED_EVERY_S = 3.0
HEAD_EVERY_S = 5.0
MOST_REPORTS = 1000
EVENTS = "zombiescope_ray_events_total"
FAMILIES = (
    Family(EVENTS, "counter", "What Ray reported on this node: nodes, jobs, workers and actors.", ("kind",), 16,
           "one for each kind of event"),
)  # fmt: skip
_HALF_MINUTE = Duration(30.0)


@dataclass(frozen=True, slots=True)
class RaySection:
    """Jobs, nodes, workers and actors of Ray, as events on the node's axis."""

    enabled: bool = setting(True, "Watch raylets on this node.")
    dashboard: str | None = setting(
        None, "http://head:8265. Default: where the raylet of this node says it is; none: off."
    )
    token_file: str | None = setting(
        None, "A file with the token of ray.dashboard, if it requires one. The token is sent only there."
    )
    plain_http: bool = setting(False, "Send the token over an unencrypted connection.")
    every: Duration = setting(
        _HALF_MINUTE,
        "How often to query the dashboard; more often on the head node and after a loss.",
        low=3,
        high=3600,
    )
    addresses: tuple[str, ...] = setting((), "Further addresses by which Ray knows this node.")

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        if self.dashboard not in (None, "none"):
            try:
                Dashboard(str(self.dashboard))
            except DashboardError as error:
                yield "ray.dashboard", error.what, error.fix
        if self.token_file is not None:
            yield from self._problems_of_token()
        for address in self.addresses:
            if not is_address(address):
                yield "ray.addresses", f"has {address!r}, which is not an address", "write 10.0.0.7"

    def _problems_of_token(self) -> Iterator[tuple[str, str, str | None]]:
        if self.dashboard in (None, "none"):
            yield (
                "ray.token_file",
                "is set without ray.dashboard",
                ("set ray.dashboard to the dashboard that the token is for"),
            )
        elif not self.plain_http and is_plain(str(self.dashboard)):
            fix = "use https://, or set ray.plain_http: true where that network is yours"
            yield "ray.token_file", "would be sent to ray.dashboard unencrypted", fix


def services(section: RaySection) -> Sequence[Service]:
    return (RayService(section),) if section.enabled else ()


@dataclass(slots=True)
class RayService:
    section: RaySection
    name: str = "ray"
    look_s: float = LOOK_S
    make_feed: Callable[[], Feed] = Feed

    def run(self, context: Context, stop: threading.Event) -> None:
        watch, feed = Watch(self.section.addresses), self.make_feed()
        asker = _Asker(self.section, context, stop)
        context.say("ok", "")
        context.beat(NOBODY_LOOK_S)
        try:
            while not stop.is_set():
                now_us = time.time_ns() // 1000
                reports = watch.look(now_us)
                asker.follow(watch)
                if watch.left_out:
                    context.say("degraded", f"raylets of one user report more than {MOST_OF_A_USER} things a minute")
                reports += [told for report in asker.reports() for told in watch.told(report)]
                for report in reports:
                    context.count(EVENTS, 1, report.kind)
                    feed.event(as_event(report))
                feed.flush()
                wait_s = self.look_s if watch.raylets else max(self.look_s, NOBODY_LOOK_S)
                context.worked()
                context.beat(wait_s)
                stop.wait(wait_s)
        finally:
            watch.close()


def as_event(report: Report) -> dict[str, object]:
    """As the recorder takes it."""
    return {
        "at_us": report.at_us, "kind": report.kind, "source": "ray", "severity": report.severity, "text": report.text,
        "fields": report.fields,
    }  # fmt: skip


def _found(place: str | None) -> str | None:
    """The address that a raylet names, as Ray gives it: numbers. Link-local ones are a cloud's metadata."""
    host = (place or "").rpartition(":")[0].strip("[]")
    if not is_address(host):
        return None
    address = ipaddress.ip_address(host)
    return None if address.is_link_local or address.is_multicast or address.is_unspecified else f"http://{place}"


class _Asker:
    """Asks the dashboard in a thread of its own; started when one is known."""

    def __init__(self, section: RaySection, context: Context, stop: threading.Event) -> None:
        self._section = section
        self._context = context
        self._stop = stop
        self._found: queue.Queue[Report] = queue.Queue(MOST_REPORTS)
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._hurry_until = 0.0
        self._every_s: float = section.every
        self._url: str | None = None

    def follow(self, watch: Watch) -> None:
        """Whom to ask, and how soon."""
        url = self._section.dashboard or _found(watch.dashboard)
        self._every_s = min(HEAD_EVERY_S, self._section.every) if watch.is_head else self._section.every
        if watch.hurry:
            watch.hurry = False
            self._hurry_until = time.monotonic() + HURRY_S
            self._wake.set()
        if url is not None and url != "none":
            self._url = url
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ray dashboard", daemon=True)
                self._thread.start()

    def reports(self) -> Iterator[Report]:
        while True:
            try:
                yield self._found.get_nowait()
            except queue.Empty:
                return

    def _run(self) -> None:
        asked: str | None = None
        cluster: Cluster | None = None
        while not self._stop.is_set():
            try:
                if cluster is None or asked != self._url:
                    asked = self._url
                    token = self._token() if asked == self._section.dashboard else None
                    cluster = Cluster(Dashboard(str(asked), token))
                for report in cluster.ask(time.time_ns() // 1000):
                    if not self._found.full():
                        self._found.put_nowait(report)
                self._context.say("ok", "")
            except (UserError, OSError) as error:
                self._context.say("degraded", str(error))
            except Exception as error:  # noqa: BLE001  whatever it answered, it is asked again
                cluster = None
                self._context.say("degraded", f"{asked} answers what is not understood ({type(error).__name__})")
            self._pause()

    def _pause(self) -> None:
        hurried = time.monotonic() < self._hurry_until
        self._wake.wait(HURRIED_EVERY_S if hurried else self._every_s)
        self._wake.clear()

    def _token(self) -> str | None:
        """Raises OSError."""
        return Path(self._section.token_file).read_text("utf-8").strip() if self._section.token_file else None

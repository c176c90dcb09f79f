"""The section `webhook` and its service: reports incidents and parts that fail to a receiver, at a bounded rate."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from zombiescope.agent import node_parts
from zombiescope.agent.config.setting import Duration, setting
from zombiescope.agent.incidents import IncidentWatch
from zombiescope.agent.part_watch import PartChange, PartWatch
from zombiescope.agent.post import Outcome, post
from zombiescope.agent.service import Context, Service
from zombiescope.agent.tally import Family
from zombiescope.agent.webhook.alert import PART_SEVERITY, RUNBOOKS, Alert, of_incident, of_part, part_of
from zombiescope.agent.webhook.messages import FORMATS, HOLDS_S
from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.base.http_client import is_address
from zombiescope.base.severity import rank

POLL_S = 2.0
FIRST_WAIT_S, MOST_WAIT_S = 2.0, 300.0
ANSWER_TIMES = 2.0
"""To connect and to answer: each may take the whole time limit."""
SENT = "zombiescope_webhook_alerts_total"
WAITING = "zombiescope_webhook_alerts_waiting"
FAMILIES = (
    Family(SENT, "counter", "Alerts for the webhook: accepted, refused, or dropped because too many waited.",
           ("result",), 3, "accepted, refused, dropped"),
    Family(WAITING, "gauge", "Alerts that wait for the webhook."),
)  # fmt: skip
_TENTH_MINUTE = Duration(10.0)
_ANSWER = Duration(10.0)


@dataclass(frozen=True, slots=True)
class WebhookSection:
    """Alerts to a webhook, for people without Prometheus."""

    url: str | None = setting(None, "Address that receives alerts. Default: none.")
    url_file: str | None = setting(None, "A file with that address, if it is secret (as Slack's is).")
    format: str = setting(
        "webhook",
        "webhook: as Alertmanager's webhooks; alertmanager: its API (/api/v2/alerts); slack: blocks and text; "
        "pagerduty: Events v2; opsgenie: its alert API, which Jira Service Management has too; "
        "otlp: log records for a collector (http://collector:4318/v1/logs).",
        choices=tuple(FORMATS),
    )
    key_file: str | None = setting(
        None, "A file with PagerDuty's routing key or Opsgenie's API key; for the other formats a bearer token."
    )
    least: str = setting("warning", "Lowest severity to send.", choices=("info", "warning", "critical"))
    every: Duration = setting(
        _TENTH_MINUTE, "At most one message in this time; later incidents go into the next message.", low=1, high=3600
    )
    timeout: Duration = setting(_ANSWER, "How long to wait for the receiver's answer.", low=1, high=60)
    runbooks: str = setting(
        RUNBOOKS,
        "Where the pages of the patterns are published, for the link of each alert: https://wiki.example.org/patterns.",
    )
    page: str | None = setting(
        None,
        "Where the node's page is served, for a link to the incident; {node} is replaced: https://zs.example.org/{node}.",
    )

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        if self.url is not None and self.url_file is not None:
            yield "webhook.url_file", "is set together with webhook.url", "remove one of them"
        if self.url is not None and not is_address(self.url):
            yield "webhook.url", "is not an address", "write http://host:port/path or https://host/path"
        if self.page is not None and not is_address(self.page.replace("{node}", "node")):
            yield "webhook.page", "is not an address", "write https://host/path; {node} in it is replaced"
        if FORMATS[self.format].needs_key and self.key_file is None:
            yield "webhook.key_file", "is missing", f"{self.format} needs a key: name the file that holds it"

    @property
    def is_on(self) -> bool:
        return any((self.url, self.url_file, self.key_file and FORMATS[self.format].default_url))


def services(section: WebhookSection) -> Sequence[Service]:
    return (WebhookService(section),) if section.is_on else ()


@dataclass(slots=True)
class WebhookService:
    section: WebhookSection
    name: str = "webhook"
    send: Callable[[str, bytes, Mapping[str, str], float], Outcome] = post
    poll_s: float = POLL_S
    _repeat_s: float = 0.0
    _repeat_parts_s: float = 0.0

    def run(self, context: Context, stop: threading.Event) -> None:
        form, url, key = FORMATS[self.section.format], self._url(), self._key()
        watch = IncidentWatch(context.node_dir)
        outbox = Outbox(context.node_dir / "agent" / "webhook.json")
        reported = (part_of(identity) for identity in outbox.open_ones)
        down = PartWatch(partial(node_parts.news, context.node_dir, context.health), filter(None, reported))
        wait_s, next_s = FIRST_WAIT_S, 0.0
        context.say("ok")
        context.beat(self.poll_s)
        while not stop.wait(self.poll_s):
            context.beat(self.poll_s)
            self._collect(watch, outbox, context)
            self._collect_parts(down, outbox, context)
            context.tally.set(WAITING, len(outbox))
            alerts = outbox.next()[: 1 if form.alone else None]
            if not alerts or time.monotonic() < next_s:
                continue
            context.beat(ANSWER_TIMES * self.section.timeout + self.poll_s)
            message = form.message(alerts, url, key)
            outcome = self.send(message.url, message.body, message.headers, self.section.timeout)
            if outcome.kind == "later":
                context.say("degraded", f"{outcome.why}; it is tried again")
                next_s = time.monotonic() + max(wait_s, outcome.wait_s or 0.0)
                wait_s = min(2 * wait_s, MOST_WAIT_S)
                continue
            outbox.sent(alerts)
            context.count(SENT, len(alerts), outcome.kind)
            context.say(*(("ok", "") if outcome.kind == "accepted" else ("degraded", outcome.why)))
            context.worked(outcome.kind == "accepted")
            wait_s = FIRST_WAIT_S
            # Where a message is one alert, those that wait together still go together.
            next_s = time.monotonic() + (0.0 if form.alone and len(outbox) else self.section.every)

    def _collect(self, watch: IncidentWatch, outbox: Outbox, context: Context) -> None:
        dropped = outbox.dropped
        changes = watch.poll()
        for change in changes:
            self._put(change.incident, outbox, context)
        # Those whose end nobody told, because it came while no agent ran.
        for identity in outbox.open_ones if changes else ():
            if identity in watch.known:
                self._put(watch.known[identity], outbox, context)
        if self.section.format == "alertmanager" and time.monotonic() >= self._repeat_s:
            self._repeat_s = time.monotonic() + HOLDS_S / 3
            for incident in (one for one in watch.known.values() if one.get("state") == "open"):
                if str(incident.get("id")) in outbox.open_ones:
                    outbox.put_again(self._alert(incident, context))
        if outbox.dropped > dropped:
            context.count(SENT, outbox.dropped - dropped, "dropped")

    def _collect_parts(self, down: PartWatch, outbox: Outbox, context: Context) -> None:
        if rank(PART_SEVERITY) < rank(self.section.least):
            return
        for change in down.poll():
            outbox.put(of_part(change, context.node))
        if self.section.format == "alertmanager" and time.monotonic() >= self._repeat_parts_s:
            self._repeat_parts_s = time.monotonic() + HOLDS_S / 3
            for part in down.failed.values():
                outbox.put_again(of_part(PartChange("failed", part, ""), context.node))

    def _put(self, incident: dict[str, object], outbox: Outbox, context: Context) -> None:
        if rank(str(incident.get("severity"))) >= rank(self.section.least):
            outbox.put(self._alert(incident, context))

    def _alert(self, incident: dict[str, object], context: Context) -> Alert:
        return of_incident(incident, context.node, self.section.runbooks, self.section.page or "")

    def _key(self) -> str:
        """Raises UserError."""
        if self.section.key_file is None:
            return ""
        key = _line_of(self.section.key_file, "webhook.key_file names a file with the key")
        if not key.isascii() or not key.isprintable() or " " in key or not key:
            raise UserError(f"{self.section.key_file} holds no key", "it must be one line without spaces")
        return key

    def _url(self) -> str:
        """Raises UserError."""
        if self.section.url is not None:
            return self.section.url
        if self.section.url_file is None:
            return FORMATS[self.section.format].default_url or ""
        url = _line_of(self.section.url_file, "webhook.url_file names a file with the address")
        if not is_address(url):
            raise UserError(f"{self.section.url_file} holds no address", "it must be one line: https://host/path")
        return url


def _line_of(path: str, fix: str) -> str:
    """Raises UserError."""
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UserError(f"{path}: {why}", fix) from None


# --- outbox -----------------------------------------------------------------------------------------------------------
# What is still to be told, and what was: each incident when it begins, when it is worse, and when it is over.
#
# Only the newest state of an incident waits: one that began and ended while the receiver was away is told as it is.
# What was told is kept in a file, so that a restart tells nothing twice and no end is forgotten.

MOST = 200
TOGETHER = 20


class Outbox:
    """`path` None: nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._told: dict[str, dict[str, Any]] = _load(path)
        self._waiting: dict[str, Alert] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, alert: Alert) -> None:
        """If there is something to tell."""
        before = self._told.get(alert.incident)
        if not _is_news(alert, before):
            self._waiting.pop(alert.incident, None)
            return
        self._waiting[alert.incident] = alert
        while len(self._waiting) > MOST:
            self._waiting.pop(next(iter(self._waiting)))
            self.dropped += 1

    def put_again(self, alert: Alert) -> None:
        """Though it was told: a receiver that forgets what is not repeated."""
        self._waiting.setdefault(alert.incident, alert)

    def next(self) -> list[Alert]:
        """What goes into the next message, the oldest first."""
        return list(self._waiting.values())[:TOGETHER]

    def sent(self, alerts: list[Alert]) -> None:
        """They were taken, or refused for good."""
        for alert in alerts:
            self._told.pop(alert.incident, None)
            self._told[alert.incident] = {"status": alert.status, "severity": alert.severity}
            if self._waiting.get(alert.incident) is alert:
                del self._waiting[alert.incident]
        while len(self._told) > 2 * MOST:
            self._told.pop(next(iter(self._told)))
        self._save()

    @property
    def open_ones(self) -> list[str]:
        """Incidents that were told as going on, and whose end was not told."""
        return [identity for identity, told in self._told.items() if told.get("status") == "firing"]

    def _save(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o750, exist_ok=True)
            safe_files.replace(self._path, json.dumps(self._told).encode())
        except OSError:
            return  # a full disk: told twice after a restart is better than not at all


def _is_news(alert: Alert, before: dict[str, Any] | None) -> bool:
    if before is None:
        return alert.status == "firing" or rank(alert.severity) > 0
    if alert.status == "resolved":
        return before.get("status") == "firing"
    return before.get("status") != "firing" or rank(alert.severity) > rank(str(before.get("severity")))


def _load(path: Path | None) -> dict[str, dict[str, Any]]:
    try:
        known = _json.loads(path.read_bytes()) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return (
        {str(key): value for key, value in known.items() if isinstance(value, dict)} if isinstance(known, dict) else {}
    )

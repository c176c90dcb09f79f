"""Alerts as one message, in the form that the receiver knows.

webhook, alertmanager, slack and otlp take many alerts at once; pagerduty and opsgenie take one, and a key that says
whose it is. Every form carries the incident's id, so that the receiver knows the end of an alert by its beginning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from zombiescope.agent.webhook.alert import Alert, timestamp

NEVER = "0001-01-01T00:00:00Z"
"""How Alertmanager writes that something has not ended."""
HOLDS_S = 3600.0
"""An alert of the API that is not sent again is over after this time, should we die with the node."""
_MARKS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:"}
SLACK_CHARACTERS = 3500
SLACK_BLOCK_CHARACTERS = 2900
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
OPSGENIE = "https://api.opsgenie.com"
_PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}
_OTLP_SEVERITIES = {"critical": (21, "FATAL"), "warning": (13, "WARN"), "info": (9, "INFO")}
OPSGENIE_MESSAGE, PAGERDUTY_SUMMARY = 130, 1024


@dataclass(frozen=True, slots=True)
class Message:
    """One POST."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """`message` is given the alerts, the address and the key. `default_url`: where its service listens."""

    message: Callable[[Sequence[Alert], str, str], Message]
    alone: bool = False
    """One alert a message."""
    needs_key: bool = False
    default_url: str | None = None


def webhook(alerts: Sequence[Alert]) -> bytes:
    """Alertmanager's webhook, version 4: what bridges to pagers and chats read."""
    labels = _common([one.labels for one in alerts])
    message = {
        "version": "4",
        "groupKey": f'{{}}:{{node="{alerts[0].node}"}}',
        "truncatedAlerts": 0,
        "status": _status(alerts),
        "receiver": "zombiescope",
        "groupLabels": {"node": alerts[0].node},
        "commonLabels": labels,
        "commonAnnotations": _common([one.annotations for one in alerts]),
        "externalURL": "",
        "alerts": [_alert(one) for one in alerts],
    }
    return json.dumps(message).encode()


def alertmanager(alerts: Sequence[Alert]) -> bytes:
    """The body of POST /api/v2/alerts."""
    return json.dumps([_posted(one) for one in alerts]).encode()


def slack(alerts: Sequence[Alert]) -> bytes:
    """Blocks for Slack; Mattermost and Rocket.Chat show the text."""
    blocks = [block for one in alerts for block in _blocks(one)]
    return json.dumps({"text": "\n".join(_line(one) for one in alerts)[:SLACK_CHARACTERS], "blocks": blocks}).encode()


def otlp(alerts: Sequence[Alert]) -> bytes:
    """An ExportLogsServiceRequest in OTLP's JSON: a log record with an event name for each change of an incident."""
    attributes = {"service.name": "zombiescope", "host.name": alerts[0].node}
    records = [_log_record(one) for one in alerts]
    scope = {"scope": {"name": "zombiescope"}, "logRecords": records}
    return json.dumps(
        {"resourceLogs": [{"resource": {"attributes": _otlp(attributes)}, "scopeLogs": [scope]}]}
    ).encode()


def pagerduty(alerts: Sequence[Alert], url: str, key: str) -> Message:
    """Events API v2. The end of an incident resolves what its beginning triggered."""
    (one,) = alerts
    event: dict[str, Any] = {"routing_key": key, "dedup_key": one.fingerprint, "client": "zombiescope"}
    if one.status == "resolved":
        return Message(url, json.dumps({**event, "event_action": "resolve"}).encode())
    links = [{"href": href, "text": text} for href, text in _links(one)]
    event |= {
        "event_action": "trigger",
        "links": links,
        "payload": {
            "summary": one.summary[:PAGERDUTY_SUMMARY],
            "source": one.node,
            "severity": one.severity,
            "timestamp": timestamp(one.starts_s),
            "component": one.node,
            "class": one.cause,
            "custom_details": {"incident": one.incident, **one.annotations},
        },
    }
    return Message(url, json.dumps(event | ({"client_url": one.link} if one.link else {})).encode())


def opsgenie(alerts: Sequence[Alert], url: str, key: str) -> Message:
    """Alert API. `url` is its base, so that Jira Service Management works too."""
    (one,) = alerts
    headers, base = {"Authorization": f"GenieKey {key}"}, f"{url.rstrip('/')}/v2/alerts"
    if one.status == "resolved":
        place = f"{base}/{quote(one.fingerprint, safe='')}/close?identifierType=alias"
        return Message(place, json.dumps({"source": "zombiescope", "note": one.summary}).encode(), headers)
    document = {
        "message": _cut(f"{one.node}: {one.summary}", OPSGENIE_MESSAGE),
        "alias": one.fingerprint,
        "description": "\n".join(text for text in (one.summary, one.description, one.fix, one.link) if text),
        "entity": one.node,
        "source": "zombiescope",
        "priority": _PRIORITIES.get(one.severity, "P3"),
        "tags": [one.cause],
        "details": {**one.labels, **one.annotations},
    }
    return Message(base, json.dumps(document).encode(), headers)


def _posting(body: Callable[[Sequence[Alert]], bytes]) -> Callable[[Sequence[Alert], str, str], Message]:
    return lambda alerts, url, key: Message(url, body(alerts), {"Authorization": f"Bearer {key}"} if key else {})


FORMATS: dict[str, Format] = {
    "webhook": Format(_posting(webhook)),
    "alertmanager": Format(_posting(alertmanager)),
    "slack": Format(_posting(slack)),
    "otlp": Format(_posting(otlp)),
    "pagerduty": Format(pagerduty, alone=True, needs_key=True, default_url=PAGERDUTY),
    "opsgenie": Format(opsgenie, alone=True, needs_key=True, default_url=OPSGENIE),
}


def _status(alerts: Sequence[Alert]) -> str:
    return "firing" if any(one.status == "firing" for one in alerts) else "resolved"


def _common(sets: Sequence[dict[str, str]]) -> dict[str, str]:
    first, *others = sets
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}


def _alert(one: Alert) -> dict[str, Any]:
    return {
        "status": one.status,
        "labels": one.labels,
        "annotations": one.annotations,
        "startsAt": timestamp(one.starts_s),
        "endsAt": NEVER if one.ends_s is None else timestamp(one.ends_s),
        "generatorURL": one.link,
        "fingerprint": one.fingerprint,
    }


def _posted(one: Alert) -> dict[str, Any]:
    # Routes need the severity as a label, and labels are who an alert is: one that gets worse is another alert there,
    # and the first one runs out.
    ends_s = time.time() + HOLDS_S if one.ends_s is None else one.ends_s
    return {
        "labels": one.labels,
        "annotations": one.annotations,
        "startsAt": timestamp(one.starts_s),
        "endsAt": timestamp(ends_s),
        **({"generatorURL": one.link} if one.link else {}),
    }


def _log_record(one: Alert) -> dict[str, Any]:
    number, text = _OTLP_SEVERITIES.get(one.severity, (0, ""))
    at_s = one.starts_s if one.ends_s is None else one.ends_s
    attributes = {"incident.status": one.status, **one.labels, **one.annotations} | (
        {"url": one.link} if one.link else {}
    )
    return {
        "timeUnixNano": str(int(at_s * 1e9)),
        "observedTimeUnixNano": str(time.time_ns()),
        "severityNumber": number,
        "severityText": text,
        "eventName": "zombiescope.incident",
        "body": {"stringValue": one.summary},
        "attributes": _otlp({f"zombiescope.{name}": value for name, value in attributes.items()}),
    }


def _otlp(attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]


def _links(one: Alert) -> list[tuple[str, str]]:
    """What a receiver may link to: whole addresses only."""
    known = ((one.link, "the incident"), (one.runbook, "what to do"))
    return [(href, text) for href, text in known if href.startswith("http")]


def _blocks(one: Alert) -> list[dict[str, Any]]:
    """At most two for an alert: Slack takes 50."""
    said = [_line(one, links=False)]
    if one.status == "firing":
        said += [f"*Fix* {_escape(one.fix)}"] if one.fix else []
    blocks: list[dict[str, Any]] = [_section("\n".join(said))]
    links = [f"<{href}|{text}>" for href, text in _links(one)]
    if one.status == "firing" and (links or one.description):
        context = " · ".join([*links, *([_escape(one.description)] if one.description else [])])
        blocks.append({"type": "context", "elements": [_text(context)]})
    return blocks


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _text(text)}


def _text(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": _cut(text, SLACK_BLOCK_CHARACTERS)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _line(one: Alert, *, links: bool = True) -> str:
    if one.status == "resolved":
        return f":white_check_mark: *over* on {_escape(one.node)}: {_escape(one.summary)}"
    mark = _MARKS.get(one.severity, ":information_source:")
    shown = "".join(f" (<{href}|{text}>)" for href, text in _links(one)) if links else ""
    return f"{mark} *{_escape(one.severity)}* on {_escape(one.node)}: {_escape(one.summary)}{shown}"


def _escape(text: str) -> str:
    """Slack reads <...> as links and mentions: no name of a process may call everybody. Nor may it set type."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("*", "∗").replace("`", "ˋ").replace("@", "@\u200b")

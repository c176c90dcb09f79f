"""Alerts as the body of one message, in the form that the receiver knows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from zombiescope.agent.webhook.alert import Alert, timestamp

NEVER = "0001-01-01T00:00:00Z"
"""How Alertmanager writes that something has not ended."""
HOLDS_S = 3600.0
"""An alert of the API that is not sent again is over after this time, should we die with the node."""
_MARKS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:"}
SLACK_CHARACTERS = 3500


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
    """Text that Slack, Mattermost and Rocket.Chat show."""
    return json.dumps({"text": "\n".join(_line(one) for one in alerts)[:SLACK_CHARACTERS]}).encode()


FORMATS: dict[str, Callable[[Sequence[Alert]], bytes]] = {
    "webhook": webhook,
    "alertmanager": alertmanager,
    "slack": slack,
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
        "generatorURL": "",
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
    }


def _line(one: Alert) -> str:
    if one.status == "resolved":
        return f":white_check_mark: *over* on {_escape(one.node)}: {_escape(one.summary)}"
    mark = _MARKS.get(one.severity, ":information_source:")
    runbook = f" (<{one.runbook}|what to do>)" if one.runbook.startswith("http") else ""
    return f"{mark} *{_escape(one.severity)}* on {_escape(one.node)}: {_escape(one.summary)}{runbook}"


def _escape(text: str) -> str:
    """Slack reads <...> as links and mentions: no name of a process may call everybody. Nor may it set type."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("*", "∗").replace("`", "ˋ").replace("@", "@\u200b")

"""Findings as SARIF 2.1.0, which code hosts show beside the files of an image's sources.

A location is the path inside the audited root, relative to the base id ROOT. What the running systemd answered is in
no file: such a finding is put to the unit's name below /etc/systemd/system, because hosts show only results with a
place. An accepted finding is there too, as suppressed, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from zombiescope.audit import rules
from zombiescope.audit.baseline import Allowed
from zombiescope.audit.finding import Audit, EvidenceLine, Finding
from zombiescope.base.text import printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LINK = re.compile(r"[\\\[\]]")
_LEVELS = {"info": "note", "warning": "warning", "critical": "error"}


def document(
    audit: Audit, version: str, findings: Iterable[Finding], allowed: Iterable[tuple[Finding, Allowed]] = ()
) -> dict[str, Any]:
    """One run. `findings` are the new ones."""
    known = rules.every()
    positions = {rule.ID: number for number, rule in enumerate(known)}
    results = [_result(finding, positions, None) for finding in findings]
    results += [_result(finding, positions, line) for finding, line in allowed]
    driver = {
        "name": "zombiescope audit",
        "version": version,
        "rules": [
            {
                "id": rule.ID,
                "shortDescription": {"text": rule.TITLE},
                "fullDescription": {"text": " ".join((rule.__doc__ or "").split())},
                "help": {"text": f"zombiescope audit, rule {rule.ID}: docs/commands/audit.md"},
            }
            for rule in known
        ],
    }
    notifications = [
        {"level": "note", "message": {"text": _plain(f"{item.source}: {item.why}; {item.grant}")}}
        for item in audit.missing
    ]
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {"ROOT": {"description": {"text": "the root directory that was audited"}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, positions: dict[str, int], line: Allowed | None) -> dict[str, Any]:
    places = [_location(item) for item in finding.evidence if item.file.startswith("/")]
    unit = finding.unit or "system.conf"
    places = places or [_location(EvidenceLine(f"/etc/systemd/system/{unit}", None, ""))]
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": positions[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": places[:1],
        "partialFingerprints": {"zombiescopeFinding/v1": finding.id},
    }
    if places[1:]:
        result["relatedLocations"] = [{"id": number, **place} for number, place in enumerate(places[1:], 1)]
    if line is not None:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": line.reason}]
    return result


def _message(finding: Finding) -> str:
    unit = f"{finding.unit}: " if finding.unit else ""
    return "\n".join(_plain(line) for line in (f"{unit}{finding.why}", *finding.fix))


def _plain(text: str) -> str:
    """A message may hold links, [text](target): brackets in a name are no link (SARIF 2.1.0, 3.11.6)."""
    return _LINK.sub(r"\\\g<0>", printable(text))


def _location(item: EvidenceLine) -> dict[str, Any]:
    name = item.file.lstrip("/").encode("utf-8", "surrogateescape")
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(name), "uriBaseId": "ROOT"}}
    place["region"] = {"startLine": item.line or 1}  # code hosts leave out results without a line
    location: dict[str, Any] = {"physicalLocation": place}
    if item.text:
        location["message"] = {"text": _plain(item.text)}
    return location

"""Session scopes that come and go, or stay: one cgroup for each login, of cron jobs too where PAM opens a session.

On a running node the scopes are counted. In files: cron entries that run at least every ten minutes, where the
service file of cron in /etc/pam.d leads to pam_systemd (Red Hat's does, Debian's does not).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.node.systemd.root import Root

ID = "session-churn"
TITLE = "Session scopes that churn cgroups, or pile up"

MANY_SESSIONS = 200
MANY_ABANDONED = 20
OFTEN_PER_DAY = 144

_ENTRY = re.compile(r"\s*([-*/,\d]+)\s+([-*/,\d]+)\s+([-*/,\w]+)\s+([-*/,\w]+)\s+([-*/,\w]+)\s+(\S+)\s+(\S.*)")


def find(node: Node) -> Iterator[Finding]:
    yield from _scopes(node)
    yield from _cron(node)


def _scopes(node: Node) -> Iterator[Finding]:
    scopes = [
        unit for name, unit in (node.running or {}).items() if name.startswith("session-") and name.endswith(".scope")
    ]
    abandoned = [unit for unit in scopes if unit.sub_state == "abandoned"]
    if len(scopes) < MANY_SESSIONS and len(abandoned) < MANY_ABANDONED:
        return
    yield Finding(
        id=ID,
        rule=ID,
        unit=None,
        severity="warning",
        why=f"{len(scopes):,} session scopes exist, {len(abandoned):,} of them abandoned: each is a cgroup that "
        "kubelet and systemd walk, and pid 1 slows down with them (systemd 37880).",
        evidence=(EvidenceLine("systemd: session scopes", None, f"{len(scopes)} loaded, {len(abandoned)} abandoned"),),
        fix=("loginctl list-sessions", "systemctl list-units --type=scope --state=abandoned"),
    )


def _cron(node: Node) -> Iterator[Finding]:
    service = next((name for name in ("crond.service", "cron.service") if name in node.starts), None)
    if service is None:
        return
    session = _opens_session(node.root, f"/etc/pam.d/{service.removesuffix('.service')}")
    if session is None:
        return
    entries = [entry for entry in _entries(node.root) if entry[1] >= OFTEN_PER_DAY]
    if not entries:
        return
    total = sum(runs for _, runs in entries)
    yield Finding(
        id=f"{ID}:{service}",
        rule=ID,
        unit=service,
        severity="warning" if total >= 1440 else "info",
        why=f"cron starts {total:,.0f} jobs a day, and each opens a login session: "
        "as many scopes, which are cgroups, are made and removed.",
        evidence=(*(where for where, _ in entries), session),
        fix=("# run them less often, or take pam_systemd out of the PAM service of cron",),
    )


def _entries(root: Root) -> list[tuple[EvidenceLine, float]]:
    paths = ["/etc/crontab", *(f"/etc/cron.d/{name}" for name in root.names("/etc/cron.d") if "." not in name)]
    found = []
    for path in paths:
        for number, line in enumerate((root.read(path) or b"").decode("utf-8", "replace").splitlines(), 1):
            runs = _runs_per_day(line)
            if runs is not None:
                found.append((EvidenceLine(path, number, line.strip()), runs))
    return found


def _runs_per_day(line: str) -> float | None:
    entry = _ENTRY.match(line)
    if entry is None or line.lstrip().startswith("#"):
        return None
    minutes, hours = _count(entry[1], 60), _count(entry[2], 24)
    everyday = entry[3] == entry[4] == entry[5] == "*"
    return None if minutes is None or hours is None else minutes * hours * (1.0 if everyday else 0.2)


def _count(text: str, width: int) -> int | None:
    values: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        begin, _, end = span.partition("-")
        try:
            first = 0 if begin == "*" else int(begin)
            last = width - 1 if begin == "*" else int(end) if end else first
            values |= set(range(first, min(last, width) + 1, max(1, int(step or 1))))
        except ValueError:
            return None
    return len(values)


def _opens_session(root: Root, path: str) -> EvidenceLine | None:
    """The line of PAM by which cron's jobs get a session of logind; None where they do not. A file counts once,
    however often others include it."""
    seen: set[str] = set()
    left = [path]
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        included = []
        for number, line in enumerate((root.read(one) or b"").decode("utf-8", "replace").splitlines(), 1):
            words = line.partition("#")[0].split()
            is_session = bool(words) and words[0].lstrip("-") == "session"
            if is_session and "pam_systemd.so" in words:
                return EvidenceLine(one, number, line.strip())
            if len(words) >= 2 and words[0] == "@include":
                included.append(f"/etc/pam.d/{words[1]}")
            elif len(words) >= 3 and is_session and words[1] in ("include", "substack"):
                included.append(f"/etc/pam.d/{words[2]}")
        left += reversed(included)
    return None

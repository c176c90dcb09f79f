"""Login sessions or scopes are left behind, and systemd, logind and D-Bus carry all of them around."""

from __future__ import annotations

import re

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import charged
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured
from zombiescope.diagnosis.thresholds import SESSIONS_CORES, SESSIONS_LITTLE_CORES, SESSIONS_MANY
from zombiescope.model.plans.step import advice, command
from zombiescope.query.cgroups import Leak

WHO = ("systemd", "systemd-logind", "(sd-pam)", "dbus-daemon", "dbus-broker", "elogind-daemon")
_SESSION = re.compile(r"(session-|user-|run-r|run-u|run-p|user@)[^/]*\.(scope|slice|service)")


def examine(case: Case) -> Evidence:
    used = case.cores_of(*WHO)
    sampled = len(case.facts.samples) > 0
    says = None if used >= SESSIONS_LITTLE_CORES else False
    found = [cpu_used("systemd, logind and D-Bus used {}", used if sampled else None, says)]
    left = _left_behind(case)
    if left is not None and used >= SESSIONS_CORES:
        found.append(left)
    return Evidence(
        tuple(found),
        _opener(case),
        "systemd and D-Bus are busy with sessions and scopes that were left behind",
        Fix(
            "end unused sessions, and fix what opens them",
            (
                command("loginctl list-sessions", "those in state closing are left behind; the others are people's"),
                command("systemctl list-units --type=scope --state=abandoned", "scopes whose session is over"),
                advice(
                    "end those one by one, by their number, once their processes are known: ending a session kills all "
                    "that runs in it, including jobs left running on purpose",
                    "stop-gap",
                ),
                advice("monitoring by ssh: keep one connection (ControlMaster), do not log in for every check"),
            ),
        ),
    )


def _opener(case: Case) -> Actor | None:
    line = _worst(case)
    return None if line is None else case.blamed(charged(case.facts, line))


def _worst(case: Case) -> Leak | None:
    lines = [line for line in case.cgroups.leaks if _SESSION.search(line.path) and line.created]
    return max(lines, key=lambda line: (line.created or 0) - (line.removed or 0), default=None)


def _left_behind(case: Case) -> Measurement | None:
    """Session scopes that were made and not removed since the recorder started."""
    worst = _worst(case)
    if worst is None:
        return None
    left = (worst.created or 0) - (worst.removed or 0)
    text = f"{worst.created:,} scopes were created at {worst.path}, {left:,} of them still exist"
    return measured(text, worst.created, "cgroups", "leaks", True if left >= SESSIONS_MANY else None)


PATTERN = Pattern(
    id="session-leak",
    title="Abandoned login sessions keep systemd busy",
    proof="literature",
    looks_like="pid 1 at 50 to 90% of a core, D-Bus calls that time out, thousands of sessions in state closing: each "
    "login by ssh or cron left a scope behind.",
    confirmed_by="500 or more session scopes were created and not removed, and systemd, logind and D-Bus use 0.4 of a "
    "CPU.",
    refuted_by="systemd, logind and D-Bus together used less than 0.1 of a CPU.",
    remedy="Terminate the sessions, and fix what opens them (monitoring by ssh, cron).",
    stop_gap="end sessions in state closing one by one, after checking whose they are",
    examine=examine,
    hog="systemd (pid 1), systemd-logind or the D-Bus daemon.",
    culprit="The process that opens them, if the recorder saw it create them. systemd only manages the sessions; the "
    "journal shows who logs in.",
    known_from="systemd 8015, 1961, 20198, 37880",
)

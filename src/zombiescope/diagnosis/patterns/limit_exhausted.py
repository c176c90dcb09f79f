"""No more processes or files: a limit of the kernel, or of one cgroup, is reached, and fork() or open() fails."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.announced import announced, evidence, fix_of
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.kernel.log_kinds import PIDS_FIX
from zombiescope.model.plans.step import Step, command, note

WHO = {
    "tasks": command("ps -eLo user,comm --no-headers | sort | uniq -c | sort -rn | head", "whose they are"),
    "open files": command(
        "find /proc/[0-9]*/fd -type l 2>/dev/null | awk -F/ '{print $3}' | sort | uniq -c | sort -rn | head",
        "which processes have them open",
    ),
}


def examine(case: Case) -> Evidence:
    line = announced(case, "limit-exhausted")
    if line is not None:
        cgroup = str(line.facts.get("cgroup") or "").strip()
        return evidence(line, fix_of(PIDS_FIX, line.facts), Actor(cgroup=cgroup) if cgroup else None)
    found = [one for one in case.of_kind("near_limit") if one.facts["what"] in WHO]
    if not found:
        return Evidence(())
    return Evidence(
        tuple(_measurement(one) for one in found),
        None,
        f"the node runs out of {found[0].facts['what']}: {found[0].text}",
        Fix("find out who has them; a limit that is raised is reached again", tuple(_who(found))),
    )


def _measurement(one: Symptom) -> Measurement:
    return Measurement(
        one.text, one.facts["used"], str(one.facts["what"]), "counters", "confirms", one.from_us,
        counter=str(one.facts["limit"]),
    )  # fmt: skip


def _who(found: list[Symptom]) -> Iterator[Step]:
    for one in found:
        if one.facts["what"] in WHO:
            yield WHO[str(one.facts["what"])]
    yield note("processes that nobody waits for (defunct) and sessions that never end count too")


PATTERN = Pattern(
    id="limit-exhausted",
    title="A limit on processes or files is reached",
    proof="literature",
    looks_like="Programs fail with 'Resource temporarily unavailable' or 'Too many open files' while CPU and memory "
    "are free.",
    confirmed_by="The kernel logged that a cgroup's pids limit rejected a fork, or that file-max was reached; or tasks "
    "or open files are at 85% of the kernel's limit.",
    refuted_by="Nothing: the pattern is only considered when one of these is present.",
    remedy="Find out which program has them; raise the limit only if they are intended.",
    stop_gap="raise the limit for now; it will be reached again until the program that uses it up is stopped",
    examine=examine,
    symptoms=frozenset({"event", "near_limit"}),
    hog="No process: a call that fails uses no CPU.",
    culprit="The cgroup whose limit it is, if the kernel names one.",
    known_from="kernel/cgroup/pids.c, kernel/fork.c, fs/file_table.c",
)

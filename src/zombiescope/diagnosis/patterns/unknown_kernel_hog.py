"""No pattern fits: the hog, its unit and its kernel path are named all the same, and what to record next time."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.text import printable
from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.carriers import CARRIER_UNITS
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.kernel_entry import system_call
from zombiescope.diagnosis.pattern import FALLBACK, Evidence, Pattern
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import first_event, said
from zombiescope.model.plans.step import Step, command, note
from zombiescope.store import columns

MOST_GRANTS = 4
MOST_TEXT = 400
PATH_FRAMES = 4


def examine(case: Case) -> Evidence:
    return Evidence(
        (), None, _summary(case), Fix("look at what it does, and record more next time", tuple(_steps(case)))
    )


def _summary(case: Case) -> str:
    """What was announced is said first. A task that took no CPU is nobody's cause, so none is named then."""
    first = first_event(case.group.symptoms)
    announced = said(first) if first is not None else ""
    if case.hog_task is None:
        return (
            f"{announced}; no known pattern matches"
            if announced
            else "no known pattern matches: no task was sampled there"
        )
    who = _who(case)
    if case.frames:
        asked = system_call(case.frames)
        who += " in the kernel" + (f", in {asked}" if asked else "") + f": {' > '.join(case.frames[-2:])}"
    return f"{announced}; {who}; no known pattern matches" if announced else f"{who}; no known pattern matches"


def _who(case: Case) -> str:
    """ "lister was busy", "12 tasks named sh were busy"."""
    groups = [one for one in case.of_kind("kernel_hog") if one.facts["comm"] == case.hog.comm and one.facts["many"]]
    if not groups or case.primary.facts.get("many") is False:
        return f"{case.hog.name} was busy"
    return f"{max(groups, key=lambda one: one.seconds).facts['who']} were busy"


def _steps(case: Case) -> list[Step]:
    steps = [*_known(case), *_pictures(case)]
    # Sources that were missing, with what they need.
    for entry in case.facts.missing[:MOST_GRANTS]:
        if entry.get("grant"):
            steps.append(note(f"next time record {entry.get('source')}: {entry['grant']}"))
    if case.facts.cores is None:
        steps.append(
            note("next time record with zombiescope record: a profile alone has no counters to confirm anything with")
        )
    return steps


def _known(case: Case) -> Iterator[Step]:
    """What was recorded of the program, for whoever goes on from here: which one, whose, what it asks the kernel for,
    and how that differs from the days before."""
    task = case.hog_task
    if task is None:
        return
    row = _task_row(case, task.pid)
    for what, text in (("its command line", row.get("cmdline")), ("its program", row.get("exe"))):
        if text:
            yield note(f"{what}: {printable(str(text))[:MOST_TEXT]}")
    # The unit of a runtime says nothing of whose work it is: many run there, and none of it is the unit's own.
    unit = None if task.unit in CARRIER_UNITS else task.unit
    whose = [text for text in (unit, task.named.label, task.cgroup if unit or not task.unit else None) if text]
    if whose:
        yield note(f"it runs in {printable(whose[0])[:MOST_TEXT]}")
    if case.frames:
        asked = system_call(case.frames)
        path = " > ".join(case.frames[-PATH_FRAMES:])
        yield note(f"it {f'calls {asked}' if asked else 'is in the kernel without a system call'}: {path}")
    hog = case.hog
    if hog.cores is not None and hog.baseline_cores is not None:
        yield note(
            f"it used {hog.cores:.2f} cores; in its busier hours of the last thirty days {hog.baseline_cores:.2f}"
        )


def _task_row(case: Case, pid: int | None) -> dict[str, str]:
    """The last that was recorded of a process, whichever of its threads it was recorded of."""
    facts = case.facts
    rows = columns.records(facts.recording.table("tasks", facts.start_us, facts.end_us, ("pid", "cmdline", "exe")))
    mine = [row for row in rows if row["pid"] == pid]
    return {name: str(row[name]) for row in mine for name in ("cmdline", "exe") if row[name]}


def _pictures(case: Case) -> Iterator[Step]:
    """Where to look; as quiet counts the time directly before it, or after it, for as long."""
    recording = case.facts.recording
    if recording.temporary:
        yield command("zombiescope up", "keeps a recording, so that such seconds can be looked at afterwards")
        return
    place = recording.store.place
    from_s, to_s = case.from_us // SECOND_US, -(-case.to_us // SECOND_US)
    flames = shell("zombiescope", "flamegraph", place, "--from", from_s, "--to", to_s)
    yield command(flames, "what it did in these seconds")
    before, after = from_s - recording.start_us // SECOND_US, recording.end_us // SECOND_US - to_s
    long = min(to_s - from_s, max(before, after))
    if long > 0:
        quiet = (from_s - long, from_s) if before >= long else (to_s, to_s + long)
        sides = [f"{place}@{first}..{last}" for first, last in (quiet, (from_s, to_s))]
        yield command(shell("zombiescope", "diff", *sides), "what differs from quiet seconds")


PATTERN = Pattern(
    id=FALLBACK,
    title="No pattern explains the kernel hog",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="A task holds a core in the kernel, and none of the known patterns fits its frames and counters.",
    confirmed_by="Nothing: this is what remains when no other pattern matches.",
    refuted_by="Any pattern that is confirmed.",
    remedy="Compare the flame graph of those seconds with that of quiet ones.",
    stop_gap="pin it away from the cores of the network card and the trainer; it will take just as long, but no longer "
    "delay them",
    no_lasting="the cause is unknown",
    examine=examine,
    culprit="Not known.",
)

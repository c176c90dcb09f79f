"""No pattern fits: the hog, its unit and its kernel path are named all the same, and what to record next time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from zombiescope.base.text import printable
from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis import closer_look
from zombiescope.diagnosis.carriers import CARRIER_UNITS
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.kernel_entry import system_call
from zombiescope.diagnosis.pattern import FALLBACK, Evidence, Pattern
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import first_event, said
from zombiescope.model.plans.step import Step, command, note
from zombiescope.query.python import PythonFrame
from zombiescope.store import columns

MOST_GRANTS = 4
MOST_TEXT = 400
PATH_FRAMES = 4


def examine(case: Case) -> Evidence:
    look = closer_look.account(case)
    fix = Fix("look at what it does, and record more next time", tuple(_steps(case)))
    if look is None:
        return Evidence((), None, _summary(case, None), fix)
    culprit = case.answerable_hog if look.agrees else None
    return Evidence(
        (look.measurement(),), culprit, _summary(case, look), fix,
        is_ordinary=look.agrees and look.yields, is_harmful=look.does_harm,
    )  # fmt: skip


def _summary(case: Case, look: closer_look.Account | None) -> str:
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
    if look is not None and look.agrees:
        who = look.sentence
    elif case.frames:
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
    yield from _asked_for(case, task.pid)
    yield from _callers(case, task.pid)
    hog = case.hog
    if hog.cores is not None and hog.baseline_cores is not None:
        yield note(
            f"it used {hog.cores:.2f} cores; in its busier hours of the last thirty days {hog.baseline_cores:.2f}"
        )


def _asked_for(case: Case, pid: int | None) -> Iterator[Step]:
    """How often it calls the kernel and on what, where the recorder looked (recorder/hog_files.py)."""
    looks = [one for one in case.facts.events if one.kind == "hog_files" and one.fields.get("pid") == pid]
    inside = [one for one in looks if case.from_us <= one.at_us <= case.to_us + SECOND_US] or looks
    if not inside:
        return
    known = inside[-1].fields
    rates = [
        f"{known[name]:,} {what} a second"
        for name, what in (("calls_per_s", "system calls"), ("reads_per_s", "reads"), ("writes_per_s", "writes"))
        if isinstance(known.get(name), int) and known[name]
    ]
    if rates:
        yield note(f"it makes {', '.join(rates)}")
    for name, does in (("files", "works on"), ("open", "has open, without a position in it:")):
        listed = [printable(str(one))[:MOST_TEXT] for one in known.get(name) or ()]
        if listed:
            yield note(f"it {does} {', '.join(listed)}")


def _callers(case: Case, pid: int | None) -> Iterator[Step]:
    """Who in the program makes the call: its Python line where it is one, and the native function."""
    places: Counter[str] = Counter()
    for thread in case.facts.python_between(case.from_us, case.to_us):
        if thread.pid == pid:
            for (inner, mine), looks in thread.places().items():
                places[" in ".join(dict.fromkeys((_line(inner), _line(mine))))] += looks
    for place, looks in places.most_common(1):
        yield note(f"Python: {printable(place)[:MOST_TEXT]}, in {looks} of {places.total()} looks")
    if (native := _native_caller(case)) is not None:
        yield note(f"the native function that makes the call: {printable(native)[:MOST_TEXT]}")


def _line(frame: PythonFrame) -> str:
    return f"{frame.name} ({frame.file}:{frame.line})"


def _native_caller(case: Case) -> str | None:
    """The innermost user frame that has a name, of most of the hog's kernel samples."""
    grid = case.facts.samples
    found: Counter[str] = Counter()
    for row, count in enumerate(grid.counts(case.hog_samples & grid.in_kernel).tolist()):
        name = grid.known.user_function(row) if count else None
        if name is not None:
            found[name] += count
    return found.most_common(1)[0][0] if found else None


def _task_row(case: Case, pid: int | None) -> dict[str, str]:
    """The last that was recorded of a process, whichever of its threads it was recorded of."""
    rows = case.facts.programs
    is_mine = columns.present(rows.column("pid")) & (columns.numbers(rows.column("pid")) == pid)
    mine = columns.records(columns.take(rows, np.flatnonzero(is_mine)))
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
    confirmed_by="A [closer look](../diagnosis.md#a-closer-look-at-a-suspect) that followed the system call in which "
    "the hog was sampled. It says what the hog does, not why that costs so much.",
    refuted_by="Any pattern that is confirmed.",
    remedy="Compare the flame graph of those seconds with that of quiet ones.",
    stop_gap="pin it away from the cores of the network card and the trainer; it will take just as long, but no longer "
    "delay them",
    no_lasting="the cause is unknown",
    examine=examine,
    culprit="Not known.",
)

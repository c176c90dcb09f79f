"""The documents of the other interfaces as facts: what a tool answers about one recording."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from zombiescope.assistant.fact import Answer, Fact, clock, number, percent, window
from zombiescope.base.errors import QuestionError
from zombiescope.base.severity import rank
from zombiescope.documents import cores as cores_documents
from zombiescope.documents import delays as delays_documents
from zombiescope.documents import events as events_documents
from zombiescope.documents import gpu as gpu_documents
from zombiescope.documents import incidents as incident_documents
from zombiescope.documents import stacks as stacks_documents
from zombiescope.documents import who as who_documents
from zombiescope.documents import worst as worst_documents
from zombiescope.model.answer import document as as_document
from zombiescope.questions.views import (
    CoresQuestion,
    DelaysQuestion,
    DiagnoseQuestion,
    EventsQuestion,
    GpuQuestion,
    StacksQuestion,
    WhoQuestion,
)
from zombiescope.questions.window import WHOLE, WindowQuestion
from zombiescope.store.reader import Recording

WITHOUT_LIVE_DIAGNOSIS = "10m"
"""What is diagnosed of a recording that grows and has no live diagnosis."""
SHOWN_CAUSES = 2
SHOWN_FRAMES = 6
SHOWN_RULED_OUT = 12
MOST_EVENTS = 100
MOST_JOBS = 20
MOST_CORES = 64
_NUMBER = re.compile(r"\d+")

Diagnosed = Callable[[DiagnoseQuestion], dict[str, Any]]
"""Makes the document of `diagnose`; a server keeps it until the recording changes."""


def diagnosed(recording: Recording, question: DiagnoseQuestion, *, live: bool) -> dict[str, Any]:
    """Of a recording that grows: what its live diagnosis noted, or the last minutes. Raises QuestionError."""
    if live and not question.window.given:
        if recording.node.get("diagnosed"):
            return incident_documents.noted(recording, WHOLE.choose(recording))
        question = DiagnoseQuestion(window=WindowQuestion(last=WITHOUT_LIVE_DIAGNOSIS))
    found = incident_documents.answer(recording, question, live=live)
    if found is None:
        raise QuestionError("nothing of this is in the recording")
    return found.document()


# --- incidents --------------------------------------------------------------------------------------------------------


def incidents(document: Mapping[str, Any], at_least: str | None = None) -> Answer:
    """Every incident as one fact, the worst first."""
    about = window(document["node"], document["window"]["from"], document["window"]["to"])
    found = [one for one in document["incidents"] if at_least is None or rank(one["severity"]) >= rank(at_least)]
    lacking = [str(one) for one in document.get("not_checked", ())]
    if failed := document.get("live_diagnosis"):
        lacking.insert(0, f"the live diagnosis failed in this window: {failed}")
    facts = [Fact(str(one["id"]), _headline(one), one["from"]) for one in found]
    return Answer({**about, "incidents": len(found)}, facts, lacking, "name a shorter window, or at_least=warning")


def _headline(incident: Mapping[str, Any]) -> str:
    head = f"{incident['severity']}, {incident['state']}, {incident['to'] - incident['from']:.1f} s"
    causes = incident.get("causes") or ()
    if not causes:
        texts = [str(one["text"]) for one in incident.get("symptoms", ())]
        return f"{head}: {texts[0] if texts else 'no symptom'}; the cause is not known"
    cause = causes[0]
    who = "; ".join(f"{role} {name}" for role in ("hog", "culprit") if (name := actor(cause.get(role))))
    return f"{head}: {cause['summary']} [{cause['pattern']}, confidence {cause['confidence']:.2f}; {who or 'no actor'}]"


_NAMES = ("unit", "container_name", "container", "comm", "cgroup")


def actor(known: Mapping[str, Any] | None) -> str | None:
    """By the most specific name that an operator can act on."""
    known = known or {}
    name = next((known[key] for key in _NAMES if known.get(key)), None)
    if name is None:
        return None
    comm, pid, pod = known.get("comm"), known.get("pid"), known.get("pod_name") or known.get("pod")
    more = [str(comm)] if comm and comm != name else []
    more += [f"pid {pid}"] if pid else []
    more += [f"pod {pod}"] if pod else []
    return f"{name} ({', '.join(more)})" if more else str(name)


def incident(document: Mapping[str, Any], wanted: str) -> Answer:
    """One incident: causes with their chains, what was ruled out, the fix. Raises QuestionError."""
    same = [one for one in document["incidents"] if str(one["id"]).startswith(wanted)]
    if len(same) != 1:
        raise QuestionError(f"{len(same)} incidents have an id that begins with {wanted!r}", "ask for `incidents`")
    one = same[0]
    about = {**window(document["node"], one["from"], one["to"]), "incident": one["id"], "severity": one["severity"]}
    about["state"], about["cause"] = one["state"], None
    facts: list[Fact] = []
    causes = one.get("causes") or ()
    if causes:
        about |= _cause(causes[0])
    else:
        facts += [Fact(f"{one['id']}/s{place}", str(each["text"]), each.get("at"))
                  for place, each in enumerate(one.get("symptoms", ()), 1)]  # fmt: skip
    for place, cause in enumerate(causes[:SHOWN_CAUSES], 1):
        facts += _chain(f"{one['id']}/c{place}", cause)
    facts += [
        Fact(f"{one['id']}/r{place}", f"ruled out {each['pattern']}: {each['because']}")
        for place, each in enumerate((one.get("ruled_out") or ())[:SHOWN_RULED_OUT], 1)
    ]
    lacking = [*(one.get("not_checked") or ()), *document.get("not_checked", ())]
    return Answer(about, facts, list(dict.fromkeys(str(each) for each in lacking)))


def digest(document: Mapping[str, Any]) -> Answer:
    """All of a diagnosis in one answer: the worst incident whole, the others by their headlines, and what to ask next.
    `diagnose --for-llm` prints it."""
    found = document["incidents"]
    if not found:
        answer = incidents(document)
        return replace(answer, about={**answer.about, "next": ["zombiescope cores", "zombiescope events"]})
    worst, *others = found
    one = incident({**document, "incidents": [worst]}, str(worst["id"]))
    asks = [f"zombiescope diagnose --for-llm --incident {each['id']}" for each in others[:3]]
    asks.append(f"zombiescope fix --incident {worst['id']}")
    about = {**one.about, "incidents": len(found), "next": asks}
    listed = [Fact(str(each["id"]), _headline(each), each["from"]) for each in others]
    return Answer(about, [*one.facts, *listed], one.not_measured, "`next` asks for one incident at a time")


def _cause(cause: Mapping[str, Any]) -> dict[str, Any]:
    fix = cause.get("fix") or {}
    commands = [str(step["command"]) for step in fix.get("plan", ()) if step.get("command")]
    return {
        "cause": cause["pattern"],
        "summary": cause["summary"],
        "confidence": round(cause["confidence"], 2),
        "proof": cause["proof"],
        "hog": actor(cause.get("hog")),
        "culprit": actor(cause.get("culprit")),
        "fix": fix.get("summary"),
        "fix_commands": commands[:4],
    }


def _chain(prefix: str, cause: Mapping[str, Any]) -> Iterable[Fact]:
    """Of the second cause only that it is a possibility; of the first every link."""
    if prefix.endswith("/c1"):
        for place, link in enumerate(cause.get("chain") or (), 1):
            source = f" [{link['source']}]" if link.get("source") else ""
            yield Fact(f"{prefix}/{place}", f"{link['step']}: {link['fact']}{source}", link.get("at"))
    else:
        sure = f"confidence {cause['confidence']:.2f}"
        yield Fact(prefix, f"also possible: {cause['pattern']}, {sure}: {cause['summary']}")


# --- cores, samples, events -------------------------------------------------------------------------------------------


def worst_second(recording: Recording, question: WindowQuestion) -> Answer:
    found = worst_documents.answer(recording, question)
    about = window(found["node"], found["from"], found["to"])
    second, hidden = found["second"], found["hidden"]
    if second is None:
        return Answer(about, (), ("no core was measured in this window",))
    at, modes = second["at"], second["modes"]
    facts = [
        Fact("worst/core", f"core {second['cpu']}: {_shares(modes)}", at),
        Fact("worst/task", f"{_task(second)} had {percent(second['task_ratio'])} of the samples there", at),
    ]
    if second["path"]:
        facts.append(Fact("worst/path", f"mostly in {' > '.join(second['path'][-SHOWN_FRAMES:])}", at))
    if hidden:
        kernel, seconds = percent(hidden["core_kernel"]), number(hidden["seconds"])
        text = (
            f"core {hidden['core']} was {kernel} in the kernel for {seconds} s, "
            f"and the mean of all cores was {percent(hidden['average_busy'])} busy"
        )
        facts.append(Fact("worst/hidden", text, hidden["at"]))
    return Answer(about, facts)


def _shares(modes: Mapping[str, float | None]) -> str:
    """Without the modes that took no time; a mode that was not measured is shown as that."""
    return ", ".join(f"{mode} {percent(value)}" for mode, value in modes.items() if value is None or value >= 0.005)


def _task(one: Mapping[str, Any]) -> str:
    """A process or thread with what is known of it."""
    known = [f"{name} {one[name]}" for name in ("pid", "unit", "container", "pod") if one.get(name) is not None]
    name = one.get("name") or one.get("comm") or "a task that is not known"
    return f"{name} ({', '.join(known)})" if known else str(name)


def cores(recording: Recording, question: CoresQuestion) -> Answer:
    found = as_document(cores_documents.answer(recording, question))
    about = window(found["node"], found["from"], found["to"])
    facts = [Fact("cores/all", f"all cores: {_modes(found['aggregate'])}")]
    for core in found["cores"]:
        longest, at = core["longest_saturation_s"], (core["busiest"] or {}).get("at")
        held = f"; the kernel held it for {longest:.1f} s without a break" if longest else ""
        facts.append(Fact(f"core/{core['cpu']}", f"core {core['cpu']}: {_modes(core)}{held}", at))
    return Answer(about, facts, () if found["cores"] else ("no core was measured in this window",), "name `hottest`")


def _modes(core: Mapping[str, Any]) -> str:
    named = ("user", "nice", "system", "irq", "softirq", "steal", "iowait")
    shown = _shares({mode: core[mode] for mode in named})
    return f"busy {percent(core['busy'])}" + (f" ({shown})" if shown else "")


def gpus(recording: Recording, when: WindowQuestion) -> Answer:
    """The account of GPU seconds, when a GPU was idle, and the state of each GPU."""
    found = as_document(cores_documents.answer(recording, CoresQuestion(window=when, gpu=True)))
    about = window(found["node"], found["from"], found["to"])
    account = gpu_documents.answer(recording, GpuQuestion(window=when))
    facts = [
        Fact(f"gpu-seconds/{place}", _account(as_document(row)))
        for place, row in enumerate(account.rows[:MOST_JOBS], 1)
    ]
    facts += [
        Fact(f"gpu-idle/{place}", idle.text, idle.from_us / 1e6)
        for place, idle in enumerate(account.idle[:MOST_JOBS], 1)
    ]
    for one in found["gpus"] or ():
        slowed = [f"{name} {value:.1f} s" for name, value in (one["lost_clocks_s"] or {}).items() if value]
        parts = [
            f"utilisation {_given(one['utilisation'], '%')}, lowest {_given(one['lowest_utilisation'], '%')}",
            f"power {_given(one['power_w'], ' W')}",
            _given(one["temperature_c"], " °C"),
            f"state {one['state'] or 'ok'}",
            *([f"slowed by {', '.join(slowed)}"] if slowed else []),
        ]
        facts.append(Fact(f"gpu/{one['gpu']}", f"GPU {one['gpu']} ({one['name']}, {one['uuid']}): {', '.join(parts)}"))
        facts += [
            Fact(f"gpu/{one['gpu']}/{each['pid']}", f"{_task(each)} is on GPU {one['gpu']}", each["from"])
            for each in one["processes"]
        ]
    return Answer(about, facts, () if facts else ("no GPU was recorded in this window",))


def _account(row: Mapping[str, Any]) -> str:
    """Seconds that were not known are named, and never spread."""
    whose = row["job"] or row["comm"] or "nobody"
    waited = [f"{name} {number(value)} s" for name, value in row["waited"].items() if value]
    return f"{whose}: {number(row['wall_s'])} GPU seconds on {row['gpus']} GPUs, busy {number(row['busy_s'])} s" + (
        f", waited for {', '.join(waited)}" if waited else ""
    )


def delays(recording: Recording, question: DelaysQuestion) -> Answer:
    """Measured, where the schedule of a core was kept; a core that was not watched says nothing."""
    found = delays_documents.answer(recording, question)
    about = window(found.node, found.window.start_us / 1e6, found.window.end_us / 1e6)
    about |= {"watched_cpus": found.watched_cpus[:MOST_CORES], "reach_s": found.reach_s}
    facts = [
        Fact(f"delay/{place}", delays_documents.sentence(one), one.from_us / 1e6)
        for place, one in enumerate(found.shown, 1)
    ]
    lacking = () if found.watched_cpus else ("no schedule of any core was kept in this window",)
    return Answer(about, facts, lacking, "name a core, a process or a shorter window")


def _given(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.0f}{unit}"


def who_ran(recording: Recording, question: WhoQuestion) -> Answer:
    found = who_documents.answer(recording, question)
    about = {**window(found["node"], found["from"], found["to"]), "by": found["by"], "samples": found["total"]}
    facts = []
    for place, one in enumerate(found["who"], 1):
        used = "" if one["cpus"] is None else f" {one['cpus']:.2f} cores,"
        shares = f"{percent(one['ratio'])} of the samples, {percent(one['kernel_ratio'])} of these in the kernel"
        facts.append(Fact(f"who/{place}", f"{_task(one)}:{used} {shares}"))
    lacking = () if found["total"] else ("no sample passes in this window",)
    return Answer(about, facts, lacking, "name a filter or a shorter window")


def stacks(recording: Recording, question: StacksQuestion) -> Answer:
    found = stacks_documents.answer(recording, question).document()
    about = {**window(found["node"], found["from"], found["to"]), "samples": found["total"]}
    facts = [
        Fact(f"function/{place}", f"{one['name']} [{one['module'] or one['kind']}]: self {percent(one['self_ratio'])}, "
             f"total {percent(one['total_ratio'])}")
        for place, one in enumerate(found["functions"], 1)
    ]  # fmt: skip
    for place, one in enumerate(found["stacks"], 1):
        path = " > ".join(str(frame["name"]) for frame in one["frames"][-SHOWN_FRAMES:])
        facts.insert(min(len(facts), 2 * place), Fact(f"stack/{place}", f"{percent(one['ratio'])}: ... {path}"))
    return Answer(about, facts, () if found["total"] else ("no sample passes in this window",), "name a filter")


def events(recording: Recording, question: EventsQuestion) -> Answer:
    """The most severe first, then the newest. Events that differ only in numbers are one fact with a count."""
    events_documents.refuse_unknown_kinds(recording, question)
    found = events_documents.answer(recording, question).document()
    about = window(found["node"], found["from"], found["to"])
    about["kinds"] = dict(Counter(one["kind"] for one in found["events"]).most_common(20))
    alike: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in found["events"]:
        alike.setdefault((one["severity"], one["kind"], _NUMBER.sub("#", one["text"])), []).append(one)
    shown = sorted(alike.values(), key=lambda same: (-rank(same[-1]["severity"]), -same[-1]["at"]))
    facts = [_event(place, same) for place, same in enumerate(shown[:MOST_EVENTS], 1)]
    return Answer(about, facts, () if facts else ("no event passes in this window",), "name a kind or a shorter window")


def _event(place: int, same: list[dict[str, Any]]) -> Fact:
    """The last of them."""
    one = same[-1]
    often = "" if len(same) == 1 else f" ({len(same):,} like it since {clock(same[0]['at'])})"
    name = f"{one['severity']} {one['kind']}"
    return Fact(f"event/{place}/{one['kind']}", f"{name}: {one['text']}{often} [{one['source']}]", one["at"])


# --- the fleet --------------------------------------------------------------------------------------------------------


def fleet(state: Mapping[str, Any]) -> Answer:
    """What `fleet report` says; while the fleet is being read, how far that is."""
    report = state.get("report")
    if not report:
        why = state.get("why") or f"{state.get('done')} of {state.get('of')} nodes are read"
        return Answer({"fleet": state.get("root"), "state": state.get("state")}, (), (str(why),))
    about = {"fleet": state.get("root"), "state": state.get("state")}
    about |= {key: report[key] for key in ("nodes", "incidents") if isinstance(report.get(key), int | float | str)}
    facts = [Fact(f"fleet/by/{place}", _row(one)) for place, one in enumerate(report.get("by") or (), 1)]
    facts += [Fact(f"fleet/cause/{place}", _row(one)) for place, one in enumerate(report.get("causes") or (), 1)]
    return Answer(about, facts)


def _row(row: Mapping[str, Any]) -> str:
    """Its scalars; nested lists are for the report itself."""
    return ", ".join(f"{key} {value}" for key, value in row.items() if isinstance(value, str | int | float))

"""The tools: what an assistant may ask, with the JSON schema of its arguments, and the answer.

The arguments are those of the views (questions/), declared there once; a tool takes the few that an assistant needs.
All tools read. A wrong argument is one line that says how to write it.
"""

from __future__ import annotations

import threading
import types
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from zombiescope.assistant import answers
from zombiescope.assistant.claims import MEASURES, Claim, check
from zombiescope.assistant.fact import Answer, Fact, clock
from zombiescope.base.errors import QuestionError, UserError
from zombiescope.base.severity import Severity
from zombiescope.questions.parameter import Declared, Question, declared, filled
from zombiescope.questions.views import (
    CoresQuestion,
    DelaysQuestion,
    DiagnoseQuestion,
    EventsQuestion,
    StacksQuestion,
    WhoQuestion,
)
from zombiescope.questions.window import WindowQuestion
from zombiescope.store.reader import Recording

_FAR_US = 366 * 86_400_000_000
POLICY: dict[str, Any] = {"foreign": True, "reach_us": _FAR_US}
"""As for a request of the page: expressions that end, and windows near the recording."""
HELD_DIAGNOSES = 16

_WINDOW = ("last", "from", "to", "at")
_FILTERS = ("cpu", "pid", "comm", "unit", "container", "pod", "mode", "match")
_NODE = {"type": "string", "description": "The key of a recording, from `nodes`. Default: the first.", "maxLength": 300}


class Held(Protocol):
    """A recording that a server holds open; web.held_recording has one."""

    @property
    def generation(self) -> int: ...
    @property
    def live(self) -> bool: ...
    def reading(self, until_us: int | None = None) -> AbstractContextManager[Recording]: ...


class Nodes(Protocol):
    """The recordings that there are; web.recordings has them."""

    def named(self, key: str | None) -> Held: ...
    def document(self) -> dict[str, Any]: ...
    def fleet_document(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    about: str
    question: type[Question] | None = None
    """Whose parameters it takes, of these names."""
    parameters: tuple[str, ...] = ()
    more: Mapping[str, Mapping[str, Any]] | None = None
    """Arguments of the tool itself, as JSON schema."""
    required: tuple[str, ...] = ()
    defaults: Mapping[str, Any] | None = None
    """By field of the question; an answer for an assistant is shorter than one for a person."""
    of_recording: bool = True

    @property
    def declared(self) -> Iterator[Declared]:
        if self.question is not None:
            yield from (one for one in declared(self.question, "web") if one.name in self.parameters)

    def schema(self) -> dict[str, Any]:
        """JSON schema of its arguments."""
        known = {one.name: _schema(one) for one in self.declared} | {k: dict(v) for k, v in (self.more or {}).items()}
        if self.of_recording:
            known["node"] = _NODE
        return {
            "type": "object", "properties": known, "required": list(self.required), "additionalProperties": False,
        }  # fmt: skip


def _schema(one: Declared) -> dict[str, Any]:
    kind = one.element if one.element is not None else one.type
    bounds = one.parameter
    highest = bounds.foreign_high if bounds.high is None else bounds.high
    found = _of_type(kind) | ({} if bounds.low is None else {"minimum": bounds.low})
    found |= {} if highest is None else {"maximum": highest}
    if found.get("type") == "string" and "enum" not in found:
        found["maxLength"] = bounds.longest
    if one.element is not None:
        found = {"type": "array", "items": found, "maxItems": bounds.most}
    return found | {"description": bounds.help}


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _of_type(kind: Any) -> dict[str, Any]:
    if get_origin(kind) in (Union, types.UnionType):
        return _of_type(next(one for one in get_args(kind) if one is not type(None)))
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    return {"type": _JSON_TYPES[kind]}


_CLAIM_ABOUT = {
    "core": "The number of a core.",
    "pid": "A process id.",
    "process": "A process by its comm.",
    "unit": "A systemd unit.",
    "container": "A container: the start of its id, its name or its image.",
    "function": "A function on the stack.",
    "event": "A kind of event.",
    "incident": "The id of an incident.",
    "pattern": "The cause of an incident: the id of its pattern.",
    "hog": "Who burnt the core, by unit, comm, pid, container or pod.",
    "culprit": "Who made it expensive, likewise.",
    "measure": "What the number counts. Modes of a core and cores_used are ratios: 1.0 is all of a core.",
    "value": "The number. Without it the claim is that it happened at all.",
    "comparison": "Default: about, which is within 10%.",
}


def _claim_schema() -> dict[str, dict[str, Any]]:
    hints = get_type_hints(Claim)
    found = {one.name: _of_type(hints[one.name]) | {"description": _CLAIM_ABOUT[one.name]} for one in fields(Claim)}
    found["measure"] |= {"enum": list(MEASURES)}
    for name in ("core", "pid"):
        found[name] |= {"minimum": 0, "maximum": 2**31 - 1}
    return {name: one | ({"maxLength": 300} if one["type"] == "string" else {}) for name, one in found.items()}


_AT_LEAST = {"type": "string", "enum": list(get_args(Severity)), "description": "Leave out what is less severe."}
TOOLS = (
    Tool("nodes", "The recordings that can be queried, and their time ranges.", of_recording=False),
    Tool("incidents", "Every incident of a node, the worst first: cause, hog, culprit, id.", WindowQuestion, _WINDOW,
         {"at_least": _AT_LEAST}),
    Tool("incident", "One incident: cause, evidence link by link, what was ruled out, fix.", WindowQuestion, _WINDOW,
         {"id": {"type": "string", "description": "Its id, from `incidents`.", "maxLength": 200}}, ("id",)),
    Tool("worst_second", "The worst second of any core, and what the average hid.", WindowQuestion, _WINDOW),
    Tool("cores", "How each core spent its time; the hottest first.", CoresQuestion, (*_WINDOW, "hottest"),
         defaults={"hottest": 12}),
    Tool("who_ran", "Who used the CPUs, by process, thread, unit, pod or container.", WhoQuestion,
         (*_WINDOW, *_FILTERS, "by", "top"), defaults={"top": 20}),
    Tool("stacks", "The hottest functions and stacks.", StacksQuestion, (*_WINDOW, *_FILTERS, "top"),
         defaults={"top": 12}),
    Tool("events", "What happened: kernel log, units, containers, network cards, GPUs, jobs.", EventsQuestion,
         (*_WINDOW, "kind", "at_least")),
    Tool("gpu", "Where the GPU seconds went, by job; when and why a GPU was idle; state of each GPU.", WindowQuestion,
         _WINDOW),
    Tool("delays", "Who waited for a core, for how long, and who ran there during that time; measured.", DelaysQuestion,
         (*_WINDOW, "cpu", "pid", "comm", "top")),
    Tool("fleet", "What the sick nodes of the fleet share. Only where a fleet is served.", of_recording=False),
    Tool("check", "Compare one claim with the recording: supported, refuted (with the number), or not_measured.",
         WindowQuestion, _WINDOW, _claim_schema()),
)  # fmt: skip


class Asked:
    """Answers tool calls. One for a server: it keeps the last diagnoses, which take longest."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._tools = {tool.name: tool for tool in TOOLS}
        self._lock = threading.Lock()
        self._diagnoses: OrderedDict[tuple[object, ...], dict[str, Any]] = OrderedDict()

    def answer(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The document of a tool. Raises UserError."""
        tool = self._tools.get(name)
        if tool is None:
            raise QuestionError(f"there is no tool {name!r}", f"there are {', '.join(self._tools)}")
        _refuse_wrong(tool.schema(), given)
        if name == "nodes":
            return self._listed().document()
        if name == "fleet":
            return self._fleet().document()
        held = self._nodes.named(given.get("node"))
        with held.reading() as recording:
            return self._of_recording(tool, given, held, recording)

    def _listed(self) -> Answer:
        known = self._nodes.document()
        return Answer(
            {"fleet": bool(known.get("fleet"))},
            [Fact(str(one["key"]), _listed(one)) for one in known["recordings"]],
        )

    def _fleet(self) -> Answer:
        state = self._nodes.fleet_document()
        if state is None:
            raise QuestionError("no fleet is served here", "zombiescope mcp --fleet ROOT")
        return answers.fleet(state)

    def _of_recording(self, tool: Tool, given: Mapping[str, Any], held: Held, recording: Recording) -> dict[str, Any]:
        values = {one.field: _value(one, given[one.name]) for one in tool.declared if one.name in given}
        values = POLICY | dict(tool.defaults or {}) | values
        when = filled(WindowQuestion, values)

        def diagnosed(question: DiagnoseQuestion) -> dict[str, Any]:
            return self._diagnosed(recording, question, held, given.get("node"))

        match tool.name:
            case "incidents":
                return answers.incidents(diagnosed(DiagnoseQuestion(window=when)), given.get("at_least")).document()
            case "incident":
                return answers.incident(diagnosed(DiagnoseQuestion(window=when)), str(given["id"])).document()
            case "worst_second":
                return answers.worst_second(recording, when).document()
            case "cores":
                return answers.cores(recording, filled(CoresQuestion, values)).document()
            case "who_ran":
                return answers.who_ran(recording, filled(WhoQuestion, values)).document()
            case "stacks":
                return answers.stacks(recording, filled(StacksQuestion, values)).document()
            case "events":
                return answers.events(recording, filled(EventsQuestion, values)).document()
            case "gpu":
                return answers.gpus(recording, when).document()
            case "delays":
                return answers.delays(recording, filled(DelaysQuestion, values)).document()
            case _:
                claim = Claim(**{one.name: given[one.name] for one in fields(Claim) if one.name in given})
                checked = asdict(check(recording, when, claim, diagnosed))
                return {"node": recording.name, "claim": _given(claim), **checked}

    def _diagnosed(
        self, recording: Recording, question: DiagnoseQuestion, held: Held, key: str | None
    ) -> dict[str, Any]:
        """Made once while the recording stays as it is."""
        known = (key, held.generation, recording.end_us, question)
        with self._lock:
            if known in self._diagnoses:
                self._diagnoses.move_to_end(known)
                return self._diagnoses[known]
        made = answers.diagnosed(recording, question, live=held.live)
        with self._lock:
            self._diagnoses[known] = made
            while len(self._diagnoses) > HELD_DIAGNOSES:
                self._diagnoses.popitem(last=False)
        return made


def _listed(one: Mapping[str, Any]) -> str:
    title, note = one.get("title") or one.get("node") or one["key"], one.get("note")
    when = "" if one.get("from") is None else f", {clock(one['from'])} to {clock(one['to'])}"
    return f"{title}{when}, {'is being recorded' if one.get('live') else 'ended'}{f'; {note}' if note else ''}"


def _given(claim: Claim) -> dict[str, Any]:
    return {name: value for name, value in asdict(claim).items() if value is not None}


def _value(one: Declared, given: Any) -> Any:
    read = one.parameter.foreign
    return given if read is None else read(given)


# --- arguments --------------------------------------------------------------------------------------------------------


def _refuse_wrong(schema: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raises QuestionError. The schemas are ours and use few words of JSON schema; these are checked here."""
    known = schema["properties"]
    for name in given:
        if name not in known:
            raise QuestionError(f"{name!r} is not an argument of this tool", f"it takes {', '.join(known)}")
    for name in schema["required"]:
        if name not in given:
            raise QuestionError(f"{name} is missing", known[name]["description"], option=name)
    for name, value in given.items():
        _refuse_value(name, known[name], value)


def _refuse_value(name: str, schema: Mapping[str, Any], value: Any) -> None:
    kind = schema["type"]
    if kind == "array":
        if not isinstance(value, list) or len(value) > schema["maxItems"]:
            raise QuestionError(f"takes a list of at most {schema['maxItems']}", None, option=name)
        for one in value:
            _refuse_value(name, schema["items"], one)
        return
    fits = {"string": str, "integer": int, "number": (int, float), "boolean": bool}[kind]
    if not isinstance(value, fits) or (kind != "boolean" and isinstance(value, bool)):  # type: ignore[arg-type]
        raise QuestionError(f"takes {kind}, not {value!r:.60}", schema.get("description"), option=name)
    if "enum" in schema and value not in schema["enum"]:
        raise QuestionError(f"{value!r:.60} is not one of {', '.join(schema['enum'])}", None, option=name)
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        raise QuestionError(f"takes at most {schema['maxLength']} characters", None, option=name)
    if not isinstance(value, str) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise QuestionError(f"{value} is out of range", schema.get("description"), option=name)


__all__ = ("TOOLS", "Asked", "Held", "Nodes", "Tool", "UserError")

"""Which samples are meant, as a person or a link writes it. query/selection.py says what each filter means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from zombiescope.base.errors import QuestionError
from zombiescope.questions.parameter import Question, parameter

if TYPE_CHECKING:
    from zombiescope.query.expression import Expression
    from zombiescope.query.selection import Filters

_CPUS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_MAX_CPU = 65_535
_PANEL = "Filters"
_NAME = {"metavar": "NAME", "panel": _PANEL}
_ID = {"metavar": "N", "panel": _PANEL, "low": 0, "foreign_high": 2**31 - 1, "most": 1_000}


@dataclass(frozen=True, slots=True)
class FilterQuestion(Question):
    """The filters as they were written. A new filter is a field here and its meaning in Filters."""

    cpu: tuple[str, ...] = parameter((), "Only these cores: 3, or 0-3,8.", metavar="LIST", panel=_PANEL)
    pid: tuple[int, ...] = parameter((), "Only this process.", **_ID)
    tid: tuple[int, ...] = parameter((), "Only this thread.", **_ID)
    comm: tuple[str, ...] = parameter((), "Only tasks of this name; * and ? match.", **_NAME)
    unit: tuple[str, ...] = parameter((), "Only this systemd unit; * and ? match.", **_NAME)
    container: tuple[str, ...] = parameter((), "Only this container: the start of its id, name or image.", **_NAME)
    pod: tuple[str, ...] = parameter(
        (), "Only this pod: name, namespace/name, uid, or its owner as Deployment/web.", **_NAME
    )
    image: tuple[str, ...] = parameter((), "Only containers of this image; its end is enough.", **_NAME)
    mode: Literal["kernel", "user"] | None = parameter(
        None, "Only samples taken inside the kernel, or outside of it.", panel=_PANEL, flags=True
    )
    match: str | None = parameter(None, "Only stacks with a function matching RE.", metavar="RE", panel=_PANEL)
    event: str | None = parameter(None, "Only this event, where an import holds several.", **_NAME)
    python: bool | None = parameter(
        None, "Only samples with Python functions on them, or stacks without those.", panel=_PANEL
    )
    idle: bool = parameter(False, "Include idle cores, which an import keeps.", panel=_PANEL)
    foreign: bool = False
    """Whether somebody else wrote it: then an expression must be one that cannot take for ever."""

    def chosen(self) -> Filters:
        """The filters that are meant. Raises QuestionError."""
        from zombiescope.query.selection import Filters

        return Filters(
            cpus=frozenset(number for text in self.cpu for number in _cpus(text)),
            pids=frozenset(self.pid),
            tids=frozenset(self.tid),
            comms=self.comm,
            units=self.unit,
            containers=self.container,
            pods=self.pod,
            images=self.image,
            mode=self.mode,
            match=None if self.match is None else expression(self.match, "match", linear=self.foreign),
            event=self.event,
            idle=self.idle,
            python=self.python,
        )


def _cpus(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _CPUS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= _MAX_CPU:
            raise QuestionError(f"{text!r} is not a list of cores", "write 3, or 0-3,8", option="cpu")
        found.update(range(first, last + 1))
    return found


def expression(text: str, option: str, *, linear: bool) -> Expression:
    """Raises QuestionError."""
    from zombiescope.query.expression import Linear

    try:
        return Linear.compiled(text) if linear else re.compile(text)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise QuestionError(f"{text!r} is not a regular expression: {error}", option=option) from None


def words(filters: Filters) -> str:
    """The filters for a heading: "comm kubelet, in the kernel"; empty without any."""
    parts = [
        f"{name} {', '.join(map(str, sorted(values)))}"
        for name, values in (
            ("core", filters.cpus),
            ("pid", filters.pids),
            ("tid", filters.tids),
            ("comm", filters.comms),
            ("unit", filters.units),
            ("container", filters.containers),
            ("pod", filters.pods),
            ("image", filters.images),
        )
        if values
    ]
    if filters.mode is not None:
        parts.append("in the kernel" if filters.mode == "kernel" else "in user space")
    if filters.match is not None:
        parts.append(f"matching {filters.match.pattern}")
    if filters.python is not None:
        parts.append("in Python" if filters.python else "without Python functions")
    if filters.event is not None:
        parts.append(f"event {filters.event}")
    return ", ".join(parts)

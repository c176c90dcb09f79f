"""Which samples are meant, as a person or a link writes it. profile/selection.py says what each filter means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zombiescope.documents.unclear import UnclearError

if TYPE_CHECKING:
    from zombiescope.profile.expression import Expression
    from zombiescope.profile.selection import Filters, Mode

_CPUS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_MAX_CPU = 65_535


def chosen(
    cpu: Sequence[str] | None = None,
    pid: Sequence[int] | None = None,
    tid: Sequence[int] | None = None,
    comm: Sequence[str] | None = None,
    unit: Sequence[str] | None = None,
    container: Sequence[str] | None = None,
    kernel: bool | None = None,
    match: str | None = None,
    event: str | None = None,
    idle: bool = False,
    *,
    linear: bool = False,
) -> Filters:
    """The filters that the options mean; `linear`: the expression is somebody else's. Raises UnclearError."""
    from zombiescope.profile.selection import Filters

    mode: Mode | None = None if kernel is None else "kernel" if kernel else "user"
    return Filters(
        frozenset(number for text in cpu or () for number in _cpus(text)),
        frozenset(pid or ()),
        frozenset(tid or ()),
        tuple(comm or ()),
        tuple(unit or ()),
        tuple(container or ()),
        mode,
        pattern(match, linear=linear),
        event,
        idle,
    )


def _cpus(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _CPUS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= _MAX_CPU:
            raise UnclearError(f"--cpu {text!r} is not a list of cores; write 3, or 0-3,8")
        found.update(range(first, last + 1))
    return found


def pattern(text: str | None, option: str = "--match", *, linear: bool = False) -> Expression | None:
    """Raises UnclearError."""
    from zombiescope.profile.expression import Linear

    if text is None:
        return None
    try:
        return Linear.compiled(text) if linear else re.compile(text)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise UnclearError(f"{option} {text!r} is not a regular expression: {error}") from None


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
        )
        if values
    ]
    if filters.mode is not None:
        parts.append("in the kernel" if filters.mode == "kernel" else "in user space")
    if filters.match is not None:
        parts.append(f"matching {filters.match.pattern}")
    if filters.event is not None:
        parts.append(f"event {filters.event}")
    return ", ".join(parts)

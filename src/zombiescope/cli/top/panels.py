"""What stands below the cores: who ran, the worst second so far, GPUs, zombies, the last events, the recorder's cost,
what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.text import Text

from zombiescope.cli.quantities import human_bytes, human_count, percent
from zombiescope.cli.top.gpus import gpu_lines
from zombiescope.cli.top.strips import ALARM, CAUTION, NOT_MEASURED
from zombiescope.cli.typed import called
from zombiescope.cli.window import clock
from zombiescope.store.event import Event

if TYPE_CHECKING:
    from zombiescope.cli.top.screen import View

_LABEL = 11
_SEVERITY = {"critical": ALARM, "warning": CAUTION, "info": "dim"}
_VERDICTS = {"costly": ALARM, "watch": CAUTION, "harmless": "dim"}
_KIND = 13
_KERNEL_SAID = 0.5
"""From so much of a process's time on, it is said that the kernel had it."""


def lines(view: View, width: int, room: int, for_cores: int) -> list[Text]:
    """The panels in the room that the cores leave; the events take what is over, and when there is too little
    room for all, the lower panels are left out first."""
    above = [*_who(view, width), *_worst(view, width), *gpu_lines(view.recent, width), *_cgroups(view)]
    below = [*_recorder(view), *_missing(view)]
    left = room - for_cores - len(above) - len(below)
    events = _events(view, min(max(left, 2), 10))
    return [*above, *events, *below][: max(room - min(for_cores, 4), 0)]


_HELP = (
    "A cell is one second of one core: its height is how busy the core was, its colour with what. Red is the "
    "kernel working for a process (system), magenta the network and timers (softirq), green programs. A full "
    "red strip is a core on which nothing else runs: no packets, no heartbeats. ╌ was not measured."
)
_KEYS = (
    "space  pause, and continue",
    "s      order of cores: automatic, by heat, by number",
    "q      quit",
    "?      close this",
)


def help_lines(width: int) -> list[Text]:
    """What the picture means."""
    return [Text(f" {line}") for line in (*wrap(_HELP, max(20, width - 2)), "", *_KEYS)]


def _label(name: str) -> Text:
    return Text().append(f" {name}".ljust(_LABEL), "bold")


def _indent() -> Text:
    return Text(" " * _LABEL)


def _worst(view: View, width: int) -> list[Text]:
    worst = view.worst
    if worst is None:
        return [_label("worst").append("nothing was sampled yet", "dim")]
    who = worst.comm or "?"
    details = ", ".join(part for part in (f"pid {worst.pid}" if worst.pid else None, worst.owner) if part)
    line = _label("worst").append(f"{clock(worst.from_us, view.zone)}  core {worst.cpu}  ")
    line.append(f"{percent(worst.kernel_ratio)} kernel  ", ALARM if worst.kernel_ratio >= 0.95 else "")
    line.append(who, "bold").append(f" ({details})" if details else "", "dim")
    return [line, _indent().append_text(breadcrumb(worst.path, width - _LABEL))]


def _who(view: View, width: int) -> list[Text]:
    """Who had the cores in the last seconds: as many as fit, with what the kernel took for them."""
    if not view.ran:
        return [_label("who ran").append("no task was sampled yet", "dim")]
    line, used = _label("who ran"), _LABEL
    for place, ran in enumerate(view.ran):
        in_kernel = f" {percent(ran.kernel_ratio)} kernel" if ran.kernel_ratio >= _KERNEL_SAID else ""
        cores = f" {ran.cpus:.2f}"
        owner = f" {ran.owner}" if ran.owner and ran.owner != ran.comm else ""
        gap = "  " if place else ""
        used += len(gap) + len(ran.name) + len(cores) + len(in_kernel) + len(owner)
        if place and used > width:
            break
        line.append(gap).append(ran.name, "bold").append(cores)
        line.append(in_kernel, CAUTION if in_kernel else "").append(owner, "dim")
    return [line]


def breadcrumb(frames: Sequence[str], width: int) -> Text:
    """A kernel path, outermost first; the outer end is cut when there is no room."""
    if not frames:
        return Text().append("no stack was sampled in that second", "dim")
    kept: list[str] = []
    used = 2
    for frame in reversed(frames):
        used += len(frame) + 3
        if kept and used > width:
            break
        kept.insert(0, frame)
    text = Text().append("… › " if len(kept) < len(frames) else "", "dim")
    for frame in kept[:-1]:
        text.append(frame).append(" › ", "dim")
    return text.append(kept[-1], ALARM)


def _cgroups(view: View) -> list[Text]:
    census = view.recent.census()
    if census is None or census.total is None:
        return [_label("zombies").append("memory cgroups are not counted", NOT_MEASURED)]
    line = _label("zombies").append(human_count(census.dying), "bold")
    line.append(f" dying of {human_count(census.total)} memory cgroups, {human_count(census.live)} live")
    growth = view.recent.dying_per_hour()
    if growth is not None and growth:
        line.append(f"  {growth:+,.0f} an hour", CAUTION if growth > 0 else "green")
    if view.zombies is not None:
        line.append(f"  {view.zombies}", _VERDICTS.get(view.zombies, ""))
    leak = view.recent.top_leak()
    if leak is None:
        return [line]
    by = f" by {leak.unit or leak.comm}" if leak.unit or leak.comm else ""
    return [line, _indent().append(f"most in {leak.path} ({human_count(leak.dying)}){by}")]


def _events(view: View, room: int) -> list[Text]:
    made: list[Text] = []
    for event, times in _folded(view.recent.events)[:room]:
        style = _SEVERITY.get(event.severity, "")
        line = _indent() if made else _label("events")
        line.append(f"{clock(event.at_us, view.zone)}  ", "dim").append(f"{event.kind:<{_KIND}} ", style)
        line.append(f"{times}× " if times > 1 else "", "bold")
        made.append(line.append(" ".join(event.text.split()), "dim" if style == "dim" else ""))
    return made or [_label("events").append("none yet", "dim")]


def _folded(events: Iterable[Event]) -> list[tuple[Event, int]]:
    """Newest first; an event that says the same as a later one is counted with it, so that a crash loop is
    one line."""
    folded: dict[tuple[str, str], tuple[Event, int]] = {}
    for event in reversed(list(events)):
        newest, times = folded.get((event.kind, event.text), (event, 0))
        folded[event.kind, event.text] = (newest, times + 1)
    return list(folded.values())


def _recorder(view: View) -> list[Text]:
    cost = view.recent.cost()
    line = _label("recorder")
    if cost is None:
        return [line.append("its cost is not known yet", "dim")]
    parts = [f"{percent(cost.cpu_ratio, 1)} of a core", human_bytes(cost.rss_bytes)]
    if cost.bytes_per_hour is not None:
        parts.append(f"{human_bytes(cost.bytes_per_hour)} an hour")
    line.append(" · ".join(parts), "dim")
    if cost.lost:
        line.append(f" · {human_count(cost.lost)} records lost", f"bold {CAUTION}")
    if view.note:
        line.append(f" · {view.note}", "dim")
    return [line]


def _missing(view: View) -> list[Text]:
    missing: list[dict[str, Any]] | None = view.node.get("missing")
    if missing is None:
        return []
    if not missing:
        return [_label("blind to").append("nothing: every source is recorded", "dim")]
    first = missing[0]
    names = ", ".join(str(item.get("source", "?")) for item in missing)
    line = _label("blind to").append(names, NOT_MEASURED)
    hint = f"  ({first.get('why')}: {first.get('grant')})" if len(missing) == 1 else f"  ('{called()} status' says why)"
    return [line.append(hint, "dim")]

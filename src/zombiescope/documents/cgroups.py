"""The census of memory cgroups: at the end of a window, or now."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zombiescope.diagnosis import leak
from zombiescope.diagnosis.facts import Facts
from zombiescope.query.cgroups import CgroupsView, Leak, cgroups
from zombiescope.query.memcg_cost import Forecast, LeafCost, Load, judge
from zombiescope.questions.window import Window, WindowQuestion
from zombiescope.store.reader import Recording

if TYPE_CHECKING:
    from zombiescope.kernel.live_census import LiveCensus


CHARGED = 32
"""Of so many lines, those with most dying, it is looked up who asked."""


def answer(recording: Recording, question: WindowQuestion) -> dict[str, Any]:
    """Raises QuestionError."""
    return at_end_of(recording, question.choose(recording))


def at_end_of(recording: Recording, window: Window) -> dict[str, Any]:
    facts = Facts(recording, window.start_us, window.end_us)
    return _document(recording, cgroups(recording, window.start_us, window.end_us), facts)


def _document(recording: Recording, view: CgroupsView, facts: Facts) -> dict[str, Any]:
    memory = view.memory
    counts = ("hierarchy", "total", "live", "dying", "created", "removed", "released", "lost")
    return {
        "node": recording.name,
        "kernel": recording.node.get("kernel"),
        "at": None if memory is None else memory.at_us / 1e6,
        "source": "recording",
        "memory": {name: getattr(memory, name, None) for name in counts},
        "growth_per_hour": view.growth_per_hour,
        "verdict": view.verdict,
        "why": view.why,
        "leaks": [
            {**_leak(line), "charged_to": leak.requested_by(facts, line) if place < CHARGED else None}
            for place, line in enumerate(view.leaks)
        ],
        "forecast": _forecast(view.forecast),
    }


def of_now(node: str, kernel: str, found: LiveCensus) -> dict[str, Any]:
    counts = {name: getattr(found, name) for name in ("hierarchy", "total", "live", "dying")}
    load = Load(found.at_us, found.total, found.live, found.dying)
    verdict = judge(kernel, load, LeafCost(found.numa_stat_ns, found.stat_ns, found.walk_ns))
    unknown: dict[str, None] = dict.fromkeys(("created", "removed", "released", "lost"))
    return {
        "node": node,
        "kernel": kernel,
        "at": found.at_us / 1e6,
        "source": "now",
        "memory": {**counts, **unknown},
        "growth_per_hour": None,
        "verdict": verdict.verdict,
        "why": verdict.why,
        "leaks": [],
        "forecast": _forecast(verdict.forecast),
    }


def _leak(line: Leak) -> dict[str, Any]:
    same = ("path", "dying", "created", "removed", "released", "exact", "names")
    return {
        **{name: getattr(line, name) for name in same},
        "creator": asdict(line.creator),
        "changed": line.changed_us / 1e6,
    }


def _forecast(forecast: Forecast) -> dict[str, float | bool | None]:
    def seconds(at_us: int | None) -> float | None:
        return None if at_us is None else at_us / 1e6

    return {
        "estimated": True,
        "read_cost_now_s": forecast.read_cost_now_s,
        "costs_1s_at": seconds(forecast.costs_1s_at_us),
        "costs_5s_at": seconds(forecast.costs_5s_at_us),
    }

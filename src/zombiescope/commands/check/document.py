"""The JSON document of a check. Times are Unix seconds, ratios 0 to 1, not measured is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from zombiescope.audit.finding import Finding
from zombiescope.checkup.checkup import Checkup, rank
from zombiescope.checkup.cores import CoreSeen
from zombiescope.checkup.defunct import ANOTHER_KIND
from zombiescope.checkup.sampled import Hog
from zombiescope.checkup.verdict import verdict
from zombiescope.views.cgroups import Leak
from zombiescope.views.cores import MODES, Modes


def document(checkup: Checkup) -> dict[str, Any]:
    said = verdict(checkup)
    return {
        "node": checkup.node,
        "kernel": checkup.kernel,
        "from": checkup.window.start_us / 1e6,
        "to": checkup.window.end_us / 1e6,
        "seconds": checkup.window.seconds,
        "verdict": {"severity": said.severity, "text": said.text},
        "aggregate": _modes(checkup.cores.aggregate),
        "cores": [_core(seen) for seen in checkup.cores.cores],
        "stalls": [
            {"kind": one.kind, "cpu": one.cpu, "at": one.at_us / 1e6, "seconds": one.seconds, "hog": _hog(one.hog)}
            for one in checkup.stalls
        ]
        if checkup.sources["stack samples"]
        else None,
        "hogs": {
            "threads": [_hog(hog) for hog in checkup.threads],
            "crowds": [_hog(hog) for hog in checkup.crowds],
            "real_time": [_hog(hog) for hog in checkup.real_time],
        },
        "pressure": {resource: asdict(found) for resource, found in checkup.pressure.items()},
        "throttled": _throttled(checkup),
        "reclaim": None if checkup.reclaim is None else asdict(checkup.reclaim),
        "cgroups": _cgroups(checkup),
        "network": _network(checkup),
        "units": _units(checkup),
        "events": [
            {"at": one.at_us / 1e6, "kind": one.kind, "source": one.source, "severity": one.severity, "text": one.text}
            for one in checkup.events
        ],
        "log_since_boot": _log(checkup),
        "defunct": _defunct(checkup),
        "audit": {"findings": len(checkup.audit.findings)} if checkup.sources["audit"] else None,
        "findings": _findings(checkup),
        "sources": checkup.sources,
        "missing": [asdict(one) for one in checkup.missing],
    }


def _findings(checkup: Checkup) -> list[dict[str, Any]]:
    """What happened before what might, the worst first."""
    both = [("check", finding) for finding in checkup.findings] + [("audit", one) for one in checkup.audit.findings]
    return [_finding(source, finding) for source, finding in sorted(both, key=lambda pair: -rank(pair[1]))]


def _finding(source: str, finding: Finding) -> dict[str, Any]:
    return {"source": source, **asdict(finding)}


def _modes(modes: Modes) -> dict[str, float | None]:
    return {mode: getattr(modes, mode) for mode in (*MODES, "busy")}


def _core(seen: CoreSeen) -> dict[str, Any]:
    busiest = seen.core.busiest
    return {
        "cpu": seen.core.cpu,
        **_modes(seen.core.modes),
        "longest_saturation_s": seen.core.longest_saturation_s,
        "longest_busy_s": seen.core.longest_busy_s,
        "busiest": None if busiest is None else {"at": busiest.at_us / 1e6, "busy": busiest.busy},
        "hog": _hog(seen.hog),
    }


def _hog(hog: Hog | None) -> dict[str, Any] | None:
    return None if hog is None else asdict(hog)


def _throttled(checkup: Checkup) -> list[dict[str, Any]] | None:
    found = checkup.around.throttled
    return None if found is None else [{**asdict(one), "ratio": one.ratio} for one in found]


def _cgroups(checkup: Checkup) -> dict[str, Any]:
    seen = checkup.cgroups
    memory = seen.memory
    names = ("hierarchy", "total", "live", "dying", "created", "removed", "released", "lost")
    now_s = seen.forecast.read_cost_now_s
    return {
        "memory": {name: getattr(memory, name, None) for name in names},
        "growth": {
            "seconds": seen.growth.seconds,
            "total": seen.growth.total,
            "dying": seen.growth.dying,
            "dying_per_hour_extrapolated": seen.growth.dying_per_hour,
        },
        "verdict": seen.verdict,
        "why": seen.why,
        "read_cost_now_s": now_s,
        "makers": None if seen.makers is None else [_maker(line) for line in seen.makers],
    }


def _maker(line: Leak) -> dict[str, Any]:
    same = ("path", "created", "removed", "released", "dying", "exact")
    return {**{name: getattr(line, name) for name in same}, "creator": asdict(line.creator)}


def _network(checkup: Checkup) -> dict[str, Any]:
    cards, softnet = checkup.network.cards, checkup.network.softnet
    return {
        "cards": None if cards is None else [asdict(card) for card in cards],
        "softnet": None if softnet is None else [asdict(core) for core in softnet if core.dropped or core.squeezed],
    }


def _units(checkup: Checkup) -> dict[str, Any] | None:
    units = checkup.units
    if units is None:
        return None
    return {
        "services": units.services,
        "restarted": [asdict(one) for one in units.restarted],
        "failed": list(units.failed),
        "auto_restart": [{"unit": one.unit, "n_restarts": one.n_restarts} for one in units.waiting],
        "n_restarts": {one.unit: one.n_restarts for one in units.often},
    }


def _log(checkup: Checkup) -> dict[str, Any] | None:
    log = checkup.around.log
    if log is None:
        return None
    kinds = [{"kind": one.kind, "count": one.count, "last": one.last_us / 1e6, "text": one.text} for one in log.kinds]
    return {"lines": log.lines, "overwritten": log.overwritten, "kinds": kinds}


def _defunct(checkup: Checkup) -> dict[str, Any] | None:
    found = checkup.around.defunct
    return None if found is None else {**asdict(found), "note": ANOTHER_KIND}

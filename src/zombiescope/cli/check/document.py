"""The JSON document of a check. Times are Unix seconds, ratios 0 to 1, not measured is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from zombiescope.audit.finding import Finding
from zombiescope.audit.surroundings.defunct import ANOTHER_KIND
from zombiescope.base.severity import rank
from zombiescope.diagnosis.check.check import Check, verdict
from zombiescope.diagnosis.check.cores import HeldCore, Holder
from zombiescope.diagnosis.check.units import restarts_of
from zombiescope.diagnosis.report.document import incident
from zombiescope.model.answer import document as document_of
from zombiescope.query.cgroups import Leak


def document(check: Check) -> dict[str, Any]:
    said = verdict(check)
    return {
        "node": check.node,
        "kernel": check.kernel,
        "from": check.window.start_us / 1e6,
        "to": check.window.end_us / 1e6,
        "seconds": check.window.seconds,
        "verdict": {"severity": said.severity, "text": said.text},
        "aggregate": document_of(check.cores.aggregate),
        "cores": [_core(seen) for seen in check.cores.cores],
        "stalls": [
            {"kind": one.kind, "cpu": one.cpu, "at": one.at_us / 1e6, "seconds": one.seconds, "hog": _hog(one.hog)}
            for one in check.stalls
        ]
        if check.sources["stack samples"]
        else None,
        "hogs": {
            "threads": [_hog(hog) for hog in check.hogs.threads],
            "crowds": [_hog(hog) for hog in check.hogs.crowds],
            "real_time": [_hog(hog) for hog in check.hogs.real_time],
        },
        "pressure": {resource: asdict(found) for resource, found in check.pressure.items()},
        "throttled": _throttled(check),
        "reclaim": None if check.reclaim is None else asdict(check.reclaim),
        "cgroups": _cgroups(check),
        "network": _network(check),
        "units": _units(check),
        "events": [
            {"at": one.at_us / 1e6, "kind": one.kind, "source": one.source, "severity": one.severity, "text": one.text}
            for one in check.events
        ],
        "log_since_boot": _log(check),
        "defunct": _defunct(check),
        "audit": {"findings": len(check.audit.findings)} if check.sources["audit"] else None,
        "findings": _findings(check),
        "incidents": [incident(each) for each in check.diagnosis.incidents],
        "sources": check.sources,
        "missing": [asdict(one) for one in check.missing],
    }


def _findings(check: Check) -> list[dict[str, Any]]:
    """What happened before what might, the worst first."""
    both = [("check", finding) for finding in check.findings] + [("audit", one) for one in check.audit.findings]
    return [_finding(source, finding) for source, finding in sorted(both, key=lambda pair: -rank(pair[1].severity))]


def _finding(source: str, finding: Finding) -> dict[str, Any]:
    names = {"incident": getattr(finding, "incident", None), "pattern": getattr(finding, "pattern", None)}
    return {"source": source, **finding.document(), **names}


def _core(seen: HeldCore) -> dict[str, Any]:
    return {**document_of(seen.core), "hog": _hog(seen.hog)}


def _hog(hog: Holder | None) -> dict[str, Any] | None:
    if hog is None:
        return None
    who = {name: getattr(hog.actor, name) for name in ("comm", "pid", "unit", "container", "cgroup")}
    figures = ("tid", "cpu_s", "kernel_s", "path", "longest_s", "pids", "rt_priority")
    return {**who, **{name: getattr(hog, name) for name in figures}}


def _throttled(check: Check) -> list[dict[str, Any]] | None:
    found = check.surroundings.throttled
    return None if found is None else [{**asdict(one), "ratio": one.ratio} for one in found]


def _cgroups(check: Check) -> dict[str, Any]:
    seen, view = check.cgroups, check.cgroups.view
    names = ("hierarchy", "total", "live", "dying", "created", "removed", "released", "lost")
    return {
        "memory": {name: getattr(view.memory, name, None) for name in names},
        "growth": {
            "seconds": seen.growth.seconds,
            "total": seen.growth.total,
            "dying": seen.growth.dying,
            "dying_per_hour_extrapolated": seen.growth.dying_per_hour,
        },
        "verdict": view.verdict,
        "why": view.why,
        "read_cost_now_s": view.forecast.read_cost_now_s,
        "read_cost_estimated": True,
        "makers": None if seen.makers is None else [_maker(line, seen.requested_by) for line in seen.makers],
    }


def _maker(line: Leak, requested_by: dict[str, str]) -> dict[str, Any]:
    same = ("path", "created", "removed", "released", "dying", "exact")
    known = {name: getattr(line, name) for name in same}
    return {**known, "creator": asdict(line.creator), "charged_to": requested_by.get(line.path)}


def _network(check: Check) -> dict[str, Any]:
    cards, softnet = check.network.cards, check.network.softnet
    return {
        "cards": None if cards is None else [asdict(card) for card in cards],
        "softnet": None if softnet is None else [asdict(core) for core in softnet if core.dropped or core.squeezed],
    }


def _units(check: Check) -> dict[str, Any] | None:
    units = check.units
    if units is None:
        return None
    return {
        "services": units.services,
        "restarted": [
            {"unit": one.unit, "times": one.times, "so_far": one.so_far, "text": one.text} for one in units.restarted
        ],
        "failed": list(units.failed),
        "auto_restart": [{"unit": one.name, "n_restarts": restarts_of(one)} for one in units.waiting],
        "n_restarts": {one.name: restarts_of(one) for one in units.often},
    }


def _log(check: Check) -> dict[str, Any] | None:
    log = check.surroundings.log
    if log is None:
        return None
    kinds = [{"kind": one.kind, "count": one.count, "last": one.last_us / 1e6, "text": one.text} for one in log.kinds]
    return {"lines": log.lines, "overwritten": log.overwritten, "kinds": kinds}


def _defunct(check: Check) -> dict[str, Any] | None:
    found = check.surroundings.defunct
    return None if found is None else {**asdict(found), "note": ANOTHER_KIND}

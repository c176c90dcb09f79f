"""The panels of a check: a few lines of figures a subject, marked when a finding is about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from zombiescope.audit.rules.kernel_log import ago
from zombiescope.audit.surroundings.defunct import ANOTHER_KIND
from zombiescope.base.severity import rank
from zombiescope.cli.check import core_strips
from zombiescope.cli.check.styles import NOT_MEASURED, STYLES
from zombiescope.cli.quantities import human_count, human_s
from zombiescope.cli.typed import as_root, called
from zombiescope.diagnosis.check.units import restarts_of

if TYPE_CHECKING:
    from zombiescope.base.missing import Missing
    from zombiescope.diagnosis.check.check import Check
    from zombiescope.query.cgroups import Leak
    from zombiescope.query.node_counters import Card

_VERDICTS = {"costly": STYLES["critical"], "watch": STYLES["warning"], "harmless": "green"}
_AUDIT_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Panel:
    """`texts` below each other; the first is the one that matters. The higher `gives_way`, the sooner it is cut."""

    label: str
    texts: Sequence[Text]
    severity: str | None
    gives_way: int
    least: int = 1
    spare: tuple[int, ...] = ()
    """Lines that may go before the last one does, each by its place once those before it are gone."""


_PANELS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    (
        "cores",
        4,
        (
            "core-",
            "kernel-hog",
            "kernel-crowd",
            "migrating-",
            "machine-",
            "real-time",
            "stolen",
            "run-queue",
            "interrupt-",
        ),
    ),
    ("pressure", 6, ("pressure-", "throttled")),
    ("memory", 6, ("reclaim", "drop-caches", "oom_kill")),
    ("cgroups", 5, ("memory-cgroups", "dying-", "cgroup-churn")),
    ("network", 6, ("card-", "softnet-", "nic", "packet-loss", "ksoftirqd")),
    ("units", 6, ("unit-",)),
    ("audit", 8, ()),
    ("defunct", 7, ("defunct",)),
    ("blind to", 7, ()),
)
"""Label, how soon it gives way, and how the rules begin that are about it."""


def panels(check: Check, width: int) -> list[Panel]:
    texts: dict[str, Callable[[], list[Text]]] = {
        "pressure": lambda: _pressure(check),
        "memory": lambda: _memory(check),
        "cgroups": lambda: _cgroups(check),
        "network": lambda: _network(check),
        "units": lambda: _units(check),
        "audit": lambda: _audit(check),
        "defunct": lambda: _defunct(check),
        "blind to": lambda: _blind(check),
    }
    made = []
    for label, gives_way, rules in _PANELS:
        severity = _severity(check, label, rules)
        if label == "cores":
            strips = core_strips.strips(check, width)
            least = len(strips.lines) - len(strips.spare)
            made.append(Panel(label, strips.lines, severity, gives_way, least, strips.spare))
        else:
            made.append(Panel(label, texts[label](), severity, gives_way))
    return made


def _severity(check: Check, label: str, rules: tuple[str, ...]) -> str | None:
    if label == "blind to":
        return "warning" if check.missing else None
    if label == "audit":
        about = list(check.audit.findings)
    else:
        about = [one for one in check.all_findings() if rules and one.rule.startswith(rules)]
    return max((one.severity for one in about), key=rank, default=None)


def _joined(parts: Sequence[Text | str]) -> Text:
    text = Text()
    for number, part in enumerate(parts):
        text.append(" · " if number else "", "dim").append_text(part if isinstance(part, Text) else Text(part))
    return text


def _pressure(check: Check) -> list[Text]:
    if all(found.some is None and found.full is None for found in check.pressure.values()):
        lines = [Text("not measured by this kernel", NOT_MEASURED)]
    else:
        lines = [
            Text().append("some/full: ", "dim").append_text(_joined([_resource(check, one) for one in check.pressure]))
        ]
    throttled = check.surroundings.throttled
    if throttled is None:
        lines.append(Text("CPU quotas cannot be read", NOT_MEASURED))
    elif throttled:
        worst = throttled[0]
        more = f", and {len(throttled) - 1} more" if len(throttled) > 1 else ""
        lines.append(
            Text(
                f"throttled: {worst.cgroup} in {worst.throttled} of {worst.periods} periods, "
                f"{human_s(worst.seconds)} (quota {worst.quota_cores:g} cores){more}"
            )
        )
    else:
        lines[0].append(" · ", "dim").append("no cgroup throttled")
    return lines


def _resource(check: Check, name: str) -> Text:
    found = check.pressure[name]
    if found.some is None and found.full is None:
        return Text().append(f"{name} ", "dim").append("?", NOT_MEASURED)
    shown = "/".join("-" if ratio is None else f"{ratio * 100:.0f}" for ratio in (found.some, found.full))
    loud = max(found.some or 0, found.full or 0) >= 0.1
    return Text().append(f"{name} ", "dim").append(f"{shown}%", "bold" if loud else "")


def _memory(check: Check) -> list[Text]:
    if check.reclaim is None:
        return [Text("reclaim is not measured", NOT_MEASURED)]
    rates, counts = check.reclaim.per_second, check.reclaim.counts
    names = {
        "pgscan_direct": "direct scans",
        "allocstall": "allocation stalls",
        "pgscan_kswapd": "kswapd scans",
        "compact_stall": "compaction stalls",
        "pswpin": "swap-ins",
    }
    moved = [f"{words} {rates[name]:,.0f}/s" for name, words in names.items() if rates[name] >= 0.5]
    moved += [f"{name} {count}" for name, count in counts.items() if count]
    if not moved:
        quiet = "no reclaim, no allocation stall, no compaction stall, no swapping"
        return [Text(quiet, "dim")]
    return [_joined(moved)]


def _cgroups(check: Check) -> list[Text]:
    seen, view = check.cgroups, check.cgroups.view
    memory = view.memory
    if memory is None:
        return [Text(view.why, NOT_MEASURED)]
    line = Text().append(human_count(memory.total), "bold").append(f" memory cgroups tracked ({memory.hierarchy}), ")
    if memory.live is None:
        line.append("in use: not counted in this time", NOT_MEASURED)
    else:
        line.append(f"{human_count(memory.live)} in use, ").append(f"{human_count(memory.dying)} dying", "bold")
    growth = seen.growth
    if growth.dying:
        style = STYLES["warning"] if growth.dying > 0 else "green"
        pace = growth.dying_per_hour
        more = "" if pace is None else f" (extrapolated: {pace:+,.0f} an hour)"
        line.append(f"; dying {growth.dying:+,} in {growth.seconds:.0f} s{more}", style)
    lines = [line, Text.assemble((f"{view.verdict}: ", _VERDICTS.get(view.verdict or "", "")), view.why)]
    return [*lines, *_makers(check)] if not seen.makers else [lines[0], *_makers(check), lines[1]]


def _makers(check: Check) -> list[Text]:
    makers = check.cgroups.makers
    if makers is None:
        return [Text("who makes and removes cgroups cannot be seen", NOT_MEASURED)]
    lines = [_maker(line, check.cgroups.requested_by.get(line.path)) for line in makers[:2]]
    if len(makers) > 2:
        lines[-1].append(f" · and {len(makers) - 2} more paths", "dim")
    return lines or [Text("no cgroup was created or removed", "dim")]


def _maker(line: Leak, asked: str | None) -> Text:
    least = "" if line.exact in (True, None) else "≥"
    creator = line.creator
    pid = f" [{creator.pid}]" if creator.pid is not None else ""
    names = [
        name for name in (f"{creator.comm}{pid}" if creator.comm else None, creator.unit or creator.container) if name
    ]
    if asked is not None:
        names = [f"{asked} (through {creator.comm})"]
    text = Text(f"{line.path or '(many paths)'}: ")
    text.append(f"{least}{human_count(line.created)} made, {human_count(line.removed)} removed", "bold")
    text.append(f", {human_count(line.released)} released")
    return text.append(f", by {' '.join(names)}" if names else ", made before we looked", "" if names else "dim")


def _network(check: Check) -> list[Text]:
    cards, softnet = check.network.cards, check.network.softnet
    parts: list[Text | str] = []
    if cards is None:
        parts.append(Text("cards cannot be read", NOT_MEASURED))
    elif not cards:
        parts.append(Text("no physical card here", "dim"))
    else:
        parts += [_card(card, check.window.seconds) for card in cards[:2]]
    if softnet is None:
        parts.append(Text("softnet ?", NOT_MEASURED))
    else:
        dropped, squeezed = sum(core.dropped for core in softnet), sum(core.squeezed for core in softnet)
        parts.append(Text(f"softnet dropped {dropped:,}, squeezed {squeezed:,}", "" if dropped or squeezed else "dim"))
    log = check.surroundings.log
    resets = [one for one in log.kinds if one.kind.startswith("nic_")] if log else []
    lines = [_joined(parts)]
    now = [event for event in check.events if event.kind.startswith("nic_")]
    lines += [Text(f"{event.kind}: {' '.join(event.text.split())}", STYLES["critical"]) for event in now[-2:]]
    if log is None:
        lines[0].append(" · ", "dim").append("kernel log closed", NOT_MEASURED)
    for one in resets:
        when = ago(check.window.end_us / 1e6 - one.last_us / 1e6)
        lines.append(Text(f"kernel log since boot: {one.kind} {one.count}×, last {when}", STYLES["warning"]))
    if log is not None and not resets:
        lines[0].append(" · ", "dim").append("no reset logged since boot", "dim")
    return lines


def _card(card: Card, seconds: float) -> Text:
    rate = (card.rx_packets + card.tx_packets) / max(seconds, 0.001)
    text = Text(f"{card.name} {rate:,.0f} packets/s")
    trouble = sorted(card.trouble.items(), key=lambda item: -item[1])
    if not trouble:
        return text.append(", no drops or errors", "dim")
    return text.append(", " + ", ".join(f"{name} +{count:,}" for name, count in trouble[:3]), STYLES["warning"])


def _units(check: Check) -> list[Text]:
    units = check.units
    if units is None:
        return [Text("systemd does not answer", NOT_MEASURED)]
    lines = [
        Text(f"{one.unit} restarted {one.times}×" + ("" if one.so_far is None else f" ({one.so_far} so far)"))
        for one in units.restarted[:3]
    ]
    told = {one.unit for one in units.restarted}
    lines += [
        Text(f"{one.name} waits in auto-restart ({human_count(restarts_of(one))} restarts so far)")
        for one in units.waiting[:3]
        if one.name not in told
    ]
    lines += [Text(text) for text in units.failed[:2]]
    if not lines:
        lines = [Text(f"{units.services} services, none restarting", "dim")]
    elsewhere = [one for one in units.often if one.name not in told and one not in units.waiting]
    if elsewhere:
        most = ", ".join(f"{one.name} {restarts_of(one)}×" for one in elsewhere[:3])
        lines.append(Text(f"restarted earlier: {most}", "dim"))
    return lines


def _audit(check: Check) -> list[Text]:
    if not check.sources["audit"]:
        return [Text("not examined", NOT_MEASURED)]
    found = check.audit.findings
    if not found:
        return [Text("nothing found in the configuration of this node", "dim")]
    lines = [_audited(one.severity, one.unit, one.why) for one in found[:_AUDIT_SHOWN]]
    if len(found) > _AUDIT_SHOWN:
        lines.append(Text(f"and {len(found) - _AUDIT_SHOWN} more: '{called()} audit' has them all", "dim"))
    return lines


def _audited(severity: str, unit: str | None, why: str) -> Text:
    text = Text().append(f"{severity}: ", STYLES.get(severity, ""))
    return text.append(why if unit is None or unit in why else f"{unit}: {why}")


def _defunct(check: Check) -> list[Text]:
    found = check.surroundings.defunct
    if found is None:
        return [Text("processes cannot be listed", NOT_MEASURED)]
    if not found.lasting:
        return [
            Text(f"none of {human_count(found.processes)} processes (zombie processes, unlike zombie cgroups)", "dim")
        ]
    parent = found.parents[0]
    line = Text(f"{human_count(found.lasting)} of {human_count(found.processes)} processes, ")
    line.append(f"{human_count(parent.defunct)} left by {parent.comm or '?'} (pid {parent.pid})", "bold")
    return [line.append(f"; {ANOTHER_KIND}", "dim")]


def _blind(check: Check) -> list[Text]:
    # What a privilege would show comes first; what this kernel does not have, nobody can grant.
    missing = sorted(check.missing, key=lambda one: "CAP_" not in one.grant)
    if not missing:
        return [Text(f"nothing: {len(check.sources)} of {len(check.sources)} sources were read", "dim")]
    if len(missing) == 1:
        return [Text().append(missing[0].source, NOT_MEASURED).append(f": {missing[0].why}; {missing[0].grant}", "dim")]
    lines = [Text().append(", ".join(one.source for one in missing), NOT_MEASURED)]
    closed = [one for one in missing if "CAP_" in one.grant]
    if closed and os.geteuid() != 0:
        these = "all of it" if len(closed) == len(missing) else f"all but {_names(missing, closed)}"
        lines[0].append(f"; root sees {these}: {as_root('check')}", "bold")
    grants: dict[str, list[str]] = {}
    for one in missing:
        grants.setdefault(one.grant, []).append(one.source)
    return [*lines, *(Text(f"{', '.join(sources)}: {grant}", "dim") for grant, sources in grants.items())]


def _names(missing: Sequence[Missing], without: Sequence[Missing]) -> str:
    return ", ".join(one.source for one in missing if one not in without)

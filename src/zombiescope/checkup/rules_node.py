"""Findings about the node as a whole: pressure, reclaim, quotas, cgroups, network, units, the log, defunct processes.

The thresholds are meant for ten seconds: low enough to show what is going on, and a count is never taken for a cause.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.checkup.checkup import Checkup
from zombiescope.checkup.defunct import ANOTHER_KIND
from zombiescope.checkup.network import Card
from zombiescope.checkup.wording import ago, finding, percent, seconds
from zombiescope.views.cgroups import Leak

PRESSURE = (
    ("memory", "full", 0.3, "critical", "nobody who wanted to run could, for want of memory"),
    ("memory", "full", 0.05, "warning", "nobody who wanted to run could, for want of memory"),
    ("memory", "some", 0.1, "warning", "some task waited for memory"),
    ("io", "full", 0.3, "warning", "nobody who wanted to run could, for want of a disk's answer"),
    ("irq", "full", 0.1, "warning", "tasks waited for interrupts to be served"),
    ("cpu", "some", 0.5, "info", "some task waited for a core (how many, this does not say)"),
)
"""Resource, kind, threshold, severity, words; the first that holds for a resource is said."""

RECLAIM = (
    ("allocstall", 1.0, "warning", "allocations had to free memory themselves before they got any"),
    ("pgscan_direct", 1000.0, "warning", "pages were scanned by tasks that wanted memory (direct reclaim)"),
    ("compact_stall", 1.0, "warning", "allocations of large pages had to move memory first (compaction)"),
    ("pgscan_kswapd", 10_000.0, "info", "pages were scanned by kswapd"),
    ("pswpin", 100.0, "info", "pages came back from swap"),
)
"""Counter of /proc/vmstat, threshold a second, severity, words."""

THROTTLED_RATIO = 0.1
THROTTLED_PERIODS = 5
GROWTH = 10
CHURN = 20
DROPS_RATIO = 0.001
DROPS = 10
DEFUNCT = 100
RECENT_S = 86_400.0
STILL_SERIOUS = frozenset({"nic_reset", "nic_tx_timeout", "soft_lockup", "hard_lockup", "rcu_stall"})
"""Of these, one that is less than a day old is worth a warning; a process killed for its own limit is not."""
_RESETS = ("timeout", "reset", "wd_expired")
_SAID_ELSEWHERE = frozenset({"kernel_log", "cgroup_churn", "mark", "unit_restart", "unit_failed", "unit_state"})


def findings(checkup: Checkup) -> Iterator[Finding]:
    yield from _events(checkup)
    yield from _cgroups(checkup)
    yield from _pressure(checkup)
    yield from _reclaim(checkup)
    yield from _throttled(checkup)
    yield from _network(checkup)
    yield from _units(checkup)
    yield from _since_boot(checkup)
    yield from _defunct(checkup)


def _events(checkup: Checkup) -> Iterator[Finding]:
    """What the kernel log said in the window, one finding a kind."""
    by_kind: dict[str, list[str]] = {}
    severity: dict[str, str] = {}
    for event in checkup.events:
        if event.kind not in _SAID_ELSEWHERE and event.severity != "info":
            by_kind.setdefault(event.kind, []).append(" ".join(event.text.split()))
            severity[event.kind] = "critical" if "critical" in (severity.get(event.kind), event.severity) else "warning"
    for kind, texts in by_kind.items():
        times = f"{len(texts)} times, last " if len(texts) > 1 else ""
        yield finding(kind, "now", severity[kind], f"{kind}: {times}{texts[-1]}", "kernel log", texts[-1])


def _pressure(checkup: Checkup) -> Iterator[Finding]:
    said = set()
    for resource, kind, threshold, severity, words in PRESSURE:
        ratio = getattr(checkup.pressure[resource], kind)
        if ratio is None or ratio < threshold or resource in said:
            continue
        said.add(resource)
        long = seconds(ratio * checkup.window.seconds)
        yield finding(
            f"pressure-{resource}",
            kind,
            severity,
            f"for {long} of {checkup.window.seconds:.0f} s {words}",
            f"/proc/pressure/{resource}",
            f"{kind} {percent(ratio)}; threshold {percent(threshold)}",
        )


def _reclaim(checkup: Checkup) -> Iterator[Finding]:
    if checkup.reclaim is None:
        return
    kills = checkup.reclaim.counts["oom_kill"]
    if kills and not any(event.kind == "oom_kill" for event in checkup.events):
        why = f"the kernel killed {kills} processes for want of memory"
        yield finding("oom_kill", "vmstat", "critical", why, "/proc/vmstat", f"oom_kill +{kills}; threshold 1")
    for name, threshold, severity, words in RECLAIM:
        rate = checkup.reclaim.per_second[name]
        if rate >= threshold:
            why = f"{rate:,.0f} {words}" if rate >= 10 else f"{rate:.1f} {words}"
            shown = f"{name} {rate:,.1f} a second; threshold {threshold:,.0f}"
            yield finding("reclaim", name, severity, f"{why}, a second", "/proc/vmstat", shown)
    if checkup.reclaim.counts["drop_slab"]:
        why = "somebody wrote to drop_caches: that walks every memory cgroup, zombies included"
        yield finding("drop-caches", "slab", "info", why, "/proc/vmstat", "drop_slab moved; threshold 1")


def _throttled(checkup: Checkup) -> Iterator[Finding]:
    for one in (checkup.around.throttled or ())[:3]:
        if one.periods < THROTTLED_PERIODS or one.ratio < THROTTLED_RATIO:
            continue
        yield finding(
            "throttled",
            one.cgroup,
            "warning",
            f"{one.cgroup} used up its quota of {one.quota_cores:g} cores in {one.throttled} of {one.periods} periods "
            f"and stood still for {seconds(one.seconds)}, however idle the node was",
            "cpu.stat",
            f"throttled in {percent(one.ratio)} of the periods; threshold {percent(THROTTLED_RATIO)}",
            fix=("# raise or remove the quota: cpu.max, CPUQuota= or limits.cpu",),
        )


def _cgroups(checkup: Checkup) -> Iterator[Finding]:
    seen = checkup.cgroups
    memory, growth = seen.memory, seen.growth
    if memory is not None and seen.verdict in ("costly", "watch"):
        counts = f"{memory.total:,} memory cgroups are tracked"
        counts += "" if memory.live is None else f" and {memory.live:,} are in use"
        severity = "critical" if seen.verdict == "costly" else "warning"
        shown = f"total {memory.total}, live {memory.live}, dying {memory.dying}: {seen.verdict}"
        yield finding("memory-cgroups", seen.verdict, severity, f"{counts}: {seen.why}", "/proc/cgroups", shown)
    if growth.dying is not None and growth.dying > 0:
        per_hour = (
            f"{growth.dying_per_hour:,.0f} an hour if it went on like this, which {growth.seconds:.0f} s cannot tell"
        )
        yield finding(
            "dying-cgroups-grow",
            "node",
            "warning" if growth.dying >= GROWTH else "info",
            f"{growth.dying:,} more dying memory cgroups than {growth.seconds:.0f} s before: {per_hour}",
            "/proc/cgroups",
            f"dying +{growth.dying}; a warning from +{GROWTH} on",
        )
    makers = [line for line in seen.makers or () if (line.created or 0) >= CHURN]
    for line in makers[:2]:
        yield _churn(checkup, line)


def _churn(checkup: Checkup, line: Leak) -> Finding:
    least = "" if line.exact in (True, None) else "at least "
    creator = line.creator
    names = [name for name in (creator.comm, creator.unit or creator.container) if name]
    by = f" by {' of '.join(names)}" if names else ""
    return finding(
        "cgroup-churn",
        line.path,
        "warning",
        f"{least}{line.created:,} cgroups were made{by} and {line.removed or 0:,} removed in "
        f"{checkup.window.seconds:.0f} s at {line.path or 'many paths'}; {line.dying:,} removed ones are kept",
        "tracepoint cgroup:cgroup_mkdir",
        f"created {line.created}; threshold {CHURN}",
        unit=creator.unit,
    )


def _network(checkup: Checkup) -> Iterator[Finding]:
    for card in checkup.network.cards or ():
        if card.trouble:
            yield _card(card)
    dropped = [core for core in checkup.network.softnet or () if core.dropped]
    if dropped:
        worst = max(dropped, key=lambda core: core.dropped)
        total = sum(core.dropped for core in dropped)
        yield finding(
            "softnet-dropped",
            "node",
            "warning",
            f"{total:,} packets were dropped because a core did not keep up, most of them on core {worst.cpu}",
            "/proc/net/softnet_stat",
            f"dropped {total}; threshold 1",
        )


def _card(card: Card) -> Finding:
    counters = sorted(card.trouble.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} +{count}" for name, count in counters[:4])
    resets = [name for name in card.trouble if any(word in name for word in _RESETS)]
    packets = card.rx_packets + card.tx_packets
    worst = counters[0][1]
    severe = bool(resets) or worst >= max(DROPS, packets * DROPS_RATIO)
    threshold = f"a warning from {DROPS} and {DROPS_RATIO:.1%} of the packets on, and for every timeout or reset"
    why = f"{card.name} counted {shown} in {packets:,} packets"
    return finding("card-trouble", card.name, "warning" if severe else "info", why, "/proc/net/dev", threshold)


def _units(checkup: Checkup) -> Iterator[Finding]:
    units = checkup.units
    if units is None:
        return
    for one in units.restarted[:3]:
        so_far = "" if one.so_far is None else f", {one.so_far} times so far"
        why = f"{one.unit} was restarted {one.times} times in {checkup.window.seconds:.0f} s{so_far}"
        why = why.replace(" 1 times in", " once in")
        fix = (f"journalctl -u {one.unit}", "# and if nobody needs it:", f"systemctl disable --now {one.unit}")
        yield finding("unit-restarted", one.unit, "warning", why, "D-Bus", one.text, unit=one.unit, fix=fix)
    told = {one.unit for one in units.restarted}
    for state in [state for state in units.waiting if state.unit not in told][:3]:
        times = "" if not state.n_restarts else f", restarted {state.n_restarts} times so far"
        why = (
            f"{state.unit} ended and waits to be started again (auto-restart){times}; systemctl --failed never lists it"
        )
        shown = f"SubState {state.sub_state}, NRestarts {state.n_restarts}"
        yield finding("unit-waits", state.unit, "warning", why, "D-Bus", shown, unit=state.unit)
    for text in units.failed[:2]:
        yield finding(
            "unit-failed", text.partition(" ")[0], "warning", text, "D-Bus", text, unit=text.partition(" ")[0]
        )


def _since_boot(checkup: Checkup) -> Iterator[Finding]:
    now_us = checkup.window.end_us
    in_window = {event.kind for event in checkup.events}
    for one in checkup.around.log.kinds if checkup.around.log else ():
        since_s = (now_us - one.last_us) / 1e6
        if one.kind in in_window:
            continue
        times = f"{one.count} times" if one.count > 1 else "once"
        yield finding(
            one.kind,
            "since-boot",
            "warning" if since_s < RECENT_S and one.kind in STILL_SERIOUS else "info",
            f"the kernel log has {one.kind} {times} since boot, last {ago(since_s)}: {' '.join(one.text.split())}",
            "/dev/kmsg",
            f"{one.count} lines; a warning if the last is a reset or a lockup, and less than a day old",
        )


def _defunct(checkup: Checkup) -> Iterator[Finding]:
    found = checkup.around.defunct
    if found is None or not found.lasting:
        return
    parent = found.parents[0]
    who = f"{parent.comm or '?'} (pid {parent.pid})"
    yield finding(
        "defunct",
        "processes",
        "warning" if found.lasting >= DEFUNCT else "info",
        f"{found.lasting} defunct processes, {parent.defunct} of them left by {who}; {ANOTHER_KIND}",
        "/proc/PID/stat",
        f"{found.lasting} in state Z before and after; a warning from {DEFUNCT} on",
        fix=(f"# the parent has to wait for them: mend or restart {who}",),
    )

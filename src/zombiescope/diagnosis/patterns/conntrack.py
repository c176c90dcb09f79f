"""Connection tracking is full, or is dumped again and again."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured, signature
from zombiescope.diagnosis.plan import SETTING_RISK, set_sysctl, setting, shell
from zombiescope.diagnosis.thresholds import (
    CONNTRACK_CHURN_CORES,
    CONNTRACK_DROP_CORES,
    CONNTRACK_DUMP_CORES,
    CONNTRACK_EMPTY_RATIO,
    CONNTRACK_FULL_RATIO,
    GAUGE_LATE_US,
)
from zombiescope.model.plans.step import Act, Step, advice, change, command, note

ENTRY_BYTES = 320
"""A struct nf_conn with its extensions and its place in the hash, about; not measured on the node."""

BUCKET_BYTES = 8
"""A struct hlist_nulls_head."""

_TRACKS = (
    "nf_conntrack_in __nf_conntrack_confirm early_drop gc_worker nf_conntrack_tuple_taken nf_ct_delete "
    "init_conntrack __nf_conntrack_alloc nf_conntrack_hash_check_insert"
)
_CHURN = (
    "init_conntrack __nf_conntrack_alloc __nf_conntrack_confirm early_drop nf_ct_delete nf_conntrack_free gc_worker"
)
_DUMPS = (
    "ctnetlink_dump_table ctnetlink_get_conntrack ctnetlink_del_conntrack ctnetlink_flush_iterate ct_seq_show "
    "ct_seq_next ctnetlink_dump_list nf_ct_iterate_cleanup nf_ct_iterate_cleanup_net get_next_corpse"
)


def examine(case: Case) -> Evidence:
    tracking, dumping = case.cores_in(*_TRACKS.split()), case.cores_in(*_DUMPS.split())
    dumps = dumping is not None and dumping > (tracking or 0)
    culprit = case.caller(*_DUMPS.split()) if dumps else case.sender()
    found = [_dump(dumping or 0)] if dumps else [*_table(case), *_churn(case)]
    return Evidence(
        tuple(found),
        culprit or (case.answerable_hog if dumps else None),
        f"{culprit.subject if culprit else 'a process'} lists the connection table repeatedly"
        if dumps
        else "connections are made faster than connection tracking forgets them"
        + (f"; {culprit.subject} makes most of them" if culprit else ""),
        Fix(
            "make room in the table, or track less",
            tuple(_steps(case, dumps=dumps)),
        ),
    )


def _steps(case: Case, *, dumps: bool) -> Iterator[Step]:
    yield command(
        "conntrack -S; cat /proc/sys/net/netfilter/nf_conntrack_count", "what was dropped, and how full it is"
    )
    if not dumps:
        yield from _larger(case)
    yield advice("conntrack -D with a filter instead of conntrack -L | grep: a filter is applied in the kernel")


def _larger(case: Case) -> Iterator[Step]:
    """Twice what it was; only for the table of the node itself, which is the one that was counted, and only if full."""
    count = case.peak("conntrack", "count")
    most = case.facts.gauge("conntrack", "max", case.to_us + GAUGE_LATE_US)
    if count is None or not most:
        yield command("sysctl net.netfilter.nf_conntrack_max", "how large the table may become: it was not recorded")
    elif count < CONNTRACK_FULL_RATIO * most:
        yield note(f"a larger table does not help: {count:,} of {most:,} entries were used")
    else:
        larger, name = 2 * max(most, count), "net.netfilter.nf_conntrack_max"
        yield from _buckets(case, most, larger)
        room = (larger - most) * ENTRY_BYTES / 1e6
        yield change(
            shell("sysctl", "-w", f"{name}={larger}"),
            f"make the connection table larger: twice the {most:,} that it was",
            touches=f"the connection table of the node: when full it takes about {room:,.0f} MB more (estimated)",
            undo=shell("sysctl", "-w", f"{name}={most}"),
            risk=SETTING_RISK,
            verify=shell("sysctl", name, "net.netfilter.nf_conntrack_count"),
            part="stop-gap",
            act=Act("setting", (("path", f"/proc/sys/{name.replace('.', '/')}"), ("value", str(larger)))),
        )


def _buckets(case: Case, most: int, larger: int) -> Iterator[Step]:
    """As many more, before the table: with the old ones every lookup walks chains twice as long, on the cores that are
    short of time already."""
    name = "net.netfilter.nf_conntrack_buckets"
    now = setting(case.facts, name)
    if now is None or not now.isdigit():
        yield command(shell("sysctl", name), "raise it by the same factor first: longer chains cost more per packet")
        return
    wanted = -(-int(now) * larger // most)
    comment = "as many more as the table has entries, so that its chains stay as short"
    megabytes = [count * BUCKET_BYTES / 1e6 for count in (int(now), wanted)]
    touches = f"the hash table of connections: {megabytes[1]:,.1f} MB instead of {megabytes[0]:,.1f}"
    yield from set_sysctl(case.facts, name, str(wanted), comment, touches=touches)


def _table(case: Case) -> list[Measurement]:
    count = case.peak("conntrack", "count")
    most = case.facts.gauge("conntrack", "max", case.to_us + GAUGE_LATE_US)
    full = [event for event in case.facts.events if event.kind == "conntrack_full"]
    found = (
        [measured(f"the kernel reported {len(full)} times that the table is full", len(full), "lines", "events", True)]
        if full
        else []
    )
    if count is None or not most:
        return [
            *found,
            Measurement("how full the connection table was is not known", None, "entries", "counters", "nothing"),
        ]
    churn = case.cores_in(*_CHURN.split())
    # Tables of other namespaces are seen by their churn alone; where nothing is seen, there may be some.
    elsewhere = bool(full) or churn is None or churn >= CONNTRACK_CHURN_CORES / 3
    says = (
        True
        if count >= CONNTRACK_FULL_RATIO * most
        else False
        if count < CONNTRACK_EMPTY_RATIO * most and not elsewhere
        else None
    )
    where = "connections were tracked" if not elsewhere else "connections were tracked in the node's own namespace"
    return [*found, measured(f"{count:,} of {most:,} {where}", count, "entries", "counters", says)]


def _churn(case: Case) -> list[Measurement]:
    """Entries that are made and dropped, seen in the samples: the table of another network namespace is not counted
    here, and in early_drop the kernel is only when a table is full."""
    churn, dropping = case.busiest_core_in(*_CHURN.split()), case.busiest_core_in("early_drop")
    if churn is None or dropping is None:
        return []
    found = [
        cpu_used(
            "making and dropping entries took {} on one core", churn, True if churn >= CONNTRACK_CHURN_CORES else None
        )
    ]
    if dropping >= CONNTRACK_DROP_CORES:
        found.append(cpu_used("dropping others early, because the table is full, took {}", dropping, True))
    return found


def _dump(cores: float) -> Measurement:
    return cpu_used("dumping the connection table took {}", cores, True if cores >= CONNTRACK_DUMP_CORES else None)


PATTERN = Pattern(
    id="conntrack",
    title="Connection tracking is full or is dumped",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Softirq time in nf_conntrack_in and early_drop: the table is full and each new connection looks for "
    "one to drop. Or an agent lists the whole table for every pod that is deleted.",
    confirmed_by="The table is 85% full; the kernel reported it full or drops entries early; adding and dropping "
    "entries uses 0.15 of a core; or dumping the table uses 0.3.",
    refuted_by="The table is less than 30% full, was not reported full, and few entries are added. (Entries in other "
    "network namespaces are not counted, but the work of adding them is seen.)",
    remedy="Raise nf_conntrack_max, exempt traffic that needs no tracking (NOTRACK), and delete entries with filters.",
    stop_gap="delete entries with a filter, the busiest peer first (conntrack -D); interrupted connections have to "
    "reconnect",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(_TRACKS, means="packets are tracked"),
        signature(_DUMPS, means="the connection table is listed"),
    ),
    scope="core",
    hog="The task that packets interrupted, or the task that lists the table.",
    culprit="The process that lists the table, or the one that sends most on this node.",
    known_from="calico 7948; measured on 6.18",
)

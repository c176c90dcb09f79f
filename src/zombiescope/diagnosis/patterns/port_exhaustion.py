"""Local ports towards one server run out: each connect() looks through thousands before it finds one, or fails.

From half of them on: connect() tries every even port before the first odd one (since 4.2)."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, signature
from zombiescope.diagnosis.thresholds import GAUGE_LATE_US, PORT_SEARCH_CORES
from zombiescope.model.plans.step import Step, advice, command

_SEARCH = "__inet_hash_connect __inet_check_established __inet6_check_established inet_hash_connect inet_csk_get_port"


def examine(case: Case) -> Evidence:
    search = case.cores_in(*_SEARCH.split())
    culprit = case.caller(*_SEARCH.split())
    enough = None if search is None else True if search >= PORT_SEARCH_CORES else None
    return Evidence(
        (cpu_used("looking for a free local port took {}", search, enough), *_sockets(case)),
        culprit,
        f"{culprit.subject if culprit else 'somebody'} makes connections to one place faster than their ports become "
        "free again",
        Fix("keep connections open instead of making new ones", tuple(_steps())),
    )


def _sockets(case: Case) -> Iterator[Measurement]:
    """Of the node's own network namespace; a container's are in its own, and are not counted here."""
    waiting, ports = case.peak("limits", "tcp_time_wait"), case.facts.gauge("limits", "local_ports", case.to_us)
    if waiting is not None and ports and waiting >= ports // 10:
        at_us = case.to_us + GAUGE_LATE_US
        text = f"{waiting:,} connections in TIME_WAIT, {ports:,} local ports"
        yield Measurement(text, waiting, "connections", "counters", "nothing", at_us)


def _steps() -> Iterator[Step]:
    yield command("ss -Htan state time-wait | awk '{print $4}' | sort | uniq -c | sort -rn | head", "to which servers")
    yield command("sysctl net.ipv4.ip_local_port_range net.ipv4.tcp_tw_reuse", "which ports there are")
    yield advice("use a pool of connections, or several addresses of the server; a wider port range only postpones it")


PATTERN = Pattern(
    id="port-exhaustion",
    title="Local ports to one server run out",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Programs fail with 'Cannot assign requested address', and use system time in connect().",
    confirmed_by="Looking for a free port (__inet_hash_connect) uses 0.3 of a CPU: while ports are free, it takes "
    "microseconds.",
    refuted_by="Its functions take less than a fifth of the kernel time.",
    remedy="Keep connections open; spread them over more addresses.",
    stop_gap="widen net.ipv4.ip_local_port_range: a few thousand more ports, which only postpones it",
    examine=examine,
    signatures=(signature("__inet_hash_connect inet_hash_connect", means="a free local port is looked for"),),
    hog="The process that connects.",
    culprit="The process that connects.",
    known_from="net/ipv4/inet_hashtables.c; on 6.18 5 ms for each connect() once half of the ports are in use",
)

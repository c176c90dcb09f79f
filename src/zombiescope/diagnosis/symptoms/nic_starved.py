"""A network card whose poll loop did not get its core.

Three kinds of proof, strongest first: the driver counted it (ENA's suspected_poll_starvation, missing completions),
the core that serves the card's queue was busy elsewhere while its NET_RX count stood still, or packets were dropped
because the backlog of a core was full. The run delay of ksoftirqd proves it only up to kernel 6.4: since 6.5 softirqs
run at every interrupt's end even when ksoftirqd waits (d15121be7485).

A card with threaded NAPI is polled by threads (napi/eth0-8193), which counts as no NET_RX: their own run delay proves
it. Where programs poll by themselves (busy polling) NET_RX stands still while all is well: their stacks show that. A
card that is nearly idle, as beside RDMA, has to be silent for as long as twenty polls would have taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    DRIVER_PATIENCE_S,
    EVENTS_TOGETHER_US,
    KSOFTIRQD_TELLS_BEFORE,
    NIC_CORE_BUSY_RATIO,
    NIC_DELAY_US,
    NIC_DROPS_PER_S,
    NIC_SERVES_LEAST_PER_S,
    NIC_SERVES_PER_S,
    NIC_SILENT_POLLS,
)
from zombiescope.kernel.cpu import parse_list
from zombiescope.store.columns import Ints

STARVED_BY_CORE = ("suspected_poll_starvation",)
"""The driver itself says that its poll loop did not run. The others may also be the device's fault."""
_QUEUE = re.compile(r"(?:queue|q|tx|rx)_?(?P<queue>\d{1,4})_(?:tx_|rx_)?(?P<name>[a-z_]+)$")
DRIVER_COUNTERS = ("suspected_poll_starvation", "missing_tx_cmpl", "os_netdev_wd", "tx_timeout", "tx_timeouts")


BUSY_POLLS = ("napi_busy_loop", "__napi_busy_loop", "sk_busy_loop", "busy_poll_stop", "napi_threaded_poll_loop")
"""Polling outside of the softirq."""


def find(facts: Facts) -> Iterator[Symptom]:
    yield from _driver(facts)
    yield from _threads(facts)
    if facts.cores is not None:
        yield from _standing_still(facts, facts.cores)
        yield from _backlog(facts.cores)
        if facts.kernel is not None and facts.kernel < KSOFTIRQD_TELLS_BEFORE:
            yield from _ksoftirqd(facts.cores)


def _driver(facts: Facts) -> Iterator[Symptom]:
    """Each with its own card, its own queue where the counter is of one, and the time between the two readings."""
    moments = facts.moments("ethtool")
    for (counter, card), (time, added) in facts.readings("ethtool").items():
        name, queue = _of_queue(counter)
        if name not in DRIVER_COUNTERS:
            continue
        moved = added > 0
        for first, last in _near(time[moved]):
            rose = int(added[(time >= first) & (time <= last)].sum())
            before = moments[moments < first]
            from_us = max(facts.start_us, int(before[-1]) if len(before) else first - SECOND_US)
            where = f" on queue {queue}" if queue is not None else ""
            yield Symptom(
                DETECTOR,
                from_us,
                last,
                f"the driver of {card or 'a network card'} counted {name}{where} {rose:,} times",
                "critical" if name in STARVED_BY_CORE else "warning",
                facts={"counter": name, "count": rose} | ({"interface": card} if card else {}),
                cores=facts.served_by(card or None, queue, last),
            )


def _threads(facts: Facts) -> Iterator[Symptom]:
    """Threaded NAPI: how long a poll thread was ready to run and did not run, from one reading to the next."""
    readings, moments = facts.readings("napi"), facts.moments("napi")
    for (name, thread), (time, waited) in readings.items():
        if name != "wait_us":
            continue
        long = waited >= NIC_DELAY_US
        for first, last in _near(time[long]):
            waited_us = int(waited[(time >= first) & (time <= last)].sum())
            before = moments[moments < first]
            on_time, on = readings.get(("cpu", thread), (time[:0], time[:0]))
            there = on[on_time <= last][-1:].tolist()
            yield Symptom(
                DETECTOR,
                max(facts.start_us, int(before[-1]) if len(before) else first - SECOND_US),
                last,
                f"the poll thread {thread} was ready to run and did not get a core for {waited_us / 1e6:.1f} s",
                "critical",
                there[0] if there else None,
                facts={"napi_delay_us": waited_us, "thread": thread, "interface": _card_of(thread)},
            )


def waited(facts: Facts, cpu: int, from_us: int, to_us: int) -> bool:
    """Whether a poll thread that was last on a core waited for one then."""
    readings = facts.readings("napi")
    for (name, thread), (time, values) in readings.items():
        if name != "wait_us" or not (values[(time > from_us) & (time <= to_us + SECOND_US)] >= NIC_DELAY_US).any():
            continue
        on_time, on = readings.get(("cpu", thread), (time[:0], time[:0]))
        if on[on_time <= to_us + SECOND_US][-1:].tolist() in ([cpu], []):
            return True
    return False


def stood_still(cores: CoreGrid, row: int, first: int, last: int) -> bool:
    """Whether a core that polls cards at other times did not in these seconds."""
    received = cores.counts["softirq_net_rx"][row]
    if np.isnan(received).all():
        return False
    usual = float(np.nanmedian(received))
    return usual >= NIC_SERVES_PER_S and bool((np.nan_to_num(received[first:last], nan=usual) < usual / 20).any())


def _card_of(thread: str) -> str:
    """eth0 of napi/eth0-8193."""
    return thread.removeprefix("napi/").rpartition("-")[0] or thread.removeprefix("napi/")


def _of_queue(counter: str) -> tuple[str, int | None]:
    """("missing_tx_cmpl", 5) of queue_5_tx_missing_tx_cmpl, (name, None) of a device-wide one."""
    found = _QUEUE.match(counter)
    return (found["name"], int(found["queue"])) if found else (counter, None)


def _near(time: Ints) -> Iterator[tuple[int, int]]:
    """Moments less than TOGETHER_US apart are one."""
    if not len(time):
        return
    ends = np.flatnonzero(np.diff(time) > EVENTS_TOGETHER_US)
    for first, last in zip([0, *(ends + 1)], [*ends, len(time) - 1], strict=True):
        yield int(time[first]), int(time[last])


def _standing_still(facts: Facts, cores: CoreGrid) -> Iterator[Symptom]:
    received, kernel = cores.counts["softirq_net_rx"], cores.kernel
    serving = _served_cores(facts)
    for row, cpu in enumerate(cores.cpus):
        usual = float(np.nanmedian(received[row])) if not np.isnan(received[row]).all() else 0.0
        least = NIC_SERVES_LEAST_PER_S if cpu in serving else NIC_SERVES_PER_S
        if usual < least or (serving and cpu not in serving):
            continue
        still = (np.nan_to_num(received[row], nan=usual) < usual / 20) & (kernel[row] >= NIC_CORE_BUSY_RATIO)
        for first, last in runs(still):
            if usual * (last - first) < NIC_SILENT_POLLS or _polled_otherwise(facts, cores, cpu, first, last):
                continue
            polled, busy = float(np.nansum(received[row, first:last])), float(kernel[row, first:last].mean())
            yield Symptom(
                DETECTOR,
                cores.at_us(first),
                cores.at_us(last),
                f"core {cpu} polled its network queue {polled:,.0f} times in {last - first} s (usually {usual:,.0f} a"
                f" second) while the kernel kept it {busy * 100:.0f}% busy elsewhere",
                "critical",
                cpu,
                facts={"net_rx": polled, "usual_per_s": usual},
            )


def _polled_otherwise(facts: Facts, cores: CoreGrid, cpu: int, first: int, last: int) -> bool:
    """Whether programs or threads polled on that core: each twentieth sample is enough, as polls are short."""
    grid = facts.samples
    there = grid.where(cores.at_us(first), cores.at_us(last), cpu)
    count = int(np.count_nonzero(there))
    return count > 0 and 20 * int(np.count_nonzero(there & grid.with_function(*BUSY_POLLS))) >= count


def _backlog(cores: CoreGrid) -> Iterator[Symptom]:
    dropped = np.nan_to_num(cores.counts["softnet_dropped"])
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(dropped[row] >= NIC_DROPS_PER_S, bridge=2):
            count = int(dropped[row, first:last].sum())
            yield Symptom(
                DETECTOR,
                cores.at_us(first),
                cores.at_us(last),
                f"core {cpu} dropped {count:,} packets because its backlog was full",
                "warning",
                cpu,
                facts={"softnet_dropped": count},
            )


def _ksoftirqd(cores: CoreGrid) -> Iterator[Symptom]:
    delay = np.nan_to_num(cores.counts["ksoftirqd_delay_us"])
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(delay[row] >= NIC_DELAY_US, bridge=1):
            waited_us = int(delay[row, first:last].sum())
            yield Symptom(
                DETECTOR,
                cores.at_us(first),
                cores.at_us(last),
                f"ksoftirqd/{cpu} was ready to run and did not get core {cpu} for {waited_us / 1e6:.1f} s",
                "warning",
                cpu,
                facts={"ksoftirqd_delay_us": waited_us, "seconds": (last - first) * SECOND_US / 1e6},
            )


def _served_cores(facts: Facts) -> set[int]:
    """Cores that serve a queue of a card; empty when that was not recorded."""
    return {cpu for row in facts.queues for cpu in parse_list((row["cpus"] or "").encode())}


DETECTOR = Detector(
    kind="nic_starved",
    title="network card starved",
    reported_when="the driver counted it, a busy core's poll count did not advance, a poll thread did not get a core, "
    "or a core's backlog overflowed",
    find=find,
    source="cores",
    role="victim",
    about="network",
    weight=5,
    bounds_case=True,
    core_rank=1,
    core_is_held=True,
    critical_after_s=DRIVER_PATIENCE_S,
)

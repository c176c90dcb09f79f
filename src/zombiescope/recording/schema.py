"""The tables of a recording, their columns and units: the one place that says what is stored.

Every table exists in the append-only log and, later, as Parquet, with the same columns; only summaries are made when
the log becomes Parquet, and only rollups stay a log. Times are Unix microseconds.
A missing value (None, null) means "not measured", never zero.

Column kinds:
    time    Unix microseconds; timestamp[us, UTC] in Parquet
    int     a signed 64-bit integer
    text    a string
    ints    a list of integers

Ids (`stack`, `frame`, `task`, `series`) are small integers that are valid inside one *part*: one log segment, or one
set of Parquet files that were compacted together. In Parquet every table carries the column `part`, so that `JOIN
stacks USING (part, stack)` is right over any number of files.

Counters are stored as what was added since the tick before; a counter that did not move has no row. Gauges are stored
when they change and at the start of each segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FORMAT = "zombiescope.recording/1"

SOFTIRQS = ("hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu")
"""The kernel's softirq vectors, in its own order; columns of `cores` named softirq_<vector>."""

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
"""The columns of a cpu line of /proc/stat; columns of `cores` named <mode>_ms."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Table:
    number: int
    name: str
    columns: tuple[Column, ...]
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Of the columns."""
    time_column: str | None = field(init=False, compare=False, repr=False)
    """The column that a window selects by; dictionaries (stacks, frames, ...) have none."""

    def __post_init__(self) -> None:
        # Asked for with every block of every frame.
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))
        timed = (column.name for column in self.columns if column.kind == "time")
        object.__setattr__(self, "time_column", next(timed, None))


def _table(number: int, name: str, /, **columns: str) -> Table:
    return Table(number, name, tuple(Column(column, kind) for column, kind in columns.items()))


SAMPLES = _table(16, "samples", time="time", cpu="int", task="int", stack="int", period="int", series="int")
"""One stack sample. The recorder leaves out idle ones; an import keeps them, and views leave them out.

`period` only for hardware cycles; with cpu-clock a sample is 1/hz seconds. `series` says which event an imported sample
is of (a series of source "event"; its kind is "sample", or "weight" where one row stands for `period` samples, as in
collapsed stacks); null is the recorder's own clock."""

STACKS = _table(2, "stacks", stack="int", frames="ints")
"""A call stack as frame ids, outermost first. The user part stands before the kernel part."""

FRAMES = _table(3, "frames", frame="int", name="text", module="text", kind="text")
"""A function. kind: kernel, module, bpf, user, vdso, jit, unknown."""

TASKS = _table(
    4, "tasks", task="int", pid="int", tid="int", comm="text", ppid="int", start_ticks="int", policy="int",
    rt_priority="int", cmdline="text", exe="text", cgroup="text", unit="text", container="text", pod="text",
)  # fmt: skip
"""Who a sample belongs to. A later row for the same id knows more and replaces the earlier one."""

CORES = _table(
    5, "cores", time="time", interval_us="int", cpu="int",
    **{f"{mode}_ms": "int" for mode in CPU_MODES},
    samples="int", idle_samples="int", expected_samples="int", max_gap_us="int",
    **{f"softirq_{vector}": "int" for vector in SOFTIRQS},
    softnet_processed="int", softnet_dropped="int", softnet_squeezed="int",
    ksoftirqd_delay_us="int", run_us="int", wait_us="int",
)  # fmt: skip
"""One core over one tick that ends at `time` and lasted `interval_us`. `max_gap_us`: the longest time without a
sample."""

SERIES = _table(6, "series", series="int", source="text", name="text", key="text", kind="text")
"""What a number in `counters` or `interrupts` is. kind: counter or gauge. key: the device, queue or resource, if
any. A counter that the node has is here even if it never moves: one that is not here was not counted, which is not
zero. (Of interrupts that is so for the architecture's own rows, such as TLB; of transmit timeouts for none.)"""

COUNTERS = _table(7, "counters", time="time", series="int", value="int")
"""Node-wide numbers: vmstat, meminfo, snmp, netdev, pressure, NIC statistics."""

INTERRUPTS = _table(8, "interrupts", time="time", series="int", cpu="int", count="int")
"""Interrupts taken by a core in the tick that ends at `time`."""

EVENTS = _table(9, "events", time="time", kind="text", source="text", severity="text", text="text", fields="text")
"""Something that happened. `fields` is a JSON object."""

CENSUS = _table(
    10, "census", time="time", hierarchy="text", total="int", live="int", dying="int",
    created="int", removed="int", released="int", lost="int",
)  # fmt: skip
"""Memory cgroups: how many there are, and how many were made, removed and released since the recorder started."""

LEAKS = _table(
    24, "leaks", time="time", path="text", dying="int", created="int", removed="int", released="int", exact="int",
    comm="text", pid="int", unit="text", container="text", names="int",
)  # fmt: skip
"""The ledger's line for one normalised path when it changed; the last line at or before a moment holds there.
`exact` 0: events were lost, so the numbers of this path are a lower bound. The path "" is the sum of the tail.
`names`: how many different paths those that were created had, up to a bound; 25 created under one name are one
container that is restarted, 25 names are 25 containers."""

CGROUP_STATS = _table(
    12, "cgroup_stats", time="time", cgroup="text", nr_periods="int", nr_throttled="int", throttled_us="int",
    memory_max_events="int", memory_high_events="int", oom_kills="int", cpu_some_us="int", memory_some_us="int",
    has_cpu_quota="int", has_memory_limit="int",
)  # fmt: skip
"""At most 64 cgroups that their CPU quota stopped lately, or that appear in the samples most, every ten seconds; what
was added since their last row."""

CONTAINERS = _table(
    17, "containers", time="time", id="text", name="text", image="text", runtime="text", namespace="text", pod="text",
    pod_uid="text", cgroup="text", started="time", exited="time", code="int", runs="int", restarts="int",
    restart_policy="text", requester="text", requester_pid="int", requester_unit="text", requester_command="text",
)  # fmt: skip
"""A container, as far as its bundle, its runtime's files and its pod's directory said; a later row of the same id
replaces the earlier one, and every segment says those that are there again. `runs`: how often its cgroup was made while
the recorder watched; `restarts`: what the runtime counts; `requester`: who ran the client (docker run) that asked for
it. `id` is the whole id, `pod` the pod's name."""

QUEUES = _table(13, "queues", time="time", nic="text", queue="text", irq="int", cpus="text")
"""Which cores serve a NIC queue's interrupt (cpus as in "0-3,8"); written when it changes and at segment start."""

GAPS = _table(14, "gaps", time="time", end="time", source="text", why="text")
"""A span in which a source was blind. Blind is not healthy."""

COST = _table(
    15, "cost", time="time", cpu_us="int", rss_bytes="int", helper_cpu_us="int", tick_late_us="int", lost="int",
    ring_records="int", log_bytes="int",
)  # fmt: skip
"""What the recorder itself used since the row before, once a tick."""

HEAT = _table(22, "heat", time="time", hundredths="ints", cores="ints")
"""The samples of the second that begins at `time`: in each hundredth of it (100 numbers), and on each core (by its
number). Two parts may both have a row of a second in which one ended and the other began: they add up."""

STACK_COUNTS = _table(23, "stack_counts", stack="int", samples="int")
"""How often a part sampled each of its stacks; the row without a stack counts the samples that have none."""

MINUTES = _table(
    20, "minutes", time="time", boot="text", seconds="int", cores_saturated_ms="int", longest_saturation_ms="int",
    longest_cpu="int", busy_ms="int", system_ms="int", cores="int", memory_cgroups="int", dying="int", restarts="int",
    critical_events="int", nic_events="int", lost="int",
)  # fmt: skip
"""One minute of the node, kept for thirty days. `seconds` says how many of it were recorded."""

UNIT_HOURS = _table(21, "unit_hours", time="time", boot="text", unit="text", cpu_ms="int", kernel_ms="int",
                    busiest_minute_ms="int")  # fmt: skip
"""CPU of one unit (or container, or comm where there is none) in one hour: the baseline of the next incident."""

TABLES = (
    SAMPLES, STACKS, FRAMES, TASKS, CORES, SERIES, COUNTERS, INTERRUPTS, EVENTS, CENSUS, LEAKS, CGROUP_STATS,
    CONTAINERS, QUEUES, GAPS, COST,
)  # fmt: skip
ROLLUPS = (MINUTES, UNIT_HOURS)
SUMMARIES = (HEAT, STACK_COUNTS)
"""Samples counted when a part was compacted (summary.py): never in the log, and not in every part."""

RETIRED = {
    1: _table(1, "samples", time="time", cpu="int", task="int", stack="int", period="int"),
    11: _table(
        11, "leaks", time="time", path="text", dying="int", created="int", removed="int", released="int", exact="int",
        comm="text", pid="int", unit="text", container="text",
    ),
}  # fmt: skip
"""Blocks of older segments: read into the table that has their name now; columns they lack have no values."""

BY_NUMBER = {table.number: table for table in TABLES + ROLLUPS}
BY_NAME = {table.name: table for table in TABLES + ROLLUPS + SUMMARIES}

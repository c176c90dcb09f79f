"""The tables of a recording, their columns and units: the one place that says what is stored.

Every table exists in the append-only log and, later, as Parquet, with the same columns; only summaries are made when
the log becomes Parquet, and only rollups stay a log. Times are Unix microseconds.
A missing value (None, null) means "not measured", never zero.

Column kinds:
    time    Unix microseconds; timestamp[us, UTC] in Parquet
    int     a signed 64-bit integer
    text    a string
    ints    a list of integers

After the kind may stand what the numbers or words are. Whatever treats columns of one meaning alike (ids.py, merge.py,
pack.py, redaction.py, lab/wide) finds them by it, so a new table is treated like the others:
    stack, frame, task, series   ids of that dictionary; of a list, its elements are
    cpu, gpu                     the number of a core, of a GPU
    pid                          of a process or a thread
    ticks                        when a process began, in clock ticks since the boot
    plain                        words of ours or of the kernel, which redaction leaves as they are

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


ID_KINDS = ("stack", "frame", "task", "series")
_LETTERS = {"time": "t", "int": "i", "text": "s", "ints": "l"}
_MEANINGS = {
    **dict.fromkeys(ID_KINDS, ("int", "ints")), "cpu": ("int",), "gpu": ("int",), "pid": ("int",), "ticks": ("int",),
    "plain": ("text",),
}  # fmt: skip
"""Meaning -> kinds of columns that can have it."""
_ALWAYS = {**{name: name for name in (*ID_KINDS, "cpu", "gpu", "pid")}, "tid": "pid", "ppid": "pid",
           "start_ticks": "ticks"}  # fmt: skip
"""Columns of these names are nothing else in any table."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    meaning: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in _LETTERS or (self.meaning and self.kind not in _MEANINGS.get(self.meaning, ())):
            raise ValueError(f"the column {self.name} cannot be {self.kind} {self.meaning or ''}")
        if self.meaning != _ALWAYS.get(self.name, self.meaning):
            raise ValueError(f"the column {self.name} must say that it is a {_ALWAYS[self.name]}")

    @property
    def ids(self) -> str | None:
        """The kind of id that is in it."""
        return self.meaning if self.meaning in ID_KINDS else None


@dataclass(frozen=True, slots=True)
class Table:
    number: int
    name: str
    columns: tuple[Column, ...]
    explains: str | None = None
    """The kind of id that it says the meaning of, in its first column; None where it is no dictionary."""
    holds_by: tuple[str, ...] = ()
    """The last row for each value of these columns at or before a moment holds there. Empty: rows are of their time."""
    parquet_since: int = 1
    """The revision of manifests (layout.py) from which on its Parquet files are right. Older ones are not read."""
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Of the columns."""
    time_column: str | None = field(init=False, compare=False, repr=False)
    """The column that a window selects by; dictionaries (stacks, frames, ...) have none."""
    kinds: bytes = field(init=False, compare=False, repr=False)
    """Of the columns, a letter each: t time, i int, s text, l a list of integers."""
    id_columns: tuple[Column, ...] = field(init=False, compare=False, repr=False)
    """Those that hold ids, its own as well."""

    def __post_init__(self) -> None:
        # Asked for with every block of every frame.
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))
        timed = (column.name for column in self.columns if column.kind == "time")
        object.__setattr__(self, "time_column", next(timed, None))
        object.__setattr__(self, "kinds", "".join(_LETTERS[column.kind] for column in self.columns).encode())
        object.__setattr__(self, "id_columns", tuple(column for column in self.columns if column.ids))

    @property
    def own_id(self) -> str | None:
        """The column whose ids it explains."""
        return self.columns[0].name if self.explains else None

    def meant(self, *meanings: str) -> tuple[str, ...]:
        """The columns of these meanings."""
        return tuple(column.name for column in self.columns if column.meaning in meanings)


def _columns(declared: dict[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, *kind.split()) for name, kind in declared.items())


def _table(number: int, name: str, /, **columns: str) -> Table:
    return Table(number, name, _columns(columns))


def _dictionary(number: int, name: str, /, **columns: str) -> Table:
    declared = _columns(columns)
    return Table(number, name, declared, explains=declared[0].ids)


def _state(number: int, name: str, holds_by: tuple[str, ...], /, **columns: str) -> Table:
    return Table(number, name, _columns(columns), holds_by=holds_by)


SAMPLES = _table(
    16, "samples", time="time", cpu="int cpu", task="int task", stack="int stack", period="int", series="int series"
)
"""One stack sample. The recorder leaves out idle ones; an import keeps them, and views leave them out.

`period` only for hardware cycles; with cpu-clock a sample is 1/hz seconds. `series` says which event an imported sample
is of (a series of source "event"; its kind is "sample", or "weight" where one row stands for `period` samples, as in
collapsed stacks); null is the recorder's own clock."""

STACKS = _dictionary(2, "stacks", stack="int stack", frames="ints frame")
"""A call stack as frame ids, outermost first. The user part stands before the kernel part."""

FRAMES = _dictionary(3, "frames", frame="int frame", name="text", module="text", kind="text plain")
"""A function. kind: kernel, module, bpf, user, vdso, jit, python, unknown."""

TASKS = _dictionary(
    60, "tasks", task="int task", pid="int pid", tid="int pid", comm="text", ppid="int pid", start_ticks="int ticks",
    policy="int", rt_priority="int", cmdline="text", exe="text", cgroup="text", unit="text", container="text",
    pod="text", uid="int",
)  # fmt: skip
"""Who a sample belongs to. A later row for the same id knows more and replaces the earlier one. `uid`: the real user;
what a process calls itself (`comm`, `cmdline`) is its own word, and `uid`, `exe` and `cgroup` are the kernel's."""

CORES = _table(
    5, "cores", time="time", interval_us="int", cpu="int cpu",
    **{f"{mode}_ms": "int" for mode in CPU_MODES},
    samples="int", idle_samples="int", expected_samples="int", max_gap_us="int",
    **{f"softirq_{vector}": "int" for vector in SOFTIRQS},
    softnet_processed="int", softnet_dropped="int", softnet_squeezed="int",
    ksoftirqd_delay_us="int", run_us="int", wait_us="int",
)  # fmt: skip
"""One core over one tick that ends at `time` and lasted `interval_us`. `max_gap_us`: the longest time without a
sample."""

SERIES = _dictionary(
    6, "series", series="int series", source="text plain", name="text plain", key="text", kind="text plain"
)
"""What a number in `counters` or `interrupts` is. kind: counter or gauge. key: the device, queue or resource, if
any. A counter that the node has is here even if it never moves: one that is not here was not counted, which is not
zero. (Of interrupts that is so for the architecture's own rows, such as TLB; of transmit timeouts for none.)"""

COUNTERS = _table(7, "counters", time="time", series="int series", value="int")
"""Node-wide numbers: vmstat, meminfo, snmp, netdev, pressure, NIC statistics."""

INTERRUPTS = _table(8, "interrupts", time="time", series="int series", cpu="int cpu", count="int")
"""Interrupts taken by a core in the tick that ends at `time`."""

EVENTS = _table(
    9, "events", time="time", kind="text plain", source="text plain", severity="text plain", text="text", fields="text"
)
"""Something that happened. `fields` is a JSON object."""

CENSUS = _table(
    10, "census", time="time", hierarchy="text plain", total="int", live="int", dying="int",
    created="int", removed="int", released="int", lost="int",
)  # fmt: skip
"""Memory cgroups: how many there are, and how many were made, removed and released since the recorder started."""

LEAKS = _state(
    61, "leaks", ("path",), time="time", path="text", dying="int", created="int", removed="int", released="int",
    exact="int", comm="text", pid="int pid", unit="text", container="text", names="int",
    uid="int", exe="text",
)  # fmt: skip
"""The ledger's line for one normalised path when it changed; the last line at or before a moment holds there.
`exact` 0: events were lost, so the numbers of this path are a lower bound. The path "" is the sum of the tail.
`names`: how many different paths those that were created had, up to a bound; 25 created under one name are one
container that is restarted, 25 names are 25 containers. `comm`, `pid`, `unit`, `container`, `uid` and `exe` are of the
process that made most of them."""

CGROUP_STATS = _table(
    12, "cgroup_stats", time="time", cgroup="text", nr_periods="int", nr_throttled="int", throttled_us="int",
    memory_max_events="int", memory_high_events="int", oom_kills="int", cpu_some_us="int", memory_some_us="int",
    has_cpu_quota="int", has_memory_limit="int",
)  # fmt: skip
"""At most 64 cgroups that their CPU quota stopped lately, or that appear in the samples most, every ten seconds; what
was added since their last row."""

CONTAINERS = _state(
    56, "containers", ("id",), time="time", id="text", name="text", image="text", runtime="text plain",
    namespace="text", pod="text", pod_uid="text", cgroup="text", started="time", exited="time", code="int", runs="int",
    restarts="int", restart_policy="text plain", requester="text", requester_pid="int pid", requester_unit="text",
    requester_command="text", owner="text", requester_container="text", requester_how="text plain", manager="text",
)  # fmt: skip
"""A container, as far as its bundle, its runtime's files and its pod's directory said; a later row of the same id
replaces the earlier one, and every segment says those that are there again. `runs`: how often its cgroup was made while
the recorder watched; `restarts`: what the runtime counts; `requester`: the process that asked the runtime for it, with
its unit or its container; `requester_how`: "command line" of a client (docker run) or "socket", a connection to the
runtime's socket when the container was made; `manager`: what the container's labels name. `id` is the whole id, `pod`
the pod's name, `owner` the pod's as the API server says ("Deployment/web"); null where nobody asks that server."""

QUEUES = _state(13, "queues", ("nic", "queue"), time="time", nic="text", queue="text", irq="int", cpus="text plain")
"""Which cores serve a NIC queue's interrupt (cpus as in "0-3,8"); written when it changes and at segment start."""

GPU_SECONDS = _table(
    32, "gpu_seconds", time="time", gpu="int gpu", utilisation="int", utilisation_samples="ints",
    memory_utilisation="int", power_w="int", memory_used_bytes="int", clock_sm_mhz="int", temperature_c="int",
    memory_temperature_c="int", reasons="int", power_cap_ns="int", sync_boost_ns="int", sw_thermal_ns="int",
    hw_thermal_ns="int", power_brake_ns="int",
)  # fmt: skip
"""One GPU over the second of Unix time that ends at `time`. `utilisation`: mean percent of `utilisation_samples`, which
the driver takes about every 0.2 s, in their order; power is the mean of the driver's own samples. The driver is asked
every few seconds, so what it does not sample (clocks, temperatures, memory, `reasons`) is in the second of the question
and null in the others. `reasons`: why clocks are low at that moment, as the driver's bits (kernel/nvml_codes.py). The
_ns columns: how long clocks were held down for that reason since the last row that has a value, by the driver's own
counters, which miss nothing."""

GPUS = _state(
    33, "gpus", ("gpu",), time="time", gpu="int gpu", uuid="text", name="text plain", pci="text plain",
    memory_bytes="int", driver="text plain", mig="int", state="text plain", power_limit_w="int",
    clock_sm_max_mhz="int", ecc_corrected="int", ecc_uncorrected="int",
    remapped_corrected="int", remapped_uncorrected="int", remap_pending="int", remap_failed="int",
    nvlink_errors="int", nvlink_recoveries="int", pcie_replays="int", pcie_errors="int", recovery_action="int",
)  # fmt: skip
"""A GPU when something about it changed, and in every segment; the last row at or before a moment holds there.
`state`: ok, lost, reset_required, unreadable. Counters as the driver has them: a fall is a reset. `recovery_action`:
what the driver itself asks for (0 nothing, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset, 5 recover IMEX)."""

GPU_PROCESSES = _state(
    34, "gpu_processes", ("gpu", "pid", "start_ticks"), time="time", gpu="int gpu", pid="int pid",
    start_ticks="int ticks", memory_bytes="int", comm="text", cgroup="text", unit="text", container="text", pod="text",
    ended="int",
)  # fmt: skip
"""A process when it came to a GPU, when its memory there changed much, and when it left (`ended` 1); the living again
in every segment. pid, start_ticks, unit, container and pod as in `tasks`."""

RANKS = _state(
    35, "ranks", ("pid", "start_ticks"), time="time", pid="int pid", start_ticks="int ticks", rank="int",
    world_size="int", local_rank="int", job="text", kind="text plain", uid="int", ppid="int pid", comm="text",
    cgroup="text", unit="text", container="text", pod="text", ended="int",
)  # fmt: skip
"""A process of a distributed job when it was first seen, and when it ended (`ended` 1); the living again in every
segment. `rank`, `world_size`, `local_rank`, `job` and `kind` (slurm, ray, torchrun, torch, mpi, kubernetes) are what
its environment said when it was started (kernel/rank_environment.py), and of Slurm what its cgroup says: a process can
claim any rank. Processes that it forked for its data have no row. pid, start_ticks, unit, container and pod as in
`tasks`."""

STEPS = _table(
    36, "steps", time="time", pid="int pid", rank="int", first="int", phase="text", took_us="ints", left_out="int",
)  # fmt: skip
"""Training steps as the program itself reported them (zombiescope.step): step `first` was reported at `time`, and the
next ones after as many microseconds as `took_us` says, each from the one before. `left_out`: steps before `first` that
came too fast to be sent. pid is who the kernel says the sender is; rank and phase are its own words."""

GAPS = _table(14, "gaps", time="time", end="time", source="text plain", why="text")
"""A span in which a source was blind. Blind is not healthy."""

COST = _table(
    15, "cost", time="time", cpu_us="int", rss_bytes="int", helper_cpu_us="int", tick_late_us="int", lost="int",
    ring_records="int", log_bytes="int",
)  # fmt: skip
"""What the recorder itself used since the row before, once a tick."""

HEAT = _table(22, "heat", time="time", hundredths="ints", cores="ints")
"""The samples of the second that begins at `time`: in each hundredth of it (100 numbers), and on each core (by its
number). Two parts may both have a row of a second in which one ended and the other began: they add up."""

STACK_COUNTS = _table(23, "stack_counts", stack="int stack", samples="int")
"""How often a part sampled each of its stacks; the row without a stack counts the samples that have none."""

WAITING = _table(
    40, "waiting", time="time", since="time", pid="int pid", tid="int pid", comm="text", cgroup="text",
    state="text plain", wchan="text plain", frames="text plain", kind="text plain", resource="text", moves="int",
    alike="int", kernel_thread="int", daemon="text", bytes_per_s="int",
)  # fmt: skip
"""A task that was found in the same wait at two looks or more, the last one at `time`, the first at `since`; it may
have begun before. At most 64 a look; `alike` is how many waited for the same thing. `frames`: its kernel stack,
outermost first, names joined by ";" (a module in brackets), where that may be read. `kind`: what it waits for (nfs,
fuse, disk, journal, frozen, writeback, swap, gpu, lock ...), `resource` which one: a disk, srv:/data, a mount point.
Of kind stopped, suspended and asleep (store/hangs.py) it is a process that used the CPU until `since`, and
`resource` is its parent, as "python3:4711".
`moves`: whether that completed anything between the last two looks. `daemon`: who serves it, as "s3fs:4711".
`bytes_per_s`: what a task that is stopped from writing (kind writeback) may write."""

DISKS = _table(
    41, "disks", time="time", interval_us="int", device="text plain", in_flight="int", reads="int", writes="int",
    others="int", read_bytes="int", written_bytes="int", busy_ms="int", weighted_ms="int",
)  # fmt: skip
"""A disk in the tick that ends at `time`: what it completed since the last one, and what is in flight. A disk that did
nothing and has nothing to do has no row; one with requests in flight that completes none stands still."""

MOUNTS = _state(
    42, "mounts", ("point",), time="time", kind="text plain", source="text", point="text", device="text plain",
    waiting="int", answered="int", resent="int",
)  # fmt: skip
"""A mount that another machine or a program serves, when something about it changed, at most every 30 s, and at the
start of a segment. `waiting`: requests that a FUSE daemon has not answered; `answered`, `resent`: of NFS, in all."""

PYTHON = _table(
    48, "python", time="time", until="time", looks="int", pid="int pid", tid="int pid", comm="text", state="text plain",
    stack="int stack", lines="ints",
)  # fmt: skip
"""What a thread was doing in Python, as it was seen from outside: `looks` looks in a row, the first at `time`, the last
at `until`, saw the same. Looks are 0.1 s apart at the hottest threads and a second apart at others; a row holds one
kind only. `stack`: its Python functions as a stack of frames of kind "python", whose `module` is the file; `lines`: the
line of each of them, in the same order. `state`: the thread's in the kernel's letters (R, S, D), where it was read."""

WHOLE_STACKS = Table(
    49, "whole_stacks",
    _columns({"time": "time", "pid": "int pid", "tid": "int pid", "stack": "int stack", "ended": "text"}),
    parquet_since=2,
)  # fmt: skip
"""The user's part of a stack, unwound from a copy of it (recorder/stack_reader.py): of a few threads, a few times a
second. `ended`: why it is not longer; "finished" is to the outermost function, anything else is on the stack too."""

SCHEDULE = _table(
    57, "schedule", time="time", begin="time", cpu="int cpu", kind="text plain", task="int task", waker="int task",
    slept="time", vector="int", name="text plain", open="int",
)  # fmt: skip
"""What a core did and what waited for it, from `begin` to `time`, in snapshots of the last seconds.
`kind`: "run", `task` ran; "wait", `task` could have run and did not; it was woken by `waker` (null: by an interrupt, or
not known, or it was never asleep) and had slept since `slept`; "softirq wait", softirq `vector` was raised and did not
run, `name` being the interrupt that raised it or the network device that was polled then; "softirq" and "irq", one that
ran, `name` being the device or the interrupt; "reach", the core was watched, `name` saying why the snapshot was taken
(alarm, mark). `open`: 1 began before the core was watched, 2 had not ended. Waits and interrupts below 20 us are left
out. A wait that had not ended is there again in the next snapshot."""

CLOSER_LOOKS = _table(
    62, "closer_looks", time="time", begin="time", pid="int pid", start_ticks="int ticks", comm="text", why="text",
    threads="int", state="text plain", wchan="text plain", file="text", line="int", function="text", call="text plain",
    object="text", calls="int", thousandths_per_s="int", took_us="int", longest_us="int", total_us="int",
    bytes_per_s="int", failed="int", error="text plain",
)  # fmt: skip
"""What a suspect did while it was looked at closer, from `begin` to `time`, a second at most: a row of the process, in
which `call` is null, and one for each system call and the thing it worked on (`object`: a file, a size, a process; null
where its arguments name none, or it could not be looked up). The row of the process: its state (most often) and where
it slept, the Python line that its busiest threads ran, and its threads; `why`: what of the look is missing, as it
ended, ran another program, or its calls could not be followed. Both: `thousandths_per_s`, calls a thousand seconds.
A call: how many were recorded, by how many threads, the median and longest duration, all of them together, bytes, how
many failed and with what most often."""

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
    CONTAINERS, QUEUES, GPU_SECONDS, GPUS, GPU_PROCESSES, RANKS, STEPS, GAPS, COST, WAITING, DISKS, MOUNTS,
    PYTHON, WHOLE_STACKS, SCHEDULE, CLOSER_LOOKS,
)  # fmt: skip
ROLLUPS = (MINUTES, UNIT_HOURS)
SUMMARIES = (HEAT, STACK_COUNTS)
"""Samples counted when a part was compacted (summary.py): never in the log, and not in every part."""

RETIRED = {
    4: _dictionary(
        4, "tasks", task="int task", pid="int pid", tid="int pid", comm="text", ppid="int pid", start_ticks="int ticks",
        policy="int", rt_priority="int", cmdline="text", exe="text", cgroup="text", unit="text", container="text",
        pod="text",
    ),
    24: _table(
        24, "leaks", time="time", path="text", dying="int", created="int", removed="int", released="int",
        exact="int", comm="text", pid="int pid", unit="text", container="text", names="int",
    ),
    1: _table(1, "samples", time="time", cpu="int cpu", task="int task", stack="int stack", period="int"),
    11: _table(
        11, "leaks", time="time", path="text", dying="int", created="int", removed="int", released="int", exact="int",
        comm="text", pid="int pid", unit="text", container="text",
    ),
    17: _table(
        17, "containers", time="time", id="text", name="text", image="text", runtime="text plain", namespace="text",
        pod="text", pod_uid="text", cgroup="text", started="time", exited="time", code="int", runs="int",
        restarts="int", restart_policy="text plain", requester="text", requester_pid="int pid", requester_unit="text",
        requester_command="text",
    ),
    44: _table(
        44, "containers", time="time", id="text", name="text", image="text", runtime="text plain", namespace="text",
        pod="text", pod_uid="text", cgroup="text", started="time", exited="time", code="int", runs="int",
        restarts="int", restart_policy="text plain", requester="text", requester_pid="int pid", requester_unit="text",
        requester_command="text", owner="text",
    ),
}  # fmt: skip
"""Blocks of older segments: read into the table that has their name now; columns they lack have no values."""

BY_NUMBER = {table.number: table for table in TABLES + ROLLUPS}
BY_NAME = {table.name: table for table in TABLES + ROLLUPS + SUMMARIES}
DICTIONARIES = tuple(table for table in TABLES if table.explains)
"""Each stands before those whose ids it uses."""
DATA = tuple(table for table in TABLES if not table.explains)

"""What the lines of the kernel's log mean: one row for each kind of line, in the order in which they head an incident.

`log_lines_*.py` has the wordings: which line is of which kind, and how severe. A row here says the rest: what such a
line is about, its heading, how a person would say it, the pattern that it confirms by itself, and what to do. Some rows
are of lines that others print: a driver, systemd, a job. All of it is data; the diagnosis makes sentences and steps of
it. Reading the table costs nothing: no regular expression is compiled here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from zombiescope.kernel import xid

Fields = Mapping[str, Any]
Says = Callable[[Fields], str]

Subject = Literal["cpu", "network", "memory", "disk", "gpu", "machine", "waiting", "work", "nothing"]
"""What it is about. One that has no place is joined only with what can have caused it:

machine    the hardware reports an error
waiting    a task that is blocked and uses no CPU
work       a job, a pod or a unit that ended
nothing    known trouble by itself, of which nothing else here is the cause
"""


@dataclass(frozen=True, slots=True)
class LineStep:
    """A step of a fix. `text` is a command line or a sentence; {} in it is the first of `fields` that the line has, as
    `word`, quoted. A step without that field, or whose field is not of that shape, is left out."""

    kind: Literal["look", "note", "advice", "stop-gap"]
    text: str
    why: str = ""
    fields: tuple[str, ...] = ()
    shape: str = ".*"
    word: str = "{}"


@dataclass(frozen=True, slots=True)
class LineFix:
    summary: str
    steps: tuple[LineStep, ...]


DISK_FIX = LineFix(
    "save the data on the disk, and replace it if errors continue",
    (
        LineStep("look", "dmesg -T | grep -iE 'i/o error|nvme|ext4|xfs|blk_update'", "which disk, and how often"),
        LineStep("look", "smartctl -a /dev/{}", "what the disk says about itself", ("device", "controller"),
                 "[a-z][a-z0-9]{1,31}"),
        LineStep("note", "a file system that reported an error may be read-only now: check the mounts of the jobs"),
    ),
)  # fmt: skip
SERVER_FIX = LineFix(
    "find out why the file server does not answer",
    (LineStep("note", "look at the file server and the network to it: tasks that wait for it cannot be killed"),),
)
MACHINE_FIX = LineFix(
    "check the hardware, not the software that runs on it; drain the node if errors continue",
    (
        LineStep("look", "dmesg -T | grep -iE 'hardware error|mce|edac|aer'", "which part, and how often"),
        LineStep("look", "grep -s . /sys/devices/system/edac/mc/mc*/[cu]e_count", "memory errors, corrected and not"),
        LineStep("look", "lspci -vvs {}", "which device, its slot, LnkSta against LnkCap, its error bits", ("device",)),
        LineStep("note", "corrected errors that come again on the same part announce one that cannot be corrected"),
    ),
)
HEAT_FIX = LineFix(
    "look at the cooling of this machine: fans, filters, inlet temperature, the rack",
    (
        LineStep("look", "grep -s . /sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count",
                 "how often, so far"),
        LineStep("look", "ipmitool sdr type Temperature; ipmitool sdr type Fan",
                 "what the machine's controller measures"),
        LineStep("note", "one node of a rack that is slow is its fan or filter; all of them are the room"),
        LineStep("stop-gap", "drain the node if it continues: in a synchronous job all others wait for it"),
    ),
)  # fmt: skip
CRASH_FIX = LineFix(
    "find out why the kernel crashed before this boot",
    (
        LineStep("look", "ls -l /sys/fs/pstore /var/lib/systemd/pstore /var/crash", "what was kept of it"),
        LineStep("note", "the last lines of the crashed kernel's log are in that file"),
    ),
)
PIDS_FIX = LineFix(
    "find out what it starts, or raise its limit",
    (
        LineStep("look", "find /sys/fs/cgroup -path {} -name 'pids.*'", "its limit and use", ("cgroup",), word="*{}"),
        LineStep("look", "ps -eLo user,comm --no-headers | sort | uniq -c | sort -rn | head", "whose they are"),
        LineStep("advice", "a pod: podPidsLimit of kubelet; a unit: TasksMax=; a user's session: UserTasksMax="),
    ),
)


@dataclass(frozen=True, slots=True)
class LogKind:
    kind: str
    about: Subject
    title: str
    """As a heading."""
    says: Says | None = None
    """A sentence of its fields; None, or an empty one: the line as it was printed."""
    has_place: bool = False
    """Its field `cpu` is the core that is in trouble, not the one that noticed."""
    pattern: str | None = None
    """The pattern that such a line confirms where it heads an incident."""
    fix: LineFix | None = None
    """What to do, where the pattern knows nothing better from other measurements."""


REASONS = {
    "keep_alive_to": "the card sent no sign of life",
    "admin_to": "the card did not answer its driver",
    "device_request": "the card itself asked for it",
    "miss_interrupt": "an interrupt of the card got lost",
    "miss_tx_cmpl": "the card did not report packets as sent",
    "os_netdev_wd": "a transmit queue stopped",
    "suspected_poll_starvation": "its queue was not polled in time",
}
"""A driver's own reason for a reset, in words."""
DEVICE_REASONS = frozenset({"admin_to", "device_request"})
"""Those for which a core that was late is no explanation."""


def card_of(fields: Fields) -> str:
    named = fields.get("interface") or fields.get("nic")
    return f"the network card {named}" if named else "a network card"


def _reset(fields: Fields) -> str:
    why = REASONS.get(str(fields.get("reset_reason")))
    failed = fields.get("phase") == "failed"
    return f"{card_of(fields)} {'could not be' if failed else 'was'} reset by its driver" + (f": {why}" if why else "")


def _stopped_sending(fields: Fields) -> str:
    queue = fields.get("queue")
    which = "" if queue is None else f" on queue {queue}"
    starved = ": its queue was not polled in time" if fields.get("napi_scheduled") == 1 else ""
    return f"{card_of(fields)} stopped sending{which}{starved}"


def _card_said(fields: Fields) -> str:
    return (
        f"{card_of(fields)} has trouble: {REASONS[why]}" if (why := str(fields.get("reset_reason"))) in REASONS else ""
    )


def gpu_of(fields: Fields) -> str:
    return f"the GPU at {fields['gpu']}" if fields.get("gpu") else "a GPU"


def _gpu(fields: Fields) -> str:
    code, known = fields.get("xid"), xid.known(fields.get("xid"))
    what = _wish(fields) or (known.happened if known else "reported an error")
    if fields.get("nvlink_unit") and "fatal" in fields:
        what = f"had {'a fatal' if fields['fatal'] else 'an'} NVLink error{_on_link(fields)}"
    # Whose work it was matters where applications cause it; a GPU that is lost is lost to everybody.
    whose = f", in {fields['comm']}" if known and known.severity == "warning" and fields.get("comm") else ""
    return f"{gpu_of(fields)} {what}{whose} (Xid {code})"


def _wish(fields: Fields) -> str:
    """Where the driver's wish is all that was logged."""
    asked = fields.get("recovery") if fields.get("xid") == xid.RECOVERY_CODE else None
    action = xid.RECOVERY.get(asked) if isinstance(asked, int) else None
    return WISHES.get(action or "none", "")


def _on_link(fields: Fields) -> str:
    link = fields.get("link")
    return f" on link {link}" if isinstance(link, int) and link >= 0 else ""


WISHES = {
    "reset": "has to be reset",
    "reboot": "needs a reboot of the node",
    "drain-peers": "must not be used together with others any more",
    "drain-reset": "has to be drained and reset",
    "imex": "needs its IMEX domain recovered",
}
"""What the driver asks for, as the end of a sentence about the GPU."""


def _no_gpu(fields: Fields) -> str:
    return f"{gpu_of(fields)} could not be initialised by its driver"


def _switch(fields: Fields) -> str:
    fatal = {1: "a fatal error", 0: "an error that was not fatal"}.get(fields.get("fatal", -1), "an error")
    return f"the NVSwitch {fields.get('switch', '?')} reported {fatal}{_on_link(fields)} (SXid {fields.get('sxid')})"


def _stuck(fields: Fields) -> str:
    whom = f": {fields['comm']} did not let go of it" if fields.get("comm") else ""
    for_s = f" for {fields['seconds']} s" if fields.get("seconds") else ""
    return f"core {fields.get('cpu', '?')} was stuck in the kernel{for_s}{whom} (soft lockup)"


def _hard(fields: Fields) -> str:
    return f"core {fields.get('cpu', '?')} took no interrupt for seconds (hard lockup)"


def _hung(fields: Fields) -> str:
    who, for_s = fields.get("comm") or "a task", fields.get("seconds")
    if fields.get("owner"):
        return f"{who} waits for a {fields.get('lock') or 'lock'} that {fields['owner']} seems to hold"
    return f"{who} was blocked" + (f" for more than {for_s} s" if for_s else "") + " and could not be interrupted"


def _workqueue(fields: Fields) -> str:
    if fields.get("function"):
        return f"kernel work ({fields['function']}) keeps a core from other kernel work"
    return f"kernel work was blocked for {fields['seconds']} s" if fields.get("seconds") else ""


def _hardware(fields: Fields) -> str:
    corrected = fields.get("type") == "CE"
    if fields.get("type") == "IOMMU":
        whose = f"the PCIe device {fields['device']}" if fields.get("device") else "a PCIe device"
        return f"{whose} accessed memory that it may not (IOMMU fault)"
    if fields.get("page"):
        killed = f", and {fields['comm']} was killed for it" if fields.get("comm") else ""
        return f"memory is broken at page {fields['page']}{killed}"
    if fields.get("controller"):
        part = f"the memory module {fields['part']}" if fields.get("part") else _controller(fields)
        errors = _times(fields.get("count"), "memory error")
        return f"{part} {'corrected' if corrected else 'could not correct'} {errors}"
    if fields.get("device"):
        done = "was corrected" if corrected else "could not be corrected"
        return f"the PCIe device {fields['device']} reported an error that {done}"
    if fields.get("bank") is not None:
        return f"core {fields.get('cpu', '?')} reported a machine check (bank {fields['bank']})"
    return (
        f"the PCIe port {fields['port']} reported an error" if fields.get("port") else "the hardware reported an error"
    )


def _controller(fields: Fields) -> str:
    return f"the memory controller {fields['controller']}"


def _hot(fields: Fields) -> str:
    return f"core {fields.get('cpu', '?')} got too hot and was slowed down"


def _clock(fields: Fields) -> str:
    return f"the kernel no longer trusts the clock {fields['clocksource']}" if fields.get("clocksource") else ""


def _disk(fields: Fields) -> str:
    if fields.get("controller"):
        gone = "csts" in fields or "code" in fields
        return f"the disk {fields['controller']} {'is gone' if gone else 'did not answer in time'}"
    if fields.get("seconds"):
        return f"the disk {fields['device']} did not answer for {fields['seconds']} s"
    if fields.get("level"):
        return f"the disk {fields['device']} failed and was taken out of its RAID"
    return f"the disk {fields['device']} failed to read or write (I/O error)" if fields.get("device") else ""


def _file_system(fields: Fields) -> str:
    return f"the file system on {fields['device']} reported an error" if fields.get("device") else ""


def _server(fields: Fields) -> str:
    return f"the file server {fields['server']} does not answer" if fields.get("server") else ""


def _killed(fields: Fields) -> str:
    whose = "a cgroup reached its memory limit" if fields.get("scope") == "memcg" else "memory ran out"
    return f"{whose}, and the kernel killed {fields.get('comm') or 'a process'}"


def _no_memory(fields: Fields) -> str:
    return f"{fields['comm']} could not get memory" if fields.get("comm") else ""


def _too_many(fields: Fields) -> str:
    return f"{fields['cgroup']} may not start more processes (pids limit)" if fields.get("cgroup") else ""


def _no_files(fields: Fields) -> str:
    return f"no more than {fields['limit']:,} files may be open on this node" if fields.get("limit") else ""


def _link(fields: Fields) -> str:
    return f"{card_of(fields)} lost its link"


def _silent(fields: Fields) -> str:
    return f"the driver of {fields['interface']} does not answer" if fields.get("interface") else ""


def _optic(fields: Fields) -> str:
    return f"the network card at {fields.get('bus', '?')} reports its cable or optic: {fields.get('what', 'an error')}"


def _times(count: object, what: str) -> str:
    return f"a {what}" if count in (None, 1) else f"{count:,} {what}s" if isinstance(count, int) else f"{what}s"


ROWS = (
    LogKind("hardware_error", "machine", "hardware error", _hardware, pattern="machine-fault", fix=MACHINE_FIX),
    LogKind(
        "cpu_throttled", "machine", "a core was too hot", _hot, has_place=True, pattern="cpu-throttled", fix=HEAT_FIX
    ),
    LogKind("gpu_xid", "gpu", "GPU fault", _gpu, pattern="gpu-fault"),
    LogKind("nvswitch_sxid", "gpu", "NVSwitch fault", _switch, pattern="gpu-fault"),
    LogKind("gpu_driver_error", "gpu", "GPU driver error"),
    LogKind("gpu_init", "gpu", "GPU not initialised", _no_gpu, pattern="gpu-fault"),
    LogKind("io_error", "disk", "disk error", _disk, pattern="disk-fault", fix=DISK_FIX),
    LogKind("fs_error", "disk", "file system error", _file_system, pattern="disk-fault", fix=DISK_FIX),
    LogKind("nfs_not_responding", "disk", "file server silent", _server, pattern="disk-fault", fix=SERVER_FIX),
    LogKind("nic_reset", "network", "network card reset", _reset),
    LogKind("nic_tx_timeout", "network", "network card stopped sending", _stopped_sending),
    LogKind("nic_event", "network", "network card starved", _card_said),
    LogKind("link_down", "network", "network link lost", _link),
    LogKind("driver_unresponsive", "network", "a driver does not answer", _silent),
    LogKind("optic_error", "machine", "optic or cable error", _optic, pattern="machine-fault", fix=MACHINE_FIX),
    LogKind("conntrack_full", "network", "connection table full"),
    LogKind("neighbour_table_full", "network", "neighbour table full"),
    LogKind("tcp_memory", "network", "TCP out of memory"),
    LogKind("netdev_unregister_wait", "network", "network device in use"),
    LogKind("oom_kill", "memory", "killed for memory", _killed),
    LogKind("memcg_oom", "memory", "memory limit reached"),
    LogKind("oom_summary", "memory", "out of memory"),
    LogKind("oom_invoked", "memory", "out of memory"),
    LogKind("page_allocation_failure", "memory", "no memory to be had", _no_memory),
    LogKind("slub_alloc_failed", "memory", "no memory to be had"),
    LogKind("hung_task", "waiting", "a task hangs", _hung, pattern="hung-task"),
    LogKind("soft_lockup", "cpu", "soft lockup", _stuck, has_place=True, pattern="lockup"),
    LogKind("hard_lockup", "cpu", "hard lockup", _hard, has_place=True, pattern="lockup"),
    LogKind("rcu_stall", "cpu", "RCU stall", has_place=True, pattern="lockup"),
    LogKind("workqueue_hog", "cpu", "kernel work held up", _workqueue),
    LogKind("rt_throttling", "cpu", "real-time tasks were stopped"),
    LogKind("timer_slow", "cpu", "slow timer interrupt"),
    LogKind("pids_limit", "cpu", "process limit reached", _too_many, pattern="limit-exhausted", fix=PIDS_FIX),
    LogKind("files_limit", "cpu", "no more files may be opened", _no_files, pattern="limit-exhausted", fix=PIDS_FIX),
    LogKind("audit_backlog", "cpu", "audit records pile up"),
    LogKind("kernel_panic", "nothing", "kernel panic"),
    LogKind("panic_before", "machine", "crash before this boot", fix=CRASH_FIX),
    LogKind("kernel_bug", "nothing", "kernel bug"),
    LogKind("kernel_warning", "nothing", "kernel warning"),
    LogKind("clocksource_unstable", "nothing", "clock unstable", _clock, pattern="clocksource-fallback"),
    LogKind("sigbus", "work", "killed by SIGBUS", pattern="shm-full"),
    LogKind("ray_node_dead", "work", "Ray node declared dead"),
    LogKind("ray_job_failed", "work", "Ray job failed"),
    LogKind("pod_evicted", "work", "pod evicted"),
    LogKind("unit_failed", "work", "a unit failed"),
    LogKind("unit_state", "work", "a unit changed"),
)
"""A row that stands higher heads an incident in which lines of several kinds of the same severity are."""

KINDS = {row.kind: row for row in ROWS}


def about(kind: str) -> Subject:
    return KINDS[kind].about if kind in KINDS else "nothing"


def title(kind: str) -> str:
    return KINDS[kind].title if kind in KINDS else kind.replace("_", " ")


def has_place(kind: str) -> bool:
    return kind in KINDS and KINDS[kind].has_place

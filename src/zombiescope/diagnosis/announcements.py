"""What the kernel's log, a driver or a job announces: what it is about, its heading, and how a person would say it.

An incident that was announced is headed by that sentence, because whoever prints such a line knows more about it than
samples do. The line itself stays in the chain as it was printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from zombiescope.base.severity import rank
from zombiescope.diagnosis import xid
from zombiescope.diagnosis.symptom import Subject, Symptom

Fields = Mapping[str, Any]
Says = Callable[[Fields], str]


class Announcement(NamedTuple):
    about: Subject
    title: str
    """As a heading."""
    says: Says | None = None
    """A sentence of its fields; None, or an empty one: the line as it was printed."""
    has_place: bool = False
    """Its field `cpu` is the core that is in trouble, not the one that noticed."""


REASONS = {
    "keep_alive_to": "the card sent no sign of life",
    "admin_to": "the card did not answer its driver",
    "device_request": "the card itself asked for it",
    "miss_interrupt": "an interrupt of the card got lost",
    "miss_tx_cmpl": "the card did not report packets as sent",
    "os_netdev_wd": "a transmit queue stood still",
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
    return f"kernel work stood still for {fields['seconds']} s" if fields.get("seconds") else ""


def _hardware(fields: Fields) -> str:
    corrected = fields.get("type") == "CE"
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


ANNOUNCED: dict[str, Announcement] = {
    "hardware_error": Announcement("machine", "hardware error", _hardware),
    "cpu_throttled": Announcement("machine", "a core was too hot", _hot, has_place=True),
    "gpu_xid": Announcement("gpu", "GPU fault", _gpu),
    "nvswitch_sxid": Announcement("gpu", "NVSwitch fault", _switch),
    "gpu_init": Announcement("gpu", "GPU not initialised", _no_gpu),
    "io_error": Announcement("disk", "disk error", _disk),
    "fs_error": Announcement("disk", "file system error", _file_system),
    "nfs_not_responding": Announcement("disk", "file server silent", _server),
    "nic_reset": Announcement("network", "network card reset", _reset),
    "nic_tx_timeout": Announcement("network", "network card stopped sending", _stopped_sending),
    "nic_event": Announcement("network", "network card starved", _card_said),
    "link_down": Announcement("network", "network link lost", _link),
    "driver_unresponsive": Announcement("network", "a driver does not answer", _silent),
    "optic_error": Announcement("machine", "optic or cable error", _optic),
    "conntrack_full": Announcement("network", "connection table full"),
    "neighbour_table_full": Announcement("network", "neighbour table full"),
    "tcp_memory": Announcement("network", "TCP out of memory"),
    "netdev_unregister_wait": Announcement("network", "network device in use"),
    "oom_kill": Announcement("memory", "killed for memory", _killed),
    "memcg_oom": Announcement("memory", "memory limit reached"),
    "oom_summary": Announcement("memory", "out of memory"),
    "oom_invoked": Announcement("memory", "out of memory"),
    "page_allocation_failure": Announcement("memory", "no memory to be had", _no_memory),
    "slub_alloc_failed": Announcement("memory", "no memory to be had"),
    "hung_task": Announcement("waiting", "a task hangs", _hung),
    "soft_lockup": Announcement("cpu", "soft lockup", _stuck, has_place=True),
    "hard_lockup": Announcement("cpu", "hard lockup", _hard, has_place=True),
    "rcu_stall": Announcement("cpu", "RCU stall", has_place=True),
    "workqueue_hog": Announcement("cpu", "kernel work held up", _workqueue),
    "rt_throttling": Announcement("cpu", "real-time tasks were stopped"),
    "timer_slow": Announcement("cpu", "slow timer interrupt"),
    "pids_limit": Announcement("cpu", "process limit reached", _too_many),
    "files_limit": Announcement("cpu", "no more files may be opened", _no_files),
    "audit_backlog": Announcement("cpu", "audit records pile up"),
    "kernel_panic": Announcement("nothing", "kernel panic"),
    "kernel_bug": Announcement("nothing", "kernel bug"),
    "kernel_warning": Announcement("nothing", "kernel warning"),
    "clocksource_unstable": Announcement("nothing", "clock unstable", _clock),
    "ray_node_dead": Announcement("work", "Ray node declared dead"),
    "ray_job_failed": Announcement("work", "Ray job failed"),
    "pod_evicted": Announcement("work", "pod evicted"),
    "unit_failed": Announcement("work", "a unit failed"),
    "unit_state": Announcement("work", "a unit changed"),
}
"""By the kind of the event. Whoever stands higher heads an incident in which several of the same severity are."""

_ORDER = {kind: place for place, kind in enumerate(ANNOUNCED)}


def about(kind: str) -> Subject:
    return ANNOUNCED[kind].about if kind in ANNOUNCED else "nothing"


def title(kind: str) -> str:
    return ANNOUNCED[kind].title if kind in ANNOUNCED else kind.replace("_", " ")


def has_place(kind: str) -> bool:
    return kind in ANNOUNCED and ANNOUNCED[kind].has_place


def said(symptom: Symptom) -> str:
    """The sentence of an event; of any other symptom its text."""
    known = ANNOUNCED.get(str(symptom.facts.get("event")))
    sentence = known.says(symptom.facts) if known is not None and known.says is not None else ""
    return sentence or symptom.text


def thing(symptoms: Iterable[Symptom]) -> str:
    """Which card, disk, GPU or task the event that heads them is about; empty where it does not say."""
    first = foremost(symptoms)
    return "" if first is None else first.thing or str(first.facts.get("comm") or first.cpu or "")


def foremost(symptoms: Iterable[Symptom], *kinds: str) -> Symptom | None:
    """Of the events among these (of some kinds), the one that heads them."""
    events = [one for one in symptoms if "event" in one.facts and (not kinds or one.facts["event"] in kinds)]
    return min(
        events,
        key=lambda one: (-rank(one.severity), _ORDER.get(one.facts["event"], len(_ORDER)), one.from_us),
        default=None,
    )

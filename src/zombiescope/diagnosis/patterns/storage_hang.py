"""A disk, a file server or a FUSE daemon does not answer, and whoever needs it waits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix, Proof
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.waits import daemon, lasted_s, longest, tasks_of, what, where, who
from zombiescope.model.plans.step import Step, advice, command, note
from zombiescope.store.hangs import REMOTE

LOCAL = ("disk", "journal", "frozen")
_DISK = re.compile(r"[a-z][a-z0-9-]{1,31}")


def examine(case: Case) -> Evidence:
    symptom = longest(case, *LOCAL, "fuse", *sorted(REMOTE))
    if symptom is None:
        return Evidence(())
    tasks = tasks_of(case, symptom)
    evidence = (_waits(symptom), *where(tasks), *_thing(case, symptom))
    fix = Fix(_goal(symptom), tuple(_steps(case, symptom)))
    # No server of another kind was ever made to hang here.
    proof: Proof | None = "literature" if symptom.facts.get("waits_for") in REMOTE - {"nfs"} else None
    return Evidence(evidence, daemon(symptom), _summary(symptom), fix, proof=proof)


def _summary(symptom: Symptom) -> str:
    held = "is frozen" if symptom.facts.get("waits_for") == "frozen" else "does not answer"
    since = f"for {lasted_s(symptom):.0f} s"
    return f"{what(symptom)} {held}: {who(symptom)} {since}"


# --- evidence --------------------------------------------------------------------------------------------------------


def _waits(symptom: Symptom) -> Measurement:
    count = int(symptom.facts.get("count") or 0)
    says = None if not count or symptom.facts.get("moves") else True
    return measured(f"{who(symptom)} for {what(symptom)}", count, "tasks", "waiting", says, at_us=symptom.from_us)


def _thing(case: Case, symptom: Symptom) -> Iterator[Measurement]:
    """What the thing itself did meanwhile."""
    kind = symptom.facts.get("waits_for")
    disk = symptom.facts.get("disk") or (symptom.facts.get("device") if kind in LOCAL else None)
    if disk is not None and kind != "frozen":
        yield _disk(case, symptom, str(disk))
    for stalled in case.of_kind("disk_stalled"):
        if stalled is not symptom and stalled.facts["disk"] != disk:
            text = f"the disk {stalled.facts['disk']} completes nothing in the same time"
            yield measured(text, stalled.facts["in_flight"], "requests", "disks", True, at_us=stalled.from_us)
    if kind == "fuse":
        yield from _requests(case, symptom)
    if kind == "nfs":
        yield from _answers(case, symptom)


def _disk(case: Case, symptom: Symptom, disk: str) -> Measurement:
    history = case.facts.disks.get(disk)
    if history is None:
        return Measurement(f"what the disk {disk} did was not recorded", None, "requests", "disks", "nothing")
    from_us, to_us = max(symptom.from_us, case.facts.start_us), symptom.to_us
    done, pending = history.completed_between(from_us, to_us), history.most_in_flight(from_us, to_us)
    if done:
        return measured(f"the disk {disk} completed {done:,} requests in that time", done, "requests", "disks", False)
    text = f"the disk {disk} completed nothing, with {pending:,} requests in flight"
    return measured(text, pending, "requests", "disks", True if pending else None)


def _requests(case: Case, symptom: Symptom) -> Iterator[Measurement]:
    mine = [one for one in case.facts.served if one.point == symptom.facts.get("resource") and one.waiting is not None]
    inside = [one for one in mine if symptom.from_us <= one.at_us <= case.facts.end_us]
    if inside:
        count = max(one.waiting or 0 for one in inside)
        text = f"its daemon has not answered {count:,} requests"
        yield measured(text, count, "requests", "mounts", True if count else None, at_us=inside[-1].at_us)


def _answers(case: Case, symptom: Symptom) -> Iterator[Measurement]:
    server = symptom.facts.get("resource")
    mine = [one for one in case.facts.served if one.source == server and one.answered is not None]
    inside = [one for one in mine if symptom.from_us <= one.at_us <= symptom.to_us]
    if len(inside) < 2:
        return
    done = (inside[-1].answered or 0) - (inside[0].answered or 0)
    text = f"the server answered {done:,} requests in that time"
    yield measured(text, done, "requests", "mounts", None if done else True, at_us=inside[-1].at_us)


# --- what to do ------------------------------------------------------------------------------------------------------


def _goal(symptom: Symptom) -> str:
    kind = symptom.facts.get("waits_for")
    if kind == "fuse":
        return "find out what the daemon waits for, and end it if nothing helps"
    if kind == "frozen":
        return "find out who froze the file system and did not thaw it"
    return "find out why the file server does not answer" if kind in REMOTE else "find out why the disk does not answer"


def _steps(case: Case, symptom: Symptom) -> Iterator[Step]:
    kind = symptom.facts.get("waits_for")
    if kind == "fuse":
        yield from _fuse_steps(case, symptom, daemon(symptom))
    elif kind in REMOTE:
        yield from _server_steps(symptom)
    elif kind == "frozen":
        yield from _frozen_steps()
    else:
        yield from _disk_steps(symptom)
    yield note("do not run ls, df or lsof below the mount: they would hang as well")


def _fuse_steps(case: Case, symptom: Symptom, server: Actor | None) -> Iterator[Step]:
    if server is not None:
        places = (f"/proc/{server.pid}/{name}" for name in ("stack", "wchan"))
        yield command(shell("cat", *places), "what the daemon itself waits for")
    point = symptom.facts.get("resource")
    minor = next((one.device for one in reversed(case.facts.served) if one.point == point and one.device), None)
    number = minor.partition(":")[2] if minor and minor.partition(":")[2].isdigit() else None
    if number is not None:
        place = f"/sys/fs/fuse/connections/{number}/waiting"
        yield command(shell("cat", place), "requests that it has not answered")
    place = f"/sys/fs/fuse/connections/{number or 'N'}/abort"
    yield advice(
        f"writing 1 to {place} frees everybody who waits, and so does ending the daemon; the price: their calls fail "
        "(ENOTCONN), unwritten data is lost, and the mount cannot be used until it is mounted again"
    )


def _server_steps(symptom: Symptom) -> Iterator[Step]:
    if symptom.facts.get("waits_for") == "nfs":
        yield command("ss -tno 'dport = :2049'", "whether the connection is established, and whether data waits in it")
    yield command("dmesg -T | grep -iE 'not responding|evicted|was lost|timed out'", "which server, since when")
    yield command("cat /proc/self/mountstats", "of NFS: requests sent and answered, without asking the server")
    yield advice(
        "tasks on a hard mount continue when the server answers; umount -f fails their calls instead, and umount -l "
        "only hides the mount from others"
    )


def _frozen_steps() -> Iterator[Step]:
    yield command("dmesg -T | grep -iE 'freez|thaw|snapshot'", "who asked for it")
    yield advice(
        "a backup or snapshot (LVM, a VM's guest agent) freezes a file system and thaws it within seconds; if that one "
        "died, fsfreeze --unfreeze on the mount point frees everybody, and a snapshot that is being taken is worthless"
    )


def _disk_steps(symptom: Symptom) -> Iterator[Step]:
    disk = str(symptom.facts.get("disk") or symptom.facts.get("device") or "")
    yield command("dmesg -T | grep -iE 'timeout|reset|i/o error|offline|nvme'", "what its driver says")
    if _DISK.fullmatch(disk):
        yield command(
            shell("cat", f"/sys/block/{disk}/inflight", f"/sys/block/{disk}/stat"), "whether it still completes nothing"
        )
        yield command(shell("ls", "-l", f"/sys/block/{disk}"), "which controller it is on")
    yield advice(
        "a cloud volume that hangs is the provider's to fix: check its state and limits there; a disk whose controller "
        "is gone comes back with a reset or a reboot only, and its tasks cannot be killed until then"
    )


PATTERN = Pattern(
    id="storage-hang",
    title="Storage does not answer",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="Jobs are blocked and use no CPU; ps shows them in state D (or S, if they wait for a FUSE daemon). The "
    "load average rises while cores are idle. ls, df and every agent that looks below the mount hang as "
    "well.",
    confirmed_by="Tasks did not run once in 10 s and wait for one disk, file server or FUSE daemon, which completed "
    "nothing in that time: its requests are still in flight (diskstats) or unanswered (mountstats, FUSE's "
    "`waiting`).",
    refuted_by="The disk completed requests in that time: then it is slow or busy, but does not hang.",
    remedy="Find out why it does not answer. Ending a FUSE daemon or aborting its connection frees the waiting tasks, "
    "but their calls fail.",
    stop_gap="keep new work off the mount, and cordon the node; waiting tasks continue when it answers",
    examine=examine,
    symptoms=frozenset({"tasks_wait", "disk_stalled"}),
    hog="No process: a waiting task uses no CPU.",
    culprit="The daemon of a FUSE file system; otherwise no process on this node. The report names what hangs: the "
    "disk, the server, the mount.",
    known_from="measured on 6.18 with FUSE, a loop device on it and a frozen file system; "
    "NFS and Lustre from the kernel's sources and field reports only: at most 0.6",
)

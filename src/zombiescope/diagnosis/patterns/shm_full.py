"""Shared memory (/dev/shm) is full, and SIGBUS kills whoever touches a new page of it: data loaders in containers."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms.near_limit import SHARED_MEMORY
from zombiescope.model.plans.step import Step, advice, change, command


def examine(case: Case) -> Evidence:
    full = [one for one in case.of_kind("near_limit") if one.facts["what"] == SHARED_MEMORY]
    killed = case.event("sigbus")
    if not full and killed is None:
        return Evidence(())
    return Evidence(
        tuple(_measurements(full, killed)), _culprit(full, killed), _summary(full, killed),
        Fix("give it more shared memory, or let it use less", tuple(_steps(full))),
    )  # fmt: skip


def _measurements(full: list[Symptom], killed: Symptom | None) -> Iterator[Measurement]:
    for one in full:
        used = one.facts["used"]
        yield Measurement(one.text, used, "bytes", "counters", "confirms", one.from_us, counter="used_bytes")
    if killed is not None and not full:
        text = "no /dev/shm that was read was nearly full: the file behind the mapping may have been cut"
        yield Measurement(text, None, "bytes", "counters", "nothing", killed.from_us, counter="used_bytes")


def _culprit(full: list[Symptom], killed: Symptom | None) -> Actor | None:
    container = next((str(one.facts["container"]) for one in full if one.facts.get("container")), None)
    if killed is not None:
        return Actor(comm=str(killed.facts.get("comm") or "") or None, pid=killed.facts.get("pid"), container=container)
    return Actor(container=container) if container else None


def _summary(full: list[Symptom], killed: Symptom | None) -> str:
    who = f"{killed.facts.get('comm')} was killed by SIGBUS" if killed is not None else ""
    if not full:
        return f"{who}: it touched a page of shared memory or of a mapped file that could not be had"
    return f"{who}: {full[0].text}" if who else full[0].text


def _steps(full: list[Symptom]) -> Iterator[Step]:
    yield command("df -h /dev/shm", "in the container; 64 MB is the default of Docker and Kubernetes")
    yield command("ls -laS /dev/shm | head", "what is in it; files of processes that were killed stay")
    yield advice("Docker: --shm-size=16g, or --ipc=host", "stop-gap")
    yield advice("Kubernetes: an emptyDir with medium: Memory and a sizeLimit, mounted at /dev/shm", "stop-gap")
    yield advice(
        "PyTorch: fewer workers, smaller prefetch_factor, or torch.multiprocessing.set_sharing_strategy('file_system')"
    )
    if any(not one.facts.get("container") for one in full):
        yield _grown(max(int(one.facts["most"]) for one in full if not one.facts.get("container")))


def _grown(size: int) -> Step:
    """Of the node's own. With the recorded size as the way back."""
    look, twice = "findmnt -o OPTIONS /dev/shm", 2 * size
    return change(
        f"mount -o remount,size={twice} /dev/shm",
        f"make the node's /dev/shm twice as large ({twice / 1e6:,.0f} MB), if that much memory is free",
        touches="the limit of /dev/shm, until the next boot; its files stay",
        risk="what is in /dev/shm is memory: if it fills up, too, less is left for programs",
        undo=f"mount -o remount,size={size} /dev/shm",
        verify=look,
        part="stop-gap",
    )


PATTERN = Pattern(
    id="shm-full",
    title="Shared memory (/dev/shm) is full",
    proof="literature",
    looks_like="Workers of a data loader die of SIGBUS ('Bus error', 'DataLoader worker is killed by signal'), while "
    "memory is free and no log of the kernel says anything.",
    confirmed_by="The /dev/shm of the node or of a container was at 95% or more.",
    refuted_by="Nothing: the pattern is only considered when /dev/shm is nearly full or a process got SIGBUS.",
    remedy="A larger /dev/shm (--shm-size, an emptyDir of medium Memory), or fewer and smaller batches in flight.",
    stop_gap="remove files in /dev/shm that no process has open (lsof /dev/shm), or run fewer workers",
    examine=examine,
    symptoms=frozenset({"event", "near_limit"}),
    hog="No process: a page that cannot be had uses no CPU.",
    culprit="The process that was killed, with its container.",
    known_from="pytorch 5040, 16979, 108861; mm/shmem.c, shmem_fault",
)

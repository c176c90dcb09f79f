"""/proc/PID/environ: which rank of which distributed job a process is, by what its launcher set when it started it.

Read: NAMES and nothing else. Launchers set them at exec, so they are in the block that the kernel copied then; what a
program sets later (os.environ) is not. Programs that overwrite that block to change their title (setproctitle) cut it.
The values are the program's own words: numbers and ids are checked by shape, anything else is None. The job of Slurm is
also in the cgroup's path, which only Slurm can choose, so that wins.

Cost: one file, at most MOST_BYTES of it; the kernel takes the target's mmap lock, so only a process that may hang reads
it. Needs the ptrace access check (CAP_SYS_PTRACE for other users' processes). Absence: None for a process that no
launcher numbered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

MOST_BYTES = 1 << 18
MOST_RANK = 10_000_000

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX",
          "VC_TASK_INDEX")  # fmt: skip
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_LOCALS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_IDS = ("SLURM_JOB_ID", "SLURM_STEP_ID", "RAY_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
        "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE")  # fmt: skip
NAMES = frozenset((*_RANKS, *_SIZES, *_LOCALS, *_IDS))
_NO_RUN = ("", "none")
"""TORCHELASTIC_RUN_ID where nobody chose one."""

_WORD = re.compile(r"[A-Za-z0-9._:@\-\[\]]{1,128}")
_SLURM = re.compile(r"/job_([0-9]{1,12})(?:/step_([a-z0-9]{1,12}))?(?:/|$)")


@dataclass(frozen=True, slots=True)
class Rank:
    rank: int | None
    world_size: int | None
    local_rank: int | None
    job: str | None
    kind: str


def read(pid: int) -> dict[str, str]:
    """The variables of NAMES that are set; empty for a process that may not be read or is gone."""
    try:
        descriptor = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        pieces, size = [], 0
        while size < MOST_BYTES and (piece := os.read(descriptor, 1 << 16)):
            pieces.append(piece)
            size += len(piece)
    except OSError:
        return {}
    finally:
        os.close(descriptor)
    return parse(b"".join(pieces))


def parse(data: bytes) -> dict[str, str]:
    """The first value of each name; one that is no short word of ASCII is left out."""
    found: dict[str, str] = {}
    for entry in data[:MOST_BYTES].split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if not equals or len(name) > 64 or len(value) > 128:
            continue
        key, text = name.decode("ascii", "replace"), value.decode("ascii", "replace")
        if key in NAMES and key not in found and _WORD.fullmatch(text):
            found[key] = text
    return found


def rank(variables: Mapping[str, str], cgroup: str | None = None) -> Rank | None:
    """None for a process that belongs to no distributed job."""
    number = _number(variables, _RANKS)
    job = _job(variables, cgroup)
    if number is None and (job is None or job[0] not in ("slurm", "ray")):
        return None
    kind, name = job or (_launcher(variables), None)
    return Rank(number, _number(variables, _SIZES), _number(variables, _LOCALS), name, kind)


def same_place(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two processes have the same rank: one inherited it from the other."""
    return all(one.get(name) == other.get(name) for name in (*_RANKS, *_LOCALS))


def _number(variables: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    values = (variables[name] for name in names if name in variables)
    value = next(values, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 9 and int(value) <= MOST_RANK else None


def _job(variables: Mapping[str, str], cgroup: str | None) -> tuple[str, str] | None:
    """(who started it, its id), the same on every node of the job."""
    inside = _SLURM.search(cgroup or "")
    if inside:
        return "slurm", inside[1] if inside[2] in (None, "batch", "extern") else f"{inside[1]}.{inside[2]}"
    get = variables.get
    if slurm := get("SLURM_JOB_ID"):
        step = get("SLURM_STEP_ID")
        return "slurm", f"{slurm}.{step}" if step else slurm
    if ray := get("RAY_JOB_ID"):
        return "ray", ray
    run = get("TORCHELASTIC_RUN_ID", "")
    if run not in _NO_RUN:
        return "torchrun", run
    if address := get("MASTER_ADDR"):
        return "torch", f"{address}:{get('MASTER_PORT', '?')}"
    if space := get("PMIX_NAMESPACE") or get("OMPI_MCA_ess_base_jobid"):
        return "mpi", space
    return None


def _launcher(variables: Mapping[str, str]) -> str:
    if any(name in variables for name in ("JOB_COMPLETION_INDEX", "VC_TASK_INDEX")):
        return "kubernetes"
    return "mpi" if any(name.startswith(("OMPI_", "PMI")) for name in variables) else "torch"

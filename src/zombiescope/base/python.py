"""Our own interpreter as a child: started so that nothing in the current directory stands in for a module of ours.

`python -m` and `python -c` put the current directory first on sys.path, so a `zombiescope/__init__.py` that somebody
left where root runs a command would be executed by it. -P (from 3.11 on) leaves it out. -I would also leave out the
user's own packages, among which we may be installed. An empty or relative entry of PYTHONPATH is the current directory
too (`PYTHONPATH=$PYTHONPATH:/x` makes one): children get the absolute ones. The same holds for PATH, by which docker,
systemctl and journalctl are found: a `docker` in the current directory is not the one that root means.
"""

from __future__ import annotations

import os
import sys


def safe(*arguments: str) -> list[str]:
    """The command line of our interpreter."""
    return [sys.executable, "-P", *arguments]


def environment() -> dict[str, str]:
    """Ours, without what would bring the current directory back."""
    made = dict(os.environ)
    modules, programs = _absolute(made.pop("PYTHONPATH", "")), _absolute(made.get("PATH", os.defpath))
    return made | {"PATH": programs or os.defpath} | ({"PYTHONPATH": modules} if modules else {})


def leave_current_directory_out() -> None:
    """Of where this process itself looks for programs."""
    os.environ["PATH"] = _absolute(os.environ.get("PATH", os.defpath)) or os.defpath


def leave_threads_of_numpy_out() -> None:
    """OpenBLAS starts a thread for each core of the node when numpy is loaded, and each spins for a while before it
    sleeps: 0.03 to 0.08 CPU-seconds with two cores. We multiply no large matrices. What somebody set on purpose stays;
    our children inherit it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _absolute(places: str) -> str:
    return os.pathsep.join(place for place in places.split(os.pathsep) if os.path.isabs(place))  # noqa: PTH117


STEADY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""For a process that lives for months and reads a table now and then: one heap, and large blocks go back when they are
freed. glibc gives each thread a heap of its own, and after the first large block keeps such blocks in it, where symbol
tables that come and go leave holes: an hour of churn took 85 MB and rose, and takes 63 with these."""

BRIEF = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
"""For a process that is over in a second (a look of the doctor, a push): what it freed is used again and not given
back. With STEADY, which it would inherit, each array was a mapping, and the kernel cleared its pages anew."""

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""A process that forks has no threads. OpenBLAS starts one for each core of the node, Arrow one of its own."""

FORKING = ONE_THREAD | BRIEF
"""For the process of the live diagnosis, which forks for each pass."""


def forking_environment() -> dict[str, str]:
    return environment() | FORKING


def steady_environment() -> dict[str, str]:
    """For the recorder. What somebody set on purpose stays."""
    return STEADY | environment()


def brief_environment() -> dict[str, str]:
    return environment() | BRIEF


def module(name: str, *arguments: str) -> list[str]:
    """The command line that runs a module."""
    return safe("-m", name, *arguments)

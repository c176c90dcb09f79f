"""What a recorder was asked to do. It arrives as one JSON argument, checked by the command that starts the recorder."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.time import AUTO
from zombiescope.store.core_lists import ISOLATED


@dataclass(frozen=True, slots=True)
class RecorderConfig:
    dir: str
    node: str | None = None
    for_s: float | None = None
    hz: int = 0
    """0: chosen by the number of cores (sampling.py)."""
    event: str = AUTO
    interval_s: float = 1.0
    segment_s: float = 120.0
    keep_s: float = 12 * 3600.0
    max_bytes: int = 2_000_000_000
    read_by_all: bool = False
    """Whether every user of the machine may read the recording."""
    labels: dict[str, str] = field(default_factory=dict)
    compact_every_s: float = 900.0
    leave_out_cores: str = ISOLATED
    """Cores that are not sampled: a list as the kernel writes it, "isolated", or "none"."""
    diagnose: bool = False
    """Whether a doctor looks when something is suspicious."""
    python: bool = True
    """Whether the Python stacks of hot processes are read out of their memory."""
    whole_stacks: bool = True
    """Whether stacks of threads that are hot in user mode are copied and unwound."""
    schedule: bool = True
    """Whether the schedule of the cores that matter is kept in rings, for a snapshot when there is cause."""
    closer_looks: bool = True
    """Whether the system calls of a suspect that no pattern explains are followed for a second."""
    page: dict[str, Any] = field(default_factory=dict)
    """The page that is shown beside it: {"socket", "secret", "listen"}; the first two are descriptors (page.py)."""
    gpu_library: str = ""
    """A stand-in for the library of the GPU driver; for tests."""
    keep_earlier_names: bool = True
    """False: recordings that this node made under other names are kept within the same limits, as earlier pods left
    them."""
    json: bool = False
    quiet: bool = False
    called: str = "zombiescope"
    """What a person types for our commands here."""
    as_root: str = ""
    """The command line that would see everything; empty: nobody can type it."""
    demo: str = "zombiescope demo"
    parent_pid: int | None = None
    """The supervisor that it ends with; None: it lives on its own."""
    startup_cpu_s: float = 0.0
    """CPU that the process used before it became the recorder."""


def parse(text: str) -> RecorderConfig:
    """The argument as a RecorderConfig. Raises ValueError for a key that is not known or is missing."""
    given = _json.loads(text)
    if not isinstance(given, dict):
        raise ValueError("not settings of a recorder: no object")
    known = {one.name for one in fields(RecorderConfig)}
    strange = sorted(set(given) - known)
    if strange:
        raise ValueError(f"not a setting of the recorder: {', '.join(strange)}")
    try:
        return RecorderConfig(**given)
    except TypeError as error:
        raise ValueError(f"not settings of a recorder: {error}") from error

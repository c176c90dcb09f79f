"""How the time of a core is divided: the modes of /proc/stat, in the order of mpstat."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from zombiescope.model.answer import Field


@dataclass(frozen=True, slots=True)
class Modes:
    """What part of a time was spent how."""

    user: Annotated[float | None, Field("user", "ratio")]
    nice: Annotated[float | None, Field("nice", "ratio")]
    system: Annotated[float | None, Field("sys", "ratio")]
    irq: Annotated[float | None, Field("irq", "ratio")]
    softirq: Annotated[float | None, Field("soft", "ratio")]
    steal: Annotated[float | None, Field("steal", "ratio")]
    iowait: Annotated[float | None, Field("iowait", "ratio")]
    idle: Annotated[float | None, Field("idle", "ratio")]


@dataclass(frozen=True, slots=True)
class ModesBusy(Modes):
    """`busy` is everything but idle and iowait."""

    busy: float | None


MODES = tuple(one.name for one in fields(Modes))
DRAWN_MODES = ("user", "system", "irq", "softirq", "steal", "iowait")
"""Those of a picture; `user` includes nice."""

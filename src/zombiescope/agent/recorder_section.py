"""The section `recorder`: what `record` has as options. All of it holds until the agent is started again, because a
recorder that is started anew has a hole of seconds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zombiescope.agent.config.setting import Duration, Rule, Size, setting
from zombiescope.base.time import AUTO, CPU_CLOCK, CYCLES
from zombiescope.recorder.config import RecorderConfig
from zombiescope.store import locate

_USUAL = RecorderConfig("")
_INTERVAL, _SEGMENT = Duration(_USUAL.interval_s), Duration(_USUAL.segment_s)
_KEEP, _COMPACT = Duration(_USUAL.keep_s), Duration(_USUAL.compact_every_s)
_MAX = Size(_USUAL.max_bytes)
_NAME = r"[^/.][^/]{0,252}"


@dataclass(frozen=True, slots=True)
class RecorderSection:
    """What is recorded, where, and for how long it is kept."""

    dir: str | None = setting(
        None, "Where to record. Default: $ZOMBIESCOPE_DIR, else /var/lib/zombiescope.", fixed=True
    )
    node: str | None = setting(
        None,
        "The name of this node. Default: $NODE_NAME (the chart sets it), else the host's.",
        pattern=_NAME,
        fixed=True,
    )
    hz: int = setting(
        _USUAL.hz, "Stack samples per second and core. 0: 99, and 49 from 128 cores on.", low=0, high=999, fixed=True
    )
    event: str = setting(
        _USUAL.event,
        "What makes a sample. auto: cycles from 128 cores on, if there is a PMU and no nohz_full; else cpu-clock.",
        choices=(AUTO, CPU_CLOCK, CYCLES),
        fixed=True,
    )
    interval: Duration = setting(_INTERVAL, "How often counters are read.", low=0.1, high=60, fixed=True)
    segment: Duration = setting(_SEGMENT, "Length of one log file.", low=5, high=3600, fixed=True)
    keep: Duration = setting(_KEEP, "Delete what is older.", low=60, high=1e9, fixed=True)
    max_bytes: Size = setting(_MAX, "Use at most this much disk.", low=1e6, high=1e18, fixed=True)
    compact_every: Duration = setting(
        _COMPACT, "How often the log is turned into Parquet.", low=60, high=86400, fixed=True
    )
    labels: dict[str, str] = field(
        default_factory=dict,
        metadata={"rule": Rule("Labels of this node, kept with the recording: {zone: us-east-1a}.", fixed=True)},
    )
    read_by_all: bool = setting(
        False,
        "Let every user of this machine read the recording; otherwise only the group zombiescope can.",
        fixed=True,
    )
    leave_out_cores: str = setting(
        _USUAL.leave_out_cores, "Cores not to sample: 2-5,8, isolated (isolcpus and nohz_full), or none.",
        pattern=r"|none|isolated|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*",
        fixed=True,
    )  # fmt: skip
    python: bool = setting(
        True,
        "Read Python stacks of busy, waiting and GPU processes from their memory.",
        fixed=True,
    )
    whole_stacks: bool = setting(
        True,
        "Copy stacks of the hottest threads, to see callers in libraries without frame pointers.",
        fixed=True,
    )
    schedule: bool = setting(
        True, "The schedule of the cores that matter is kept in rings, for who delayed whom.", fixed=True
    )
    closer_looks: bool = setting(
        True, "Follow the system calls of a suspect that no pattern explains, for one second.", fixed=True
    )
    diagnose: bool = setting(True, "Diagnose while recording: a pass runs when something looks suspicious.", fixed=True)

    def problems(self) -> Iterator[tuple[str, str, str]]:
        if self.dir is not None and not Path(self.dir).is_absolute():
            yield "recorder.dir", f"is {self.dir!r}", "write it as an absolute path"

    @property
    def directory(self) -> Path:
        return Path(self.dir) if self.dir is not None else locate.default_dir_for_writing().absolute()

    @property
    def node_name(self) -> str:
        return self.node or self._told_name or os.uname().nodename

    @property
    def _told_name(self) -> str | None:
        """A pod's host name is the pod's own: each rollout would begin another recording."""
        name = os.environ.get("NODE_NAME", "")
        return name if re.fullmatch(_NAME, name) else None

    def arguments(self) -> dict[str, Any]:
        """As the recorder's process takes them."""
        return {
            "dir": str(self.directory),
            "node": self.node or self._told_name,
            "hz": self.hz,
            "event": self.event,
            "interval_s": self.interval,
            "segment_s": self.segment,
            "keep_s": self.keep,
            "max_bytes": self.max_bytes,
            "compact_every_s": self.compact_every,
            "labels": dict(self.labels),
            "read_by_all": self.read_by_all,
            "leave_out_cores": self.leave_out_cores,
            "python": self.python,
            "whole_stacks": self.whole_stacks,
            "schedule": self.schedule,
            "closer_looks": self.closer_looks,
            "diagnose": self.diagnose,
            "keep_earlier_names": self._told_name is None,
        }

"""Check-ups of synthetic recordings: a row of `cores` or a thread, second by second, and the rest quiet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.helpers.recordings import SECOND, START_US, write_segment

from zombiescope.audit.surroundings import Surroundings
from zombiescope.diagnosis.check.check import Audited, Check
from zombiescope.diagnosis.check.examine import examine
from zombiescope.diagnosis.check.findings import WindowFinding
from zombiescope.store.reader import open_recording
from zombiescope.store.schema import SOFTIRQS

HZ = 99
NOTHING = Audited()
Tables = dict[str, list[tuple[Any, ...]]]


def core(second: int, cpu: int, **changes: int | None) -> tuple[Any, ...]:
    """A second of a core that was idle but for what is changed; modes in milliseconds, by their names."""
    modes = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
    used = sum(changes.get(mode) or 0 for mode in modes if mode != "idle")
    figures: dict[str, int | None] = {"idle": 1000 - used, "idle_samples": HZ, "max_gap_us": 10_101, **changes}
    return (
        START_US + (second + 1) * SECOND, SECOND, cpu, *(figures.get(mode, 0) for mode in modes),
        figures.get("samples", HZ), figures["idle_samples"], HZ, figures["max_gap_us"], *[0] * len(SOFTIRQS),
        figures.get("processed", 10), figures.get("dropped", 0), figures.get("squeezed", 0),
        figures.get("ksoftirqd_delay_us", 0), None, None,
    )  # fmt: skip


def quiet(seconds: int = 10, cpus: int = 2) -> list[tuple[Any, ...]]:
    return [core(second, cpu) for second in range(seconds) for cpu in range(cpus)]


class Stacks:
    """Samples, and the dictionaries that they need."""

    def __init__(self) -> None:
        self.tables: Tables = {"frames": [], "stacks": [], "tasks": [], "samples": []}

    def task(self, pid: int, comm: str, unit: str | None = None, policy: int = 0, rt_priority: int = 0) -> int:
        number = len(self.tables["tasks"])
        who = (number, pid, pid, comm, 1, 500, policy, rt_priority, comm, f"/usr/bin/{comm}", None, unit, None, None)
        self.tables["tasks"].append(who)
        return number

    def stack(self, *names: str, kind: str = "kernel") -> int:
        first, number = len(self.tables["frames"]), len(self.tables["stacks"])
        self.tables["frames"] += [(first + place, name, "", kind) for place, name in enumerate(names)]
        self.tables["stacks"].append((number, tuple(range(first, first + len(names)))))
        return number

    def run(self, task: int, stack: int, cpus: Sequence[int], start_s: float, end_s: float) -> None:
        """At full tilt, on one core after the other."""
        step_us = SECOND // HZ
        times = range(START_US + round(start_s * SECOND) + step_us // 2, START_US + round(end_s * SECOND), step_us)
        rows = [(at, cpus[place % len(cpus)], task, stack, None) for place, at in enumerate(times)]
        self.tables["samples"] = sorted(self.tables["samples"] + rows)


def counters(figures: dict[tuple[str, str, str], int], seconds: int = 10) -> Tables:
    """(source, name, key) -> what is added in the window, all in its last second."""
    at_us = START_US + seconds * SECOND
    series = [(number, *identity, "counter") for number, identity in enumerate(figures)]
    return {"series": series, "counters": [(at_us, number, added) for number, added in enumerate(figures.values())]}


def event(second: int, kind: str, severity: str, text: str, **fields: Any) -> tuple[Any, ...]:
    return (START_US + second * SECOND + SECOND // 2, kind, "kmsg", severity, text, json.dumps(fields))


def checked(
    place: Path,
    tables: Tables | None = None,
    *,
    around: Surroundings | None = None,
    audit: Audited = NOTHING,
    kernel: str = "5.4.0-1024-aws",
    missing: list[dict[str, str]] | None = None,
) -> Check:
    """A check-up of ten quiet seconds with some tables in place of theirs."""
    path = write_segment(place, {"cores": quiet(), **(tables or {})}, kernel=kernel)
    described = path.parent.parent / "node.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"missing": missing or [], "hz": HZ}))
    with open_recording(place) as recording:
        check = examine(recording, around or Surroundings(), audit)
    assert check is not None
    return check


def found(check: Check, rule: str) -> list[WindowFinding]:
    return [finding for finding in check.findings if finding.rule == rule]

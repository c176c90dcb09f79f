"""The worst second so far, and what the average hid: true on every machine, and mostly harmless."""

from __future__ import annotations

from typing import Any

import numpy as np

from zombiescope.query.cores import cores
from zombiescope.query.worst import Worst, worst_second
from zombiescope.questions.window import Window, WindowQuestion
from zombiescope.store import columns
from zombiescope.store.reader import Recording

_MODES = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle")
_NOTHING_HIDDEN = 0.2
"""A core that is not so much worse than the mean is not hidden by it."""


def answer(recording: Recording, question: WindowQuestion) -> dict[str, Any]:
    """Raises QuestionError."""
    return document(recording, question.choose(recording))


def document(recording: Recording, window: Window) -> dict[str, Any]:
    worst = worst_second(recording, window.start_us, window.end_us)
    return {
        "node": recording.name,
        "from": window.start_us / 1e6,
        "to": window.end_us / 1e6,
        "second": None if worst is None else _second(recording, worst),
        "hidden": None if worst is None else _hidden(recording, worst, window),
    }


def _second(recording: Recording, worst: Worst) -> dict[str, Any]:
    view = cores(recording, worst.from_us, worst.to_us)
    core = next((each for each in view.cores if each.cpu == worst.cpu), None)
    return {
        "at": worst.from_us / 1e6,
        "cpu": worst.cpu,
        "modes": {mode: None if core is None else getattr(core.modes, mode) for mode in _MODES},
        "kernel": worst.kernel_ratio,
        "samples": worst.samples,
        "comm": worst.comm,
        "pid": worst.pid,
        "unit": worst.unit,
        "container": worst.container,
        "task_ratio": worst.task_ratio,
        "path": list(worst.path),
    }


def _hidden(recording: Recording, worst: Worst, window: Window) -> dict[str, Any] | None:
    """The run of ticks around the worst second in which its core stayed like that, beside the mean of all cores."""
    from_us, to_us = _run(recording, worst, window)
    view = cores(recording, from_us, to_us)
    core = next((each for each in view.cores if each.cpu == worst.cpu), None)
    if core is None or view.aggregate.busy is None:
        return None
    kernel = _sum(view.aggregate, core=False)
    held = _sum(core.modes, core=True)
    if held - kernel < _NOTHING_HIDDEN:
        return None
    return {
        "average_busy": view.aggregate.busy,
        "average_kernel": kernel,
        "core": worst.cpu,
        "core_kernel": held,
        "seconds": (to_us - from_us) / 1e6,
        "at": from_us / 1e6,
    }


def _sum(modes: Any, *, core: bool) -> float:
    total = sum(getattr(modes, mode) or 0.0 for mode in ("system", "irq", "softirq"))
    return min(1.0, total) if core else float(total)


def _run(recording: Recording, worst: Worst, window: Window) -> tuple[int, int]:
    """From the first to the last tick without a break in which the kernel held the core nearly as much."""
    around_us = 120_000_000
    start, end = max(window.start_us, worst.from_us - around_us), min(window.end_us, worst.to_us + around_us)
    rows = recording.table(
        "cores", start + 1, end + 1, ("time", "interval_us", "cpu", "system_ms", "irq_ms", "softirq_ms")
    )
    mine = columns.ids(rows.column("cpu")) == worst.cpu
    time_us, interval = (columns.numbers(rows.column(name))[mine] for name in ("time", "interval_us"))
    kernel_ms = sum(
        (np.maximum(columns.ids(rows.column(f"{mode}_ms"))[mine], 0) for mode in ("system", "irq", "softirq")),
        np.zeros(len(time_us), np.int64),
    )
    held = kernel_ms * 1000 >= interval * (worst.kernel_ratio * 0.9)
    inside = np.flatnonzero((time_us > worst.from_us) & (time_us <= worst.to_us))
    if not len(inside) or not held[inside].all():
        return worst.from_us, worst.to_us
    first, last = int(inside[0]), int(inside[-1])
    while first > 0 and held[first - 1] and time_us[first - 1] >= time_us[first] - 2 * interval[first]:
        first -= 1
    while last + 1 < len(held) and held[last + 1] and time_us[last + 1] <= time_us[last] + 2 * interval[last + 1]:
        last += 1
    return int(time_us[first] - interval[first]), int(time_us[last])

"""GPU seconds and training steps by job, counted as they are written, and who is on which GPU.

The same account as `zombiescope gpu`, without numpy and from what one pass over the log tells: what main threads of
processes on a GPU did in each second is kept until the driver's row of that second comes, up to 40 s later. What needs
samples or waiting tasks is not told apart here: time without a core counts as `host`, and workers that were stopped, or
that wait for storage, as what their parent waits in. What nobody looked at is `unknown`.

Bounded: KEPT_S seconds of MOST_PROCESSES processes; stacks with Python frames of one segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Tally
from zombiescope.base.time import SECOND_US
from zombiescope.store import schema
from zombiescope.store.log import Block
from zombiescope.symbols.python import places

KEPT_S = 60
MOST_PROCESSES = 256
MOST_STACKS = 100_000
LOOKS_OF_A_SECOND = 3
_SLOWED = ("sw_thermal_ns", "hw_thermal_ns", "power_brake_ns")
_WAITS = {"collective": "collective", "backward": "collective", "device": "host", "data": "data", "storage": "storage"}
_TABLES = (schema.GPU_SECONDS, schema.GPUS, schema.GPU_PROCESSES, schema.RANKS, schema.PYTHON, schema.STACKS,
           schema.FRAMES, schema.CONTAINERS, schema.STEPS)  # fmt: skip
TABLES = frozenset(table.name for table in _TABLES)


_Seen = tuple[str | None, int, int]
"""The thread's state, segment, stack."""


class GpuSecondsAccount:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._tenants: dict[tuple[int, int], dict[str, Any]] = {}
        """(GPU, pid) -> the living process."""
        self._jobs: dict[int, str] = {}
        self._boxes: dict[int, str] = {}
        """Rank's process -> its container."""
        self._containers: dict[str, dict[str, Any]] = {}
        self._gpus: dict[int, dict[str, Any]] = {}
        self._frames: dict[int, tuple[str, str]] = {}
        self._segment = 0
        self._stacks: dict[tuple[int, int], str | None] = {}
        """Segment and stack with Python frames -> what its innermost function is there for."""
        self._looks: dict[int, dict[int, dict[_Seen, int]]] = {}
        """Second -> process -> what was seen -> looks. A stack may be written a frame after the look at it."""
        self._takes: dict[str, Callable[[dict[str, Any]], None]] = {
            "gpus": self._gpu, "gpu_processes": self._tenant, "ranks": self._rank, "python": self._look,
            "frames": self._frame, "stacks": self._stack, "containers": self._container,
        }  # fmt: skip

    def end_segment(self) -> None:
        """The next one numbers its stacks from one again."""
        self._frames.clear()
        self._segment += 1
        self._stacks = {key: purpose for key, purpose in self._stacks.items() if key[0] >= self._segment - 1}

    def update(self, block: Block, counted: bool) -> None:
        for row in _rows(block):
            if block.table is schema.GPU_SECONDS:
                self._second(row, counted)
            elif block.table is schema.STEPS:
                self._steps(row, counted)
            else:
                self._takes[block.table.name](row)

    # --- who and what -------------------------------------------------------------------------------------------------

    def _frame(self, row: dict[str, Any]) -> None:
        if row["kind"] == "python" and len(self._frames) < MOST_STACKS:
            self._frames[row["frame"]] = (row["name"] or "", row["module"] or "")

    def _stack(self, row: dict[str, Any]) -> None:
        frames: Sequence[int] = row["frames"] or ()
        if len(frames) > 0 and frames[0] in self._frames and len(self._stacks) < MOST_STACKS:
            functions = tuple(self._frames[each] for each in frames if each in self._frames)
            self._stacks[self._segment, row["stack"]] = places.purpose_of(functions)

    def _look(self, row: dict[str, Any]) -> None:
        if row["pid"] != row["tid"] or row["stack"] is None or row["time"] is None:
            return
        seen = (row["state"], self._segment, row["stack"])
        seconds = self._looks.setdefault(-(-row["time"] // SECOND_US), {})
        if row["pid"] in seconds or len(seconds) < MOST_PROCESSES:
            counts = seconds.setdefault(row["pid"], {})
            counts[seen] = counts.get(seen, 0) + (row["looks"] or 1)
        while len(self._looks) > KEPT_S:
            del self._looks[min(self._looks)]

    def _tenant(self, row: dict[str, Any]) -> None:
        key = (row["gpu"], row["pid"])
        if row["ended"]:
            self._tenants.pop(key, None)
        elif key in self._tenants or len(self._tenants) < MOST_PROCESSES:
            self._tenants[key] = row

    def _rank(self, row: dict[str, Any]) -> None:
        if row["ended"]:
            self._jobs.pop(row["pid"], None)
            self._boxes.pop(row["pid"], None)
            return
        if row["container"] and (row["pid"] in self._boxes or len(self._boxes) < MOST_PROCESSES):
            self._boxes[row["pid"]] = row["container"]
        if row["job"] and (row["pid"] in self._jobs or len(self._jobs) < MOST_PROCESSES):
            self._jobs[row["pid"]] = f"{row['kind']}/{row['job']}"

    def _container(self, row: dict[str, Any]) -> None:
        if row["exited"]:
            self._containers.pop(row["id"], None)
        elif row["id"] in self._containers or len(self._containers) < 16 * MOST_PROCESSES:
            self._containers[row["id"]] = row

    def _gpu(self, row: dict[str, Any]) -> None:
        if row["gpu"] is not None and 0 <= row["gpu"] < families.GPUS_SHOWN:
            self._gpus[row["gpu"]] = row

    # --- a second of a GPU --------------------------------------------------------------------------------------------

    def _second(self, row: dict[str, Any], counted: bool) -> None:
        gpu, at_us = row["gpu"], row["time"]
        if gpu is None or at_us is None:
            return
        there = [one for (number, _), one in self._tenants.items() if number == gpu]
        seen = self._looks.get(at_us // SECOND_US, {})
        looks = {one["pid"]: self._states(seen.get(one["pid"], {})) for one in there}
        for (namespace, owner), states in self._shares(row, there, looks).items():
            for state, value in states.items():
                self._tally.add(families.JOB_GPU_SECONDS, value if counted else 0, namespace, owner, state)

    def _shares(
        self, row: dict[str, Any], there: list[dict[str, Any]], looks: dict[int, dict[str, int]]
    ) -> dict[tuple[str, str], dict[str, float]]:
        """Whose -> state -> seconds; all together one."""
        if not there:
            return {("", ""): {"unused": 1.0}}
        found: dict[tuple[str, str], dict[str, float]] = {}
        part = 1.0 / len(there)
        alone = len({self._whose(one) for one in there}) == 1
        for one in there:
            states = found.setdefault(self._whose(one), {})
            for state, value in _second(row, looks.get(one["pid"], {}), alone=alone).items():
                states[state] = states.get(state, 0.0) + value * part
        return found

    def _states(self, seen: dict[_Seen, int]) -> dict[str, int]:
        """State -> looks, of those whose stack is known."""
        found: dict[str, int] = {}
        for (letter, segment, stack), many in seen.items():
            if (segment, stack) in self._stacks:
                state = _state(letter, self._stacks[segment, stack])
                found[state] = found.get(state, 0) + many
        return found

    def _whose(self, tenant: dict[str, Any]) -> tuple[str, str]:
        box = self._containers.get(tenant["container"] or "", {})
        owner = box.get("owner") or self._jobs.get(tenant["pid"]) or box.get("pod") or tenant["unit"] or tenant["comm"]
        return box.get("namespace") or "", owner or ""

    # --- steps --------------------------------------------------------------------------------------------------------

    def _steps(self, row: dict[str, Any], counted: bool) -> None:
        took_us = row["took_us"]
        if row["phase"] is not None or not took_us:
            return
        whose = self._who_steps(row["pid"])
        self._tally.add(families.JOB_STEPS, len(took_us) if counted else 0, *whose)
        self._tally.add(families.JOB_STEP_SECONDS, sum(took_us) / 1e6 if counted else 0, *whose)

    def _who_steps(self, pid: int | None) -> tuple[str, str]:
        """A rank, or a process on a GPU; a program that is neither is nobody's."""
        if pid is None:
            return "", ""
        tenant = next((one for (_, each), one in self._tenants.items() if each == pid), None)
        if tenant is not None:
            return self._whose(tenant)
        return self._whose({"container": self._boxes.get(pid), "pid": pid, "unit": None, "comm": None})

    # --- published ----------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        self._tally.replace(families.GPU_INFO, (
            ((str(gpu), row["uuid"] or "", row["pci"] or "", row["name"] or ""), 1.0)
            for gpu, row in sorted(self._gpus.items())
        ))  # fmt: skip
        self._tally.replace(families.GPU_PROCESS_INFO, list(self._processes()))

    def _processes(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """One line for each owner's container on each GPU, with how many processes it has there."""
        found: dict[tuple[str, ...], float] = {}
        for (gpu, _), tenant in sorted(self._tenants.items()):
            box = self._containers.get(tenant["container"] or "", {})
            namespace, owner = self._whose(tenant)
            uuid = (self._gpus.get(gpu) or {}).get("uuid") or ""
            key = (str(gpu), uuid, namespace, box.get("pod") or "", box.get("name") or "", owner)
            found[key] = found.get(key, 0.0) + 1.0
        yield from found.items()


def _second(row: dict[str, Any], looks: dict[str, int], *, alone: bool) -> dict[str, float]:
    used = row["utilisation"]
    if used is None:
        return {"unknown": 1.0}
    held = min(1.0, sum(row[name] or 0 for name in _SLOWED) / 1e9)
    busy = max(0.0, min(1.0, used / 100)) * (1 - held)
    found = {"throttled": held, "busy" if alone else "unknown": busy}
    rest, many = 1.0 - held - busy, sum(looks.values())
    weight = min(1.0, many / LOOKS_OF_A_SECOND) / many if many else 0.0
    for state, count in looks.items():
        found[state] = found.get(state, 0.0) + rest * weight * count
    found["unknown"] = found.get("unknown", 0.0) + max(0.0, rest * (1.0 - weight * many))
    return {state: value for state, value in found.items() if value > 0}


def _state(state: str | None, purpose: str | None) -> str:
    """As activity.py says it, of one look."""
    if state in ("T", "t"):
        return "stopped"
    if state == "D":
        return "storage"
    if purpose in ("data", "storage"):
        return _WAITS[purpose]
    if state == "R":
        return "host"
    return _WAITS[purpose] if purpose is not None else "unknown"


def _rows(block: Block) -> Iterator[dict[str, Any]]:
    names = block.table.names
    for values in zip(*(block.column(name) for name in names), strict=True):
        yield dict(zip(names, values, strict=True))

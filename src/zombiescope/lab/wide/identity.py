"""Who is who on the wide node: each tile's processes have pids of their own, and threads of a core its number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

_OF_A_CORE = re.compile(
    r"(ksoftirqd|migration|cpuhp|rcuc|rcuop|rcuos|rcuog|idle_inject|irq_work|backlog_napi|watchdog|kworker)/(\d+)(?=$|:)"
)
_CPU = re.compile(r"\b(cpu\s*[#:]?\s*)(\d+)\b", re.IGNORECASE)
_KEPT = 2
"""Nobody is parent of 0, 1 and 2: they are those of the fault's machine, for every tile."""


class Identity:
    """Of one tile. The fault keeps its pids."""

    def __init__(self, cores: Mapping[int, int], pids: Mapping[int, int] | None, ticks: int = 0) -> None:
        self._cores, self._pids, self._ticks = cores, pids, ticks

    def pid(self, pid: int | None) -> int | None:
        return pid if self._pids is None or not pid else self._pids.get(pid, pid)

    def parent(self, pid: int | None) -> int | None:
        return pid if pid is None or pid <= _KEPT else self.pid(pid)

    def start_ticks(self, ticks: int | None) -> int | None:
        """As old as it was when it was recorded."""
        return None if ticks is None else max(1, ticks + self._ticks)

    def comm(self, comm: str | None) -> str | None:
        if not comm or "/" not in comm:
            return comm
        return _OF_A_CORE.sub(lambda found: f"{found[1]}/{self._core(found[2])}", comm, count=1)

    def text(self, text: str | None) -> str | None:
        return text and _CPU.sub(lambda found: f"{found[1]}{self._core(found[2])}", text)

    def _core(self, cpu: str) -> int:
        return self._cores.get(int(cpu), int(cpu))

    def fields(self, text: str | None) -> str | None:
        """The fields of an event."""
        try:
            fields = json.loads(text or "")
        except ValueError:
            return text
        if not isinstance(fields, dict) or (moved := self._moved(fields)) == fields:
            return text
        return json.dumps(moved, separators=(",", ":"))

    def _moved(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: self._value(name, value) for name, value in fields.items()}

    def _value(self, name: str, value: Any) -> Any:
        if name == "cpu" and isinstance(value, int):
            return self._cores.get(value, value)
        if name == "cpus" and isinstance(value, list):
            return [self._cores.get(cpu, cpu) for cpu in value]
        return self.pid(value) if name in ("pid", "tid", "ppid") and isinstance(value, int) else value


def fresh_pids(known: Iterable[int], numbers: Iterator[int]) -> dict[int, int]:
    """A pid of the wide node for each, in their order."""
    return {pid: next(numbers) for pid in sorted(set(known)) if pid > 0}


def numbers_after(known: Iterable[int]) -> Iterator[int]:
    return count(max(known, default=0) + 1)

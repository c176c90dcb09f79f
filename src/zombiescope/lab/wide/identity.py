"""Who is who on the wide node: each tile's processes and GPUs have numbers of their own, and threads of a core its
number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from zombiescope.store import schema

_OF_A_CORE = re.compile(
    r"(ksoftirqd|migration|cpuhp|rcuc|rcuop|rcuos|rcuog|idle_inject|irq_work|backlog_napi|watchdog|kworker)/(\d+)(?=$|:)"
)
_CPU = re.compile(r"\b(cpu\s*[#:]?\s*)(\d+)\b", re.IGNORECASE)
_HEX = re.compile("[0-9a-fA-F]{4,8}")
_KEPT = 2
"""Nobody is parent of 0, 1 and 2: they are those of the fault's machine, for every tile."""


class Identity:
    """Of one tile. The fault keeps its pids, and its GPUs."""

    def __init__(
        self,
        cores: Mapping[int, int],
        pids: Mapping[int, int] | None,
        ticks: int = 0,
        *,
        gpus: Mapping[int, int] | None = None,
        ids: Mapping[str, int] | None = None,
        number: int = 0,
    ) -> None:
        """`gpus`: number of the recording -> of the wide node; `ids`: what is added to ids, by their kind; `number`: of
        the tile."""
        self._cores, self._pids, self._ticks = cores, pids, ticks
        self._gpus, self._ids, self._number = gpus or {}, ids or {}, number

    def row(self, table: schema.Table, row: Mapping[str, Any], at_us: int) -> dict[str, Any]:
        """A row of any table as it is on the wide node, by what its columns mean. `at_us`: its new time; other times in
        it move with that one. Raises KeyError for ids that nobody gave a range."""
        shift_us = at_us - row[str(table.time_column)]
        return {column.name: self._moved_cell(column, row[column.name], shift_us) for column in table.columns}

    def _moved_cell(self, column: schema.Column, value: Any, shift_us: int) -> Any:
        if value is None:
            return None
        if column.kind == "time":
            return value + shift_us
        if column.ids:
            first = self._ids[column.ids]
            return [each + first for each in value] if column.kind == "ints" else value + first
        if column.name == "comm":
            return self.comm(value)
        made: dict[str | None, Callable[[Any], Any]] = {
            "pid": self.pid, "ticks": self.start_ticks, "cpu": self._core, "gpu": self.gpu
        }  # fmt: skip
        return made[column.meaning](value) if column.meaning in made else value

    def gpu(self, gpu: int) -> int:
        return self._gpus.get(gpu, gpu)

    def card(self, text: str | None) -> str | None:
        """The uuid of a GPU, or its address on the bus: two tiles have two cards."""
        if not text or not self._number:
            return text
        domain, colon, rest = text.partition(":")
        if colon and _HEX.fullmatch(domain):
            return f"{int(domain, 16) + self._number:04x}:{rest}"
        return f"{text}-{self._number}"

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
        return _OF_A_CORE.sub(lambda found: f"{found[1]}/{self._core(int(found[2]))}", comm, count=1)

    def text(self, text: str | None) -> str | None:
        return text and _CPU.sub(lambda found: f"{found[1]}{self._core(int(found[2]))}", text)

    def _core(self, cpu: int) -> int:
        return self._cores.get(cpu, cpu)

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
        if name in ("cpu", "gpu") and isinstance(value, int):
            return self._core(value) if name == "cpu" else self.gpu(value)
        if name == "cpus" and isinstance(value, list):
            return [self._core(cpu) for cpu in value]
        if name in ("uuid", "pci") and isinstance(value, str):
            return self.card(value)
        return self.pid(value) if name in ("pid", "tid", "ppid") and isinstance(value, int) else value


def fresh_pids(known: Iterable[int], numbers: Iterator[int]) -> dict[int, int]:
    """A pid of the wide node for each, in their order."""
    return {pid: next(numbers) for pid in sorted(set(known)) if pid > 0}


def numbers_after(known: Iterable[int]) -> Iterator[int]:
    return count(max(known, default=0) + 1)

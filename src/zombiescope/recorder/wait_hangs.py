"""What hangs now, as the recorder tells it: an event when tasks have waited too long, and one when they go on.

The rule is that of the diagnosis (store/hangs.py); this only remembers what was told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zombiescope.store.event import Event
from zombiescope.store.hangs import hangs, thing

KIND = "tasks_wait"
MOST = 64
OVER_US = 25_000_000
"""Not found again for this long: two looks and more."""


@dataclass(slots=True)
class Hang:
    what: str
    since_us: int
    last_us: int
    tasks: int
    comms: tuple[str, ...]
    fields: dict[str, Any]
    told: bool = False

    def text(self) -> str:
        who = f"{self.tasks} tasks wait" if self.tasks != 1 else f"{self.comms[0]} waits"
        named = f" ({', '.join(self.comms)})" if self.tasks != 1 else ""
        return f"{who} for {self.what} since {(self.last_us - self.since_us) / 1e6:.0f} s{named}"


class Hangs:
    def __init__(self) -> None:
        self._known: dict[str, Hang] = {}

    @property
    def any(self) -> bool:
        return bool(self._known)

    @property
    def now(self) -> list[str]:
        return list(self._known)

    def look(self, now_us: int, tasks: list[dict[str, Any]]) -> None:
        """What the helper found at one look."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for each in tasks:
            moves, is_kernel = each.get("moves"), bool(each.get("kernel_thread"))
            if hangs(each.get("kind"), float(each["age_s"]), moves, kernel_thread=is_kernel):
                groups.setdefault(thing(each.get("kind"), each.get("resource")), []).append(each)
        for what, alike in list(groups.items())[:MOST]:
            self._note(now_us, what, alike)

    def _note(self, now_us: int, what: str, alike: list[dict[str, Any]]) -> None:
        first = alike[0]
        since_us = now_us - int(max(float(each["age_s"]) for each in alike) * 1e6)
        comms = tuple(sorted({str(each["comm"]) for each in alike}))[:4]
        fields = {"resource": first.get("resource"), "waits_for": first.get("kind"), "wchan": first.get("wchan")}
        count = max(len(alike), int(first.get("alike") or 0))
        known = self._known.get(what)
        told, since_us = (known.told, min(known.since_us, since_us)) if known else (False, since_us)
        self._known[what] = Hang(what, since_us, now_us, count, comms, fields, told)

    def events(self, now_us: int) -> Iterator[Event]:
        for what, hang in list(self._known.items()):
            if not hang.told:
                hang.told = True
                fields = {**hang.fields, "tasks": hang.tasks, "since_us": hang.since_us}
                yield Event(now_us, KIND, "recorder", "warning", hang.text(), fields)
            elif now_us - hang.last_us > OVER_US:
                del self._known[what]
                lasted_s = (hang.last_us - hang.since_us) / 1e6
                text = f"nobody waits for {what} any more, after {lasted_s:.0f} s or some more"
                yield Event(now_us, KIND, "recorder", "info", text, hang.fields)

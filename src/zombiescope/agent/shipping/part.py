"""The section `shipping` and its service: looks whether there is something to send, and starts the process that sends.

Looking costs a listing of a few directories (log/, frozen/, the dates), every two seconds. The process
(store/shipping/worker.py) ends when nothing is left, so that a quiet node pays nothing for it.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.agent import worker
from zombiescope.agent.config.setting import Duration, Size, setting
from zombiescope.agent.service import Context, Service
from zombiescope.agent.tally import Family
from zombiescope.base.errors import QuestionError
from zombiescope.store import incident_file
from zombiescope.store.shipping.policy import ShippingPolicy, backoff_s

MODULE = "zombiescope.store.shipping.worker"
LOOK_S = 2.0
ROLLUPS_S = 3600
SILENCE_S = 300.0
"""A round that takes longer than this without a word hangs."""
SENT, LOST, WAITING = (
    "zombiescope_shipping_bytes_total", "zombiescope_shipping_lost_bytes_total", "zombiescope_shipping_units_waiting",
)  # fmt: skip
FAILURES = "zombiescope_shipping_failures_total"
FAMILIES = (
    Family(SENT, "counter", "Bytes that the target has taken."),
    Family(LOST, "counter", "Bytes that were given up because the spool was full."),
    Family(WAITING, "gauge", "Parts and segments that wait for the target."),
    Family(FAILURES, "counter", "How often the target could not be reached or refused."),
)
_USUAL = ShippingPolicy()
_NEVER, _SPOOL, _EVERY = Duration(0.0), Size(_USUAL.spool_bytes), Duration(_USUAL.every_s)


@dataclass(frozen=True, slots=True)
class ShippingSection:
    """What is recorded, copied off the node."""

    target: str | None = setting(
        None, "s3://bucket/prefix, gs://, abfs://, or a directory. Default: nothing leaves the node."
    )
    what: str = setting(
        _USUAL.what,
        "incidents: frozen windows, at once, and the rollups. everything: every segment too, as it is closed.",
        choices=("incidents", "everything"),
    )
    sample: float = setting(
        0.1,
        "Share of days on which to send an ordinary two-minute segment, with which a fleet report compares sick nodes.",
        low=0, high=1,
    )  # fmt: skip
    redact: bool = setting(False, "Replace users, hosts, paths and command lines before anything leaves the node.")
    keep: Duration = setting(
        _NEVER, "Delete shipped files at the target after this time; 0s: keep them.", low=0, high=1e9
    )
    spool: Size = setting(_SPOOL, "Space for files that retention deleted while the target was away.", low=0, high=1e15)
    verify: str = setting(
        _USUAL.verify, "What to check at the target after each file.", choices=("none", "size", "read")
    )
    every: Duration = setting(_EVERY, "How often to send more during an incident.", low=1, high=3600)

    def policy(self) -> ShippingPolicy:
        """Raises QuestionError."""
        return ShippingPolicy(
            target=self.target or "", sample=self.sample, redact=self.redact, keep_days=self.keep / 86_400,
            what=self.what,  # type: ignore[arg-type] # checked by its choices
            spool_bytes=self.spool, verify=self.verify, every_s=self.every,  # type: ignore[arg-type] # likewise
        )  # fmt: skip

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        try:
            self.policy()
        except QuestionError as error:
            yield f"shipping.{error.option}", error.what, error.fix


def services(section: ShippingSection) -> Sequence[Service]:
    return (ShippingService(section.policy()),) if section.target else ()


@dataclass(slots=True)
class ShippingService:
    policy: ShippingPolicy
    name: str = "shipping"
    look_s: float = LOOK_S
    _failures: int = 0
    """Runs in a row that ended with the target away."""
    _failed: bool = False
    _listed: object = None
    _sent: object = None
    """What was there before the last round that the process told of: that round has sent it."""

    def run(self, context: Context, stop: threading.Event) -> None:
        context.say("ok", "")
        context.beat(self.look_s)
        while not stop.is_set():
            if context.node_dir.is_dir() and (self._failures or self._state(context.node_dir) != self._sent):
                self._failed = False
                self._ship(context, stop)
                self._failures = self._failures + 1 if self._failed else 0
            wait_s = backoff_s(4 + self._failures) if self._failures else self.look_s
            context.beat(wait_s)
            stop.wait(wait_s)

    def _ship(self, context: Context, stop: threading.Event) -> None:
        state = context.node_dir.parent / "shipping"
        context.beat(worker.LIMIT_S + SILENCE_S)
        worker.run(
            MODULE, [str(context.node_dir), str(state)], self.policy.to_dict(), lambda said: self._said(context, said),
            stop, SILENCE_S,
        )  # fmt: skip

    def _said(self, context: Context, said: dict[str, Any]) -> None:
        context.beat(worker.LIMIT_S + SILENCE_S)
        if "failure" in said:
            self._failed = True
            context.count(FAILURES)
            # The time until the next try is left out: the same words are said once.
            context.say("degraded", str(said["failure"]))
            return
        self._failed = False
        context.worked()
        self._sent, self._listed = self._listed, self._state(context.node_dir)
        context.count(SENT, int(said.get("bytes", 0)))
        context.count(LOST, int(said.get("dropped_bytes", 0)))
        context.tally.set(WAITING, float(said.get("waiting", 0)))
        notes = said.get("notes")
        context.say(*(("degraded", str(notes[0])) if isinstance(notes, list) and notes else ("ok", "")))

    def _state(self, node_dir: Path) -> object:
        """What tells that there may be something to send, without opening a file. Rollups grow every minute, and are
        sent once an hour, also by a node that has nothing else to say; ten thousand nodes do so at different minutes.
        """
        more = [] if self.policy.what == "incidents" else ["log", *_dates(node_dir)]
        folders = ["frozen", "rollup", *more]
        hour = int((time.time() + zlib.crc32(node_dir.name.encode()) % ROLLUPS_S) // ROLLUPS_S)
        return hour, [_listed(node_dir / name) for name in folders], _changed(node_dir / incident_file.NAME)


def _dates(node_dir: Path) -> list[str]:
    with suppress(OSError):
        return sorted(path.name for path in node_dir.iterdir() if path.name.startswith("date="))
    return []


def _listed(folder: Path) -> list[str]:
    with suppress(OSError):
        return sorted(path.name for path in folder.iterdir())
    return []


def _changed(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0

"""Network cards: transmit queues that time out, by tracepoint, and statistics, read in a thread of their own.

An ethtool ioctl takes the kernel's rtnl lock, and on a node that tears down network namespaces that lock may be held
for seconds. The loop must not wait for it: it takes the newest figures that are there. While the reader hangs there
are none, and after STUCK_S that is a missing source."""

from __future__ import annotations

import threading
import time

from zombiescope.kernel.ethtool import Driver, Ethtool
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord
from zombiescope.store.event import Event

STUCK_S = 10.0
EVERY_S = 10.0
"""Drivers answer from firmware under the rtnl lock: CNI, `ip route` and every start of a pod wait behind them."""
RTNL_SHARE = 0.002
"""Of the time, so much may be spent asking, by the time that the calls took: a card that takes 100 ms is asked every
fifty seconds."""
LONGEST_S = 300.0


class NicStatistics:
    """Asks on demand and keeps the last answer."""

    def __init__(self) -> None:
        self._ethtool = Ethtool()
        self._wanted: tuple[str, ...] = ()
        self._asked_s: float | None = None
        self._answer: dict[str, dict[str, int]] | None = None
        self._wake = threading.Event()
        self._failure: Exception | None = None
        self._stopped = False
        self._next_s = 0.0
        self.took_s = 0.0
        """How long the last reading took, all cards together."""
        self.readings = 0
        self.read_at: float | None = None
        """Unix time."""
        threading.Thread(target=self._work, name="nic", daemon=True).start()

    def ask(self, cards: tuple[str, ...]) -> None:
        """Starts the next reading, unless one is under way."""
        now_s = time.monotonic()
        if self._asked_s is None and cards and now_s >= self._next_s:
            self._wanted, self._asked_s = cards, now_s
            self._wake.set()

    def take(self) -> dict[str, dict[str, int]] | None:
        """Card -> counters of the last reading, once; None when there is nothing new. Raises what the last reading
        raised, until one is whole."""
        if self._failure is not None:
            raise self._failure
        answer, self._answer = self._answer, None
        return answer

    @property
    def pause_s(self) -> float:
        """From one reading to the next: EVERY_S, or as long as the last one makes it."""
        return min(LONGEST_S, max(EVERY_S, self.took_s / RTNL_SHARE))

    @property
    def stuck_s(self) -> float | None:
        """How long a reading has been hanging, if it is too long."""
        asked = self._asked_s
        waited = 0.0 if asked is None else time.monotonic() - asked
        return waited if waited > STUCK_S else None

    @property
    def why(self) -> str | None:
        """Why no card can be asked at all."""
        return None if self._ethtool.is_open else self._ethtool.why

    def driver(self, card: str) -> Driver | None:
        """For the start only: this one waits."""
        return self._ethtool.driver(card)

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopped:
                self._ethtool.close()  # here, where nothing reads with it
                return
            began_s = time.monotonic()
            try:
                read = {card: self._ethtool.statistics(card) for card in self._wanted}
                self._answer = {card: figures for card, figures in read.items() if figures}
                self._failure = None
                self.readings += 1
                self.read_at = time.time()
            except Exception as error:  # noqa: BLE001 - raised again where the loop takes the answer
                self._failure = error
            self.took_s = time.monotonic() - began_s
            self._next_s = began_s + self.pause_s
            self._asked_s = None

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()


def _tx_timeout(record: TraceRecord, fields: Fields, wall_us: int) -> tuple[Event]:
    raw = record.raw
    name, driver, queue = fields["name"].text(raw), fields["driver"].text(raw), fields["queue_index"].number(raw)
    text = f"{driver} {name}: transmit queue {queue} timed out"
    facts = {"interface": name, "driver": driver, "queue": queue, "cpu": record.cpu}
    return (Event(wall_us, "nic_tx_timeout", "tracepoint", "critical", text, facts),)


TX_TIMEOUT = Tracepoint("net", "net_dev_xmit_timeout", _tx_timeout)

"""Network cards: the reader's thread may hang or fail, and a transmit queue that times out is an event."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from zombiescope.kernel.tracefs import parse
from zombiescope.recorder import nic as module
from zombiescope.recorder.nic import TX_TIMEOUT, NicStatistics
from zombiescope.recorder.tracepoints import TraceRecord

DEADLINE_S = 10.0

FORMAT = b"""\
name: net_dev_xmit_timeout
ID: 1
format:
\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] driver;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int queue_index;\toffset:16;\tsize:4;\tsigned:1;
"""


@pytest.fixture
def statistics(monkeypatch: pytest.MonkeyPatch) -> Iterator[NicStatistics]:
    def read(card: str) -> dict[str, int]:
        if card == "odd":
            raise ValueError("an odd string set")
        return {"rx_errors": 3}

    monkeypatch.setattr(module, "Ethtool", lambda: SimpleNamespace(statistics=read, close=lambda: None))
    made = NicStatistics()
    yield made
    made.stop()


def taken(statistics: NicStatistics) -> Any:
    end = time.monotonic() + DEADLINE_S
    while (answer := statistics.take()) is None:
        assert time.monotonic() < end
        time.sleep(0.001)
    return answer


def test_an_answer_is_taken_once(statistics: NicStatistics) -> None:
    statistics.ask(("eth0",))
    assert taken(statistics) == {"eth0": {"rx_errors": 3}}
    assert statistics.take() is None


def test_what_a_reading_raised_is_raised_until_one_is_whole(statistics: NicStatistics) -> None:
    statistics.ask(("eth0", "odd"))
    for _ in range(2):
        with pytest.raises(ValueError, match="an odd string set"):
            taken(statistics)
    assert statistics.stuck_s is None
    statistics._next_s = 0.0  # ten seconds later
    statistics.ask(("eth0",))
    end = time.monotonic() + DEADLINE_S
    while statistics._failure is not None and time.monotonic() < end:
        time.sleep(0.001)
    assert taken(statistics) == {"eth0": {"rx_errors": 3}}


def test_a_transmit_queue_that_times_out_is_critical() -> None:
    raw = b"\0" * 8 + (20 | 5 << 16).to_bytes(4, "little") + (25 | 4 << 16).to_bytes(4, "little")
    raw += (7).to_bytes(4, "little") + b"eth0\0ena\0"
    record = TraceRecord(1, 0, 39, 0, 0, raw)
    [event] = TX_TIMEOUT.handle(record, parse(FORMAT).fields, 5)
    assert (event.at_us, event.kind, event.severity) == (5, "nic_tx_timeout", "critical")
    assert event.text == "ena eth0: transmit queue 7 timed out"
    assert event.fields == {"interface": "eth0", "driver": "ena", "queue": 7, "cpu": 39}


def test_cards_are_asked_every_ten_seconds_and_less_often_where_that_takes_long(statistics: NicStatistics) -> None:
    """The calls hold the rtnl lock, and CNI waits behind them."""
    statistics.ask(("eth0",))
    taken(statistics)
    statistics.ask(("eth0",))  # a second later: nothing is under way, and nothing is due
    assert statistics._asked_s is None
    assert statistics.pause_s == module.EVERY_S
    statistics.took_s = 0.1  # mlx5 answers from firmware: a tenth of a second for all cards
    assert statistics.pause_s == pytest.approx(50)
    statistics.took_s = 10.0
    assert statistics.pause_s == module.LONGEST_S

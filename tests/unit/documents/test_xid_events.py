"""A list of events says what a code of a GPU's driver means and who is to blame, in every face."""

from __future__ import annotations

from datetime import UTC, datetime

from zombiescope.cli.events import _line
from zombiescope.documents.events import event
from zombiescope.store.event import Event

TEXT = "NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus."
LOST = Event(1_000_000, "gpu_xid", "kmsg", "critical", TEXT, {"gpu": "0000:81:00", "xid": 79})


def test_a_code_has_its_meaning_beside_the_line_as_it_was_printed() -> None:
    document = event(LOST)
    assert document["text"] == TEXT
    assert document["means"] == "Xid 79: the GPU fell off the bus; to blame is power, heat or the PCIe slot"
    printed = _line(LOST, datetime.fromtimestamp(1, UTC), 200).plain
    assert [line.strip() for line in printed.splitlines()][1:] == [document["means"]]


def test_what_is_said_in_words_and_what_nobody_knows_have_none() -> None:
    assert "means" not in event(Event(1, "gpu_xid", "kmsg", "critical", "x", {"xid": 999}))
    assert "means" not in event(Event(1, "mark", "mark", "info", "x", {"xid": 79}))

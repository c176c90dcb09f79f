"""Lines of the NVIDIA driver as its generations print them, written after the format strings of its source."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zombiescope.kernel.kmsg import parse
from zombiescope.kernel.log_formats import classify, event_of
from zombiescope.kernel.pci_address import device

_LOGS = Path(__file__).parents[2] / "fixtures" / "nvidia-log"


def _lines() -> list[Any]:
    found = []
    for path in sorted(_LOGS.glob("*.txt")):
        lines = path.read_text().splitlines()
        pairs = zip(lines[::2], lines[1::2], strict=True)
        found += [pytest.param(text, json.loads(known), id=f"{path.stem}: {text[:60]}") for text, known in pairs]
    return found


@pytest.mark.parametrize(("text", "known"), _lines())
def test_a_line_of_the_driver_as_the_kernel_hands_it_on(text: str, known: dict[str, Any]) -> None:
    record = parse(f"3,1,1000,-;{text}\n".encode())
    assert record is not None
    event = event_of(record)
    assert event is not None
    said = {name: value for name, value in event.fields.items() if name != "message"}
    assert {"kind": event.kind, "severity": event.severity, **said} == known


HOSTILE = (
    "a, Fatal XC0 i0", "x): 79, GPU", "pid=1, name=sh", "RST: Yes, D-RST", "to 0x2 (Reboot)",
    ", ", "\x1b[2J", "<unknown",
)  # fmt: skip


@pytest.mark.parametrize("comm", HOSTILE)
def test_a_process_cannot_choose_its_code_or_its_severity_by_its_name(comm: str) -> None:
    assert len(comm) <= 15
    for code, rest, known in (
        (145, "RLW_CTRL Nonfatal XC0 i0 Link 01 (0x00000004)", ("fatal", 0)),
        (94, "Contained: CE User Channel (0x9). RST: No, D-RST: No", ("reset", 0)),
    ):
        found = classify(f"NVRM: Xid (PCI:0000:81:00): {code}, pid=7, name={comm}, {rest}")
        assert found is not None
        assert (found.fields["xid"], found.fields["gpu"], found.fields["pid"]) == (code, "0000:81:00", 7)
        assert (known[0], found.fields[known[0]]) == known


@given(st.text(string.ascii_letters + string.digits + " ,:()='<>x0", max_size=300))
def test_whatever_stands_behind_the_code_is_bounded(rest: str) -> None:
    found = classify(f"NVRM: Xid (PCI:0000:81:00): 145, {rest}")
    assert found is None or all(len(str(value)) <= 300 for value in found.fields.values())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:81:00", "0000:81:00"),
        ("0000:81:00.0", "0000:81:00"),
        ("00000000:81:00.0", "0000:81:00"),
        ("PCI:0000:81:00", "0000:81:00"),
        ("0000:01:00 GPU-I:05 GPU-CI:02", "0000:01:00"),
        ("00000008:01:00.0", "0008:01:00"),
        ("0000:C3:00.0", "0000:c3:00"),
        ("0001:00", "0000:01:00"),
        ("a GPU", None),
        ("", None),
        (None, None),
    ],
)
def test_one_device_has_one_address(text: str | None, address: str | None) -> None:
    assert device(text) == address

"""The page of a check: it fits, the verdict is first, nothing that matters gives way, and it reads without colour."""

from __future__ import annotations

from datetime import UTC
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console
from tests.helpers.recordings import write_recording
from tests.unit.diagnosis.check.looks import checked, core

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.surroundings import Surroundings
from zombiescope.audit.surroundings.defunct import Defunct, Parent
from zombiescope.audit.surroundings.quotas import Throttled
from zombiescope.base.missing import Missing
from zombiescope.cli.check.document import document
from zombiescope.cli.check.screen import compose
from zombiescope.cli.check.window import picture
from zombiescope.diagnosis.check.check import Audited, Check
from zombiescope.diagnosis.check.examine import examine
from zombiescope.query.recent import Recent
from zombiescope.store import schema
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.reader import open_recording

AROUND = Surroundings(
    defunct=Defunct(7, 5, (Parent(812, "containerd-shim", 4), Parent(1, "systemd", 1)), 812, others_hidden=False),
    throttled=(Throttled("/kubepods/burstable/pod7b0f9a52-11aa-4c0e-9e9b-2f1d7c4f6c11", 2.0, 100, 44, 3.1),),
    missing=(Missing("kernel log since boot", "/dev/kmsg: Operation not permitted", "CAP_SYSLOG"),),
)
AUDIT = Audited(
    tuple(
        Finding(f"a{place}", "restart", "ecs.service", severity, f"reason {place}", (EvidenceLine("/x", 1, "y"),), ())
        for place, severity in enumerate(("critical", "warning", "warning", "info", "info"))
    )
)


@cache
def founding(cpus: int) -> Check:
    with TemporaryDirectory() as place:
        write_recording(place, cpus=cpus, seconds=12, busy=0.1)
        with open_recording(Path(place)) as recording:
            check = examine(recording, AROUND, AUDIT)
    assert check is not None
    return check


def page(check: Check, width: int, height: int | None) -> list[str]:
    lines = compose(check, UTC, width, height)
    assert all(line.cell_len <= width for line in lines)
    return [line.plain.rstrip() for line in lines]


@pytest.mark.parametrize("cpus", [1, 2, 4, 5, 96, 192])
@pytest.mark.parametrize(("width", "height"), [(80, 23), (80, 12), (40, 30), (120, 40), (250, 60)])
def test_it_fits(cpus: int, width: int, height: int) -> None:
    lines = page(founding(cpus), width, height)
    assert len(lines) <= height
    assert lines[0].startswith(" zombiescope check  lab")
    assert lines[1].startswith(f" CRITICAL  core {cpus - 1} at 100% ")


def test_at_80_by_24_every_subject_and_the_saturated_core_of_192_are_seen() -> None:
    lines = page(founding(192), 80, 23)
    labels = {line[1:11].strip() for line in lines[1:]}
    subjects = {"cores", "pressure", "memory", "cgroups", "network", "units", "audit", "defunct", "blind to"}
    assert subjects <= labels
    # what else was found stays, while the audit, which can be asked again, has given way to its worst
    assert sum(line[:1] in ("✗", "!") and not line[1:11].strip() for line in lines) == 4
    assert lines[-4].startswith("✗ audit    critical: ecs.service: reason 0")
    # one character a core, the last of them full
    rows = [line for line in lines if line.split() and line.split()[0] in ("0", "64", "128")]
    assert [len(line.split()[1]) for line in rows] == [64, 64, 64]
    assert "█" not in rows[0] + rows[1]
    assert rows[2].endswith("█")


def test_into_a_file_everything_is_printed() -> None:
    text = " ".join(" ".join(page(founding(192), 80, None)).split())
    for part in (
        "nic_reset: ena 0000:20:03.0 eth0: TX q 5 is paused for too long (threshold 5000000)",
        "68,681 memory cgroups tracked (v1), 240 in use, 68,441 dying",
        "(extrapolated: +300 an hour)",
        "/ecs/*: 1 made, 1 removed, 0 released, by amazon-ecs-agen [7001] ecs.service",
        "costly: one read of the root's memory statistics costs about 4.8 s",
        "critical: ecs.service: reason 0",
        "and 2 more: 'zombiescope audit' has them all",
        "4 left by containerd-shim (pid 812); they are another kind of zombie than dying cgroups",
        "in 44 of 100 periods",
        "CAP_SYSLOG",
        "all 192, each in its worst second:",
    ):
        assert part in text


def test_marks_hold_without_colour() -> None:
    marks = {line[1:11].strip(): line[0] for line in page(founding(2), 80, 40)[1:] if line[1:11].strip()}
    assert (marks["cores"], marks["units"], marks["memory"], marks["audit"]) == ("✗", "!", " ", "✗")


def test_a_quiet_node_says_so_and_on_how_much_that_rests(tmp_path: Path) -> None:
    lines = page(checked(tmp_path, audit=Audited(running={})), 80, 23)
    assert lines[1].startswith(" OK        no problems in 10 s (")
    assert not [line for line in lines if line[:1] in ("✗", "!")]


def test_a_quiet_node_that_was_not_wholly_seen_is_not_simply_fine(tmp_path: Path) -> None:
    lacking = [{"source": "stack samples", "why": "denied", "grant": "CAP_PERFMON"}]
    lines = page(checked(tmp_path, audit=Audited(running={}), missing=lacking), 80, 23)
    assert lines[1].startswith(" OK?       no problems in 10 s (12 of 14 sources")


@pytest.mark.parametrize(("cpus", "width"), [(1, 30), (2, 80), (192, 80), (192, 250)])
def test_what_is_shown_meanwhile_fits(cpus: int, width: int) -> None:
    recent = Recent()
    at_us = 1_760_000_000_000_000
    for second in range(5):
        rows = [core(second, cpu, system=1000 if cpu == cpus - 1 else 0) for cpu in range(cpus)]
        block = Block(
            schema.CORES, cpus, dict(zip(schema.CORES.names, map(list, zip(*rows, strict=True)), strict=True))
        )
        recent.update(LogFrame(at_us + second * 1_000_000, 0, (block,), False))
    for left_s in (10.0, 4.2, 0.0):
        lines = picture("lab", recent, left_s, 10.0, Console(width=width)).plain.splitlines()
        assert max(map(len, lines[1:])) <= width
        assert ("reading" in lines[0]) == (left_s == 0)
        assert lines[2].startswith(f" core {cpus - 1}")
    assert sum(line[11:].count("█") for line in lines[3:]) == 1


def test_the_document_has_what_was_promised(tmp_path: Path) -> None:
    made = document(founding(4))
    assert {"cores", "cgroups", "pressure", "findings", "missing"} <= set(made)
    assert [core["cpu"] for core in made["cores"]] == [0, 1, 2, 3]
    assert made["cores"][3]["longest_saturation_s"] == 6.0
    assert made["cores"][3]["hog"]["unit"] == "kubelet.service"
    first, *_, last = made["findings"]
    assert (first["source"], first["rule"], first["severity"]) == ("check", "core-saturated", "critical")
    assert last["severity"] == "info"
    assert {finding["source"] for finding in made["findings"]} == {"check", "audit"}
    assert made["verdict"] == {"severity": "critical", "text": first["why"]}
    assert made["log_since_boot"] is None
    assert made["pressure"]["irq"] == {"some": None, "full": None}
    assert made["cgroups"]["growth"]["dying_per_hour_extrapolated"] == 300.0

"""A made fleet: who has which labels, who is sick, and everybody's files.

    python -m benchmarks.fleets.nodes DIR --nodes 1000 --hours 24 [--seed 1] [--no-cause] [--rollups-only]

A planted cause makes most of the nodes sick whose labels are all as it says, and hardly any other. Beside it there are
labels that mean nothing (rack, team, batch), one that is different on every node (asset), and faults that happen
anywhere. Without a planted cause only the last are left: whatever a report then finds is chance.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fleets import days, windows
from benchmarks.fleets.days import Sickness
from benchmarks.fleets.faults import OTHERS, ZOMBIES, Fault

START_US = 1_775_001_600_000_000
"""2026-04-01 00:00:00 UTC."""
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
KERNELS = {"v11": "5.4.0-1024-aws", "v12": "5.4.0-1024-aws", "v13": "5.15.0-1051-aws", "v14": "5.15.0-1060-aws"}
_POOL = 24


@dataclass(frozen=True, slots=True)
class Plant:
    labels: tuple[tuple[str, str], ...] = (("image", "v14"), ("zone", "us-east-1a"))
    rate: float = 0.9
    """Of the nodes with those labels."""
    stray: float = 0.01
    """Of the others."""
    fault: Fault = ZOMBIES
    unit: str | None = "ecs.service"
    """Which runs where the labels are so."""


@dataclass(frozen=True, slots=True)
class Fleet:
    nodes: int = 100
    hours: int = 24
    seed: int = 1
    plant: Plant | None = field(default_factory=Plant)
    background: float = 0.04
    """Of all nodes, that have some other fault."""
    compare: float = 0.02
    """Of the healthy nodes, of which somebody froze a window."""
    rollups_only: bool = False
    old_labels: bool = False
    """Rollups as versions wrote them that did not say labels."""


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    labels: dict[str, str]
    kernel: str
    sickness: Sickness | None
    extra_unit: str | None
    up_s: float | None = None
    """At the start of the recording; None: not recorded."""
    diagnosed: bool = True
    """Whether the live diagnosis ran."""


def machines(fleet: Fleet) -> list[Machine]:
    rng = random.Random(fleet.seed)
    return [_machine(fleet, rng, number) for number in range(fleet.nodes)]


def _machine(fleet: Fleet, rng: random.Random, number: int) -> Machine:
    image = rng.choice(tuple(KERNELS))
    labels = {
        "zone": f"us-east-1{rng.choice('abc')}", "image": image,
        "instance_type": rng.choice(("p4d.24xlarge", "p5.48xlarge", "g5.48xlarge")),
        "rack": f"r{rng.randrange(20):02d}", "team": rng.choice(("vision", "speech", "llm", "ads", "search", "infra")),
        "batch": f"b{rng.randrange(8)}", "asset": f"A{number:06d}",
    }  # fmt: skip
    plant = fleet.plant
    exposed = plant is not None and all(labels[key] == value for key, value in plant.labels)
    sickness = None
    if plant is not None and rng.random() < (plant.rate if exposed else plant.stray):
        sickness = _sickness(rng, plant.fault, fleet.hours)
    elif rng.random() < fleet.background:
        sickness = _sickness(rng, rng.choice(OTHERS), fleet.hours)
    extra = plant.unit if plant is not None and (exposed or (sickness and sickness.fault is plant.fault)) else None
    return Machine(f"ip-10-{number >> 8}-{number & 255}", labels, KERNELS[image], sickness, extra)


def _sickness(rng: random.Random, fault: Fault, hours: int) -> Sickness:
    minutes = hours * 60
    since = rng.randrange(_POOL // 2) * minutes // _POOL
    lost = sorted({min(minutes - 2, since + 5 + each * max(1, minutes // 40)) for each in range(rng.choice((1, 2, 3)))})
    return Sickness(fault, since, tuple(lost))


def write(fleet: Fleet, root: Path) -> list[Machine]:
    """Every node's files. What is there already stays: a node is written whole or not at all."""
    found = machines(fleet)
    write_machines(fleet, found, root)
    return found


def write_machines(fleet: Fleet, found: list[Machine], root: Path) -> None:
    for number, machine in enumerate(found):
        node_dir = root / f"node={machine.name}"
        if not (node_dir / "node.json").exists():
            _write(fleet, machine, number, node_dir)


def _write(fleet: Fleet, machine: Machine, number: int, node_dir: Path) -> None:
    boot = f"boot-{number % _POOL:04d}" if machine.up_s is None else f"boot-{machine.name}"
    booted_us = None if machine.up_s is None else START_US - round(machine.up_s * 1e6)
    files: dict[str, bytes] = {}
    for day in range(-(-fleet.hours // 24)):
        start_us, minutes = START_US + day * DAY_US, min(24, fleet.hours - day * 24) * 60
        about = (start_us, minutes, number % _POOL, boot, machine.sickness, machine.extra_unit)
        body = days.body(*about) if booted_us is None else days.body(*about, booted_us=booted_us)
        labels = None if fleet.old_labels else machine.labels
        files[f"rollup/{start_us:016d}.seg"] = days.header(start_us, boot, labels, machine.kernel) + body
    if machine.diagnosed:
        files["incidents.json"] = _incidents(machine)
    if not fleet.rollups_only:
        files |= _windows(fleet, machine, number, boot)
    files["node.json"] = json.dumps(_node(machine, boot)).encode()
    for name, data in files.items():
        path = node_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _windows(fleet: Fleet, machine: Machine, number: int, boot: str) -> windows.Files:
    files: windows.Files = {}
    if machine.sickness is not None:
        for minute in machine.sickness.minutes:
            files |= windows.parquet(START_US + minute * 60_000_000, "boot", machine.sickness.fault, minute % 3)
    elif (number * 2654435761 >> 7) % 1000 < fleet.compare * 1000:
        files |= windows.parquet(START_US + (number % 4) * HOUR_US, boot, None, number % 4)
    return files


def _node(machine: Machine, boot: str) -> dict[str, Any]:
    return {
        "format": "zombiescope.recording/1", "node": machine.name, "kernel": machine.kernel, "boot": boot,
        "labels": machine.labels, "hz": windows.HZ, "interval_s": 1, "started_us": START_US, "timezone": "UTC",
        "cpus": {"online": list(range(days.CORES)), "possible": days.CORES}, "missing": [],
        "diagnosed": machine.diagnosed,
    }  # fmt: skip


def _incidents(machine: Machine) -> bytes:
    sickness = machine.sickness
    found = [] if sickness is None else [_incident(machine, sickness, minute) for minute in sickness.minutes]
    return json.dumps({"at": START_US / 1e6, "incidents": found}).encode()


def _incident(machine: Machine, sickness: Sickness, minute: int) -> dict[str, Any]:
    fault, at = sickness.fault, START_US / 1e6 + minute * 60 + 7
    actor = {"comm": fault.hog, "unit": f"{fault.hog}.service", "pid": 200}
    losses = [{"gpu": gpu, "seconds_lost": 6.0} for gpu in range(8)]
    return {
        "id": f"{zlib.crc32(f'{machine.name} {minute}'.encode()):010x}", "node": machine.name,
         "from": at, "to": at + 6.4,
        "state": "closed", "severity": fault.severity, "cost": {"gpu_seconds_lost": 48.0, "gpus": losses},
        "symptoms": [{"kind": "core_saturated", "at": at, "cpu": 1, "seconds": 6.0, "text": "core 1 was lost"}],
        "causes": [{
            "pattern": fault.pattern, "proof": "kernel", "confidence": 0.9,
            "summary": f"{fault.hog} in {fault.frames[-1]}",
            "hog": actor, "culprit": {"comm": None, "unit": fault.culprit}, "frames": list(fault.frames), "chain": [],
            "fix": {"summary": "", "steps": []},
        }],
        "ruled_out": [],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-cause", action="store_true", help="only chance")
    parser.add_argument("--rollups-only", action="store_true", help="no incident windows")
    asked = parser.parse_args()
    plant = None if asked.no_cause else Plant()
    began = time.perf_counter()
    found = write(Fleet(asked.nodes, asked.hours, asked.seed, plant, rollups_only=asked.rollups_only), asked.root)
    sick = sum(machine.sickness is not None for machine in found)
    print(f"{asked.root}: {len(found):,} nodes, {sick:,} sick, {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""node.json and incidents.json of anybody's recording: every view begins with them, and none may end with them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import write_segment
from tests.helpers.scenes import Scene

from zombiescope.cli import main
from zombiescope.store import incident_file, shape
from zombiescope.store.reader import open_recording

STRANGE: tuple[Any, ...] = (
    None,
    7,
    -1,
    1e300,
    "x",
    "\ud800",
    [],
    {},
    [[]],
    True,
    2**70,
    {"a": {"b": [1]}},
    "\x1b]0;p\x07",
)
NODE = {
    "format": "zombiescope.recording/1", "node": "n", "kernel": "6.1.0", "boot": "b", "hz": 99, "event": "cpu-clock",
    "interval_s": 1.0, "user_hz": 100, "started_us": 1_760_000_000_000_000, "timezone": "UTC", "os": "Debian",
    "consoles": ["ttyS0"], "hypervisor": {"virtual": True, "name": None, "evidence": ["flag"]}, "diagnosed": True,
    "cpus": {"online": [0, 1], "possible": 2, "isolated": [], "left_out": [], "topology": [
        {"cpu": 0, "package": 0, "core": 0, "siblings": [0], "numa_node": 0}]},
    "kernel_config": {"hz": 250, "accounting": "tick", "irq_time": False, "preempt": "none"},
    "sysctls": {"kernel.printk": "4 4 1 7", "vm.oom_dump_tasks": "1"}, "nics": {"eth0": "virtio_net"},
    "labels": {"zone": "a"}, "missing": [{"source": "s", "why": "w", "grant": "g"}],
}  # fmt: skip
INCIDENT = {
    "id": "0123456789", "from": 1_760_000_000.0, "to": 1_760_000_009.0, "severity": "critical", "state": "open",
    "causes": [{"pattern": "zombie-memcg", "summary": "s", "confidence": 0.5, "proof": "kernel", "hog": {"comm": "a"},
                "culprit": {"unit": "u"}, "frames": ["f"], "chain": [{"step": "s", "fact": "f"}],
                "fix": {"summary": "x", "steps": []}}],
    "symptoms": [{"kind": "stall", "at": 1_760_000_001.0, "cpu": 0, "seconds": 1, "text": "t"}], "ruled_out": [],
}  # fmt: skip


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (*at, key)
        yield from _paths(each, (*at, key))


def _spoilt(document: dict[str, Any], draw: random.Random, places: int) -> dict[str, Any]:
    made = copy.deepcopy(document)
    for *above, last in draw.sample(list(_paths(document)), places):
        inside: Any = made
        for key in above:
            inside = inside[key] if isinstance(inside, dict | list) and _has(inside, key) else None
        if isinstance(inside, dict | list) and _has(inside, last):
            inside[last] = draw.choice(STRANGE)
    return made


def _has(inside: Any, key: Any) -> bool:
    return key in inside if isinstance(inside, dict) else isinstance(key, int) and key < len(inside)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty seconds with a hog, so that there is something to diagnose."""
    scene = Scene().hog("do_syscall_64 an_unheard_of_function", comm="agent", unit="agent.service")
    node = copy.deepcopy(scene.census(240, 70_000).made)
    scene._add_samples(node)
    scene._add_cores(node)
    place = tmp_path_factory.mktemp("shape")
    write_segment(place, node.tables, node="n")
    return place


@pytest.mark.parametrize("seed", range(8))
def test_strange_values_end_no_command(seed: int, recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(seed)
    node_dir = recording / "node=n"
    (node_dir / "node.json").write_text(json.dumps(_spoilt(NODE, draw, 12)))
    incidents = {"incidents": [_spoilt(INCIDENT, draw, 6) for _ in range(6)]}
    (node_dir / "incidents.json").write_text(json.dumps(incidents))
    for command in (["info"], ["status"], ["diagnose", "--json"], ["fix", "--incident", "0123456789"]):
        main.run([command[0], str(recording), *command[1:]])
        said = capfd.readouterr()
        assert "this is a defect" not in said.err, (command, said.err)
        assert "\x1b]" not in said.out + said.err
    with open_recording(recording) as found:
        json.dumps(found.node, ensure_ascii=False).encode()
    json.dumps(incident_file.read(node_dir), ensure_ascii=False).encode()


def test_what_a_recorder_writes_stays_as_it_is() -> None:
    newer = {**NODE, "of_a_newer_version": {"x": [1, "\u00e9"]}}
    assert shape.node(newer) == newer
    assert shape.incident(INCIDENT) == INCIDENT


@pytest.mark.parametrize("at", ["x", 1e300, -1, 253_402_300_800, float("nan"), True])
def test_an_incident_has_a_time_that_a_calendar_has(at: Any) -> None:
    assert shape.incident({**INCIDENT, "from": at}) is None

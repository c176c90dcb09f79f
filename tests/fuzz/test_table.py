"""The table of targets: what it starts from is taken, what was found once stays fixed, and no parser is forgotten."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import zombiescope
from tests.fuzz.target import FOUND
from tests.fuzz.targets import TARGETS

SOURCES = Path(zombiescope.__file__).parent
ROOMS = ("kernel", "systemd", "containers", "symbols", "importing", "recording", "audit", "ray", "shipping")
INPUTS = sorted(path for path in FOUND.glob("*/*") if path.is_file())


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_starts_from_something_that_is_understood(name: str) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())
    assert seeds
    assert all(len(seed) <= 65_536 for seed in seeds)
    for seed in seeds:
        target.feed(seed)
    for end in (0, 1, len(seeds[0]) // 2):
        target.feed(seeds[0][:end])


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_does_no_harm(path: Path) -> None:
    TARGETS[path.parent.name].feed(path.read_bytes())


def _parsers() -> Iterator[str]:
    """Every public function of these rooms that is called parse, or parse_something."""
    for room in ROOMS:
        for path in sorted((SOURCES / room).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef) and node.name.split("_")[0] == "parse":
                    yield f"{path.relative_to(SOURCES)}:{node.name}"


def test_every_parser_is_fuzzed() -> None:
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name.startswith("parse"):
            called.add(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for target in TARGETS.values():
            for seed in target.seeds():
                target.feed(seed)
    finally:
        sys.setprofile(before)
    missing = {name for name in _parsers() if f"{SOURCES}/{name}" not in called}
    assert not missing, "parsers that no target of tests/fuzz/targets feeds"

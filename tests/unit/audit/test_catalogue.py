"""The catalogue is data: every entry has its source, and a wrong one is refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zombiescope.audit import catalogue
from zombiescope.audit.catalogue import CatalogueError, Kernel
from zombiescope.kernel import release

FILES = sorted(Path(catalogue.__file__).parent.glob("*.toml"))


def test_one_entry_is_one_line() -> None:
    assert {path.name for path in FILES} == {"agents.toml", "kernels.toml", "platforms.toml"}
    for path in FILES:
        for line in path.read_text().splitlines():
            assert re.fullmatch(r"#.*|\w+ = \[|\]|  \{ .* \},", line), line


def test_every_entry_has_a_reason_and_a_source() -> None:
    known = catalogue.shipped()
    assert len(known.agents) >= 10
    assert {"ecs.service", "kubelet.service", "walinuxagent.service"} <= {agent.unit for agent in known.agents}
    assert all(agent.source and agent.why.endswith(".") for agent in known.agents)
    assert all(kernel.source and kernel.why.endswith(".") for kernel in known.kernels)
    assert all(entry.source for entry in known.hierarchies)
    assert all(entry.source for entry in known.platforms)


def test_agents_belong_to_platforms_that_can_be_told() -> None:
    known = catalogue.shipped()
    platforms = {(hint.kind, hint.platform) for hint in known.platforms}
    for agent in known.agents:
        if agent.belongs_to:
            assert (agent.kind, agent.belongs_to) in platforms, agent.unit


def test_the_kernels_are_those_of_the_cost_model() -> None:
    """`cgroups` predicts costs with the same generations."""
    before = {kernel.id: catalogue.number_of(kernel.before) for kernel in catalogue.shipped().kernels}
    assert before["numa-stat-walk"] == release.NUMA_STAT_WALKS_BEFORE
    assert before["memory-stat-walk"] == release.STAT_WALKS_BEFORE


@pytest.mark.parametrize(
    ("release", "covered"),
    [("5.4.0-1103-aws", True), ("5.7.19", True), ("5.8.0", False), ("5.15.0-91-generic", False), ("6.1.0", False),
     ("4.18.0-553.el8.x86_64", True), ("4.14", True), ("3.10.0", False), ("unknown", False), ("", False)],
)  # fmt: skip
def test_versions_are_numbers(release: str, covered: bool) -> None:
    entry = Kernel("x", before="5.8", since="4.9", what="", why="", source="")
    assert entry.covers(release) == covered


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents = [", "is not TOML"),
        ("agent = []", "no such list: agent"),
        ("agents = 3", "is not a list of entries"),
        ('agents = [{ unit = "x.service" }]', "it lacks"),
        ('agents = [{ unit = 3 }]', "unit has to be a str"),
        ('agents = [{ unit = "x", name = "x", why = "x", source = "x", colour = "red" }]', "no such key: colour"),
        ('kernels = [{ id = "x", before = "5", what = "", why = "", source = "", severity = "bad" }]', "one of info"),
        ('platforms = [{ platform = "x", path = "/x", holds = "(", source = "x" }]', "is not a pattern"),
        ("\xff", "is not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(CatalogueError, match=said) as caught:
        catalogue.parse(text.encode("latin-1"), "own.toml")
    assert "own.toml" in str(caught.value)


def test_an_own_entry_takes_the_place_of_ours() -> None:
    entry = b'agents = [{ unit = "ecs.service", name = "ours", why = "Because.", source = "us" }]'
    merged = catalogue.merge(catalogue.shipped(), catalogue.parse(entry, "own.toml"))
    agent = merged.agent("ecs.service")
    assert agent is not None
    assert agent.name == "ours"
    assert len(merged.agents) == len(catalogue.shipped().agents)

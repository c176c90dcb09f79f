"""One small fleet for all tests that only look at it: sixty nodes, three hours, a cause that is planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.fleets.nodes import Fleet, Machine, Plant, write

from zombiescope.fleet.engines.local import LocalEngine
from zombiescope.fleet.gather import Gathered, gather
from zombiescope.fleet.report import FleetReport, make

SMALL = Fleet(nodes=60, hours=3, seed=3, plant=Plant(rate=1.0, stray=0.0), background=0.05, compare=0.1)
Report = Callable[[Path], FleetReport]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet")
    write(SMALL, root)
    return root


@pytest.fixture(scope="session")
def machines(fleet: Path) -> list[Machine]:
    return write(SMALL, fleet)


@pytest.fixture(scope="session")
def gathered(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gathered]:
    found = gather(str(fleet), tmp_path_factory.mktemp("results"), LocalEngine(1), None)
    yield found
    found.statistics.close()


@pytest.fixture(scope="session")
def report(gathered: Gathered) -> FleetReport:
    return make(gathered, "duckdb")


def reported(root: Path, results: Path, last_us: int | None = None) -> FleetReport:
    """A report of a root, read by this process."""
    found = gather(str(root), results, LocalEngine(1), last_us)
    try:
        return make(found, "duckdb")
    finally:
        found.statistics.close()

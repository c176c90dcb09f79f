"""One look at the memory cgroups of a machine, without a recorder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.documents.cgroups import of_now
from zombiescope.kernel import live_census as module
from zombiescope.kernel.live_census import LiveCensus, live_census

FIXTURES = Path(__file__).parents[2] / "fixtures"


def census_of(tree: str) -> LiveCensus:
    found = live_census(str(FIXTURES / tree))
    assert isinstance(found, LiveCensus)
    return found


@pytest.mark.parametrize(
    ("tree", "release", "hierarchy", "counts", "verdict"),
    [
        ("ubuntu-5.4-v1", "5.4.0-1024-aws", "v1", (68680, 1, 68679), "watch"),
        ("al2023-6.12-v2", "6.12.40", "v2", (8192, 201, 7991), "watch"),
        ("debian-6.1-v2", "6.1.0-18-amd64", "v2", (93, 72, 21), "harmless"),
    ],
)
def test_counts_are_those_of_the_memory_hierarchy(
    tree: str, release: str, hierarchy: str, counts: tuple[int, int, int], verdict: str
) -> None:
    found = census_of(tree)
    assert (found.hierarchy, found.total, found.live, found.dying) == (hierarchy, *counts)
    assert of_now("node", release, found)["verdict"] == verdict
    assert found.whole


def test_in_a_container_it_says_that_it_sees_only_a_part() -> None:
    assert not census_of("container-6.1-v2").whole


def test_too_many_directories_leave_the_living_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a hierarchy that takes longer to walk than is allowed
    monkeypatch.setattr(module, "WALK_BUDGET_S", -1.0)
    found = census_of("ubuntu-5.4-v1")
    # THEN the total stands, and what was not counted is not guessed
    assert (found.total, found.live, found.dying) == (68680, None, None)


def test_without_a_memory_controller_it_says_why(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    found = live_census(str(tmp_path))
    assert isinstance(found, str)
    assert "memory controller" in found


@pytest.mark.kernel
def test_a_cgroup_made_here_is_counted_as_living(needs: Needs) -> None:
    needs.root()
    before = live_census()
    assert isinstance(before, LiveCensus)
    place = Path("/sys/fs/cgroup/memory" if before.hierarchy == "v1" else "/sys/fs/cgroup")
    needs.file(str(place / "cgroup.procs"))
    made = [place / f"zombiescope-live-census-{number}" for number in range(5)]
    try:
        for path in made:
            path.mkdir()
        after = live_census()
    finally:
        for path in made:
            path.rmdir()
    assert isinstance(after, LiveCensus)
    assert after.live is not None
    assert before.live is not None
    # Others may make and remove a cgroup meanwhile.
    assert after.live >= before.live + 3

"""Counters of a whole node: what a large one counts in its sleep is no warning, what costs somebody time is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.wide import FAULT, READ, SYSCALL, WideNode

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.diagnose import Diagnosis

RECLAIM = f"{SYSCALL} vfs_read filemap_read page_cache_ra_unbounded try_to_free_pages shrink_node shrink_lruvec"


def severities(found: Diagnosis, kind: str) -> set[Severity]:
    every = [one for incident in found.incidents for one in incident.symptoms]
    return {one.severity for one in (*every, *found.remarks) if one.kind == kind}


@pytest.mark.parametrize(("share", "severity"), [(0.0, "info"), (0.3, "warning")])
def test_reclaim_is_a_warning_when_it_costs_time(tmp_path: Path, share: float, severity: Severity) -> None:
    # GIVEN a node that reads files, whose tasks free 20,000 pages a second themselves
    node = WideNode(96, seconds=20).readers().counter("vmstat", "pgscan_direct", 20_000)
    node.runs("reader", RECLAIM, share, pid=6001, unit="feature-store.service")
    assert severities(node.diagnose(tmp_path), "reclaim") == {severity}


def test_reclaim_that_the_kernel_says_costs_time(tmp_path: Path) -> None:
    node = WideNode(16, seconds=20).runs("python", FAULT, 0.2).counter("vmstat", "allocstall", 50)
    waited = node.made.series("pressure", "some_us", "memory")
    for second in range(20):
        node.made.count(START_US + (second + 1) * SECOND, waited, 30_000)
    assert severities(node.diagnose(tmp_path), "reclaim") == {"warning"}


@pytest.mark.parametrize(("drops", "lost"), [(200, False), (5_000, True)])
def test_a_fast_card_drops_a_few(tmp_path: Path, drops: int, lost: bool) -> None:
    node = WideNode(16, seconds=20).runs("python", READ, 0.2)
    node.counter("netdev", "rx_packets", 2_000_000).counter("netdev", "rx_drop", drops)
    assert severities(node.diagnose(tmp_path), "packet_loss") == ({"warning"} if lost else set())

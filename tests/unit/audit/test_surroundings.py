"""What is looked at before and after: processes, quotas, the log; on trees of files, and on real processes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from zombiescope.audit import Finding, examine
from zombiescope.audit.surroundings import Surroundings, defunct, kernel_log, quotas
from zombiescope.kernel.cgroup_leaf import CpuQuota, cpu_quota


def test_a_child_that_nobody_waited_for_is_defunct_and_stays(tmp_path: Path) -> None:
    # GIVEN a child that has ended
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        # WHEN it is looked for twice
        before, after = defunct.look(), defunct.look()
        found = defunct.defunct(before, after)
        # THEN it is there both times, left by us
        assert found is not None
        ours = next(parent for parent in found.parents if parent.pid == os.getpid())
        assert ours.defunct == 1
        assert ours.comm == Path("/proc/self/comm").read_text().strip()
        assert found.lasting >= 1
        # AND one that only the second look sees does not count as lasting
        fresh = defunct.defunct({}, after)
        assert fresh is not None
        assert (fresh.lasting, fresh.parents) == (0, ())
        assert fresh.now >= 1
    finally:
        os.waitpid(child, 0)


def test_a_number_used_again_is_another_process() -> None:
    one = next(iter((defunct.look() or {}).values()))
    dead = replace(one, state="Z")
    again = replace(dead, start_time_ticks=dead.start_time_ticks + 1)
    found = defunct.defunct({dead.pid: dead}, {dead.pid: again})
    assert found is not None
    assert (found.now, found.lasting) == (1, 0)


def test_processes_that_are_hidden_are_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    found = defunct.defunct(None, defunct.look(str(tmp_path)))
    assert found is not None
    assert found.others_hidden
    assert defunct.look(str(tmp_path / "nowhere")) is None


def test_quotas_of_both_versions_are_read_alike(tmp_path: Path) -> None:
    new, old = tmp_path / "v2", tmp_path / "v1"
    new.mkdir()
    old.mkdir()
    (new / "cpu.max").write_text("150000 100000\n")
    (new / "cpu.stat").write_text("usage_usec 9\nnr_periods 100\nnr_throttled 40\nthrottled_usec 1200000\n")
    (old / "cpu.cfs_quota_us").write_text("150000\n")
    (old / "cpu.cfs_period_us").write_text("100000\n")
    (old / "cpu.stat").write_text("nr_periods 100\nnr_throttled 40\nthrottled_time 1200000000\n")
    assert cpu_quota(str(new)) == cpu_quota(str(old)) == CpuQuota(1.5, 100, 40, 1_200_000)
    (new / "cpu.max").write_text("max 100000\n")
    (old / "cpu.cfs_quota_us").write_text("-1\n")
    assert cpu_quota(str(new)) is None
    assert cpu_quota(str(old)) is None


def test_what_was_throttled_is_the_difference() -> None:
    before = quotas.Quotas({"/a": CpuQuota(2.0, 1000, 500, 9_000_000), "/b": CpuQuota(1.0, 10, 0, 0)}, True)
    after = quotas.Quotas(
        {
            "/a": CpuQuota(2.0, 1100, 550, 12_000_000),
            "/b": CpuQuota(1.0, 110, 0, 0),
            "/new": CpuQuota(1.0, 10, 9, 500_000),
        },
        True,
    )
    found = quotas.throttled(before, after)
    assert [(one.cgroup, one.periods, one.throttled, one.seconds) for one in found] == [
        ("/new", 10, 9, 0.5),
        ("/a", 100, 50, 3.0),
    ]
    assert found[0].ratio == 0.9


def test_no_cpu_controller_is_said(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    found = quotas.read(str(tmp_path))
    assert not found.whole
    assert found.why is not None


def test_a_log_that_may_not_be_read_says_why(tmp_path: Path) -> None:
    assert kernel_log.read(str(tmp_path / "kmsg")) == f"{tmp_path / 'kmsg'}: No such file or directory"


# --- what the audit makes of them -----------------------------------------------------------------------------------


def found(tmp_path: Path, surroundings: Surroundings) -> list[Finding]:
    """Of a root that has nothing else to find."""
    tmp_path.mkdir(exist_ok=True)
    rules = {"defunct", "kernel-log"}
    return [one for one in examine(tmp_path, surroundings=surroundings).findings if one.rule in rules]


@pytest.mark.parametrize(
    ("kind", "hours", "severity"), [("nic_reset", 2, "warning"), ("nic_reset", 30, "info"), ("oom_kill", 2, "info")]
)
def test_what_the_kernel_logged_since_boot(tmp_path: Path, kind: str, hours: int, severity: str) -> None:
    last_us = round((time.time() - hours * 3600) * 1e6)
    log = kernel_log.LogSinceBoot((kernel_log.LogKind(kind, 3, last_us, "ena eth0: resetting"),), 900, 0)
    (finding,) = found(tmp_path, Surroundings(log=log))
    assert (finding.id, finding.severity) == (f"kernel-log:{kind}", severity)
    assert f"{kind} 3 times since boot, last" in finding.why


def test_defunct_processes_are_called_another_kind_of_zombie(tmp_path: Path) -> None:
    few = defunct.Defunct(
        9, 5, (defunct.Parent(812, "shim", 4), defunct.Parent(1, "systemd", 1)), 300, others_hidden=False
    )
    (finding,) = found(tmp_path, Surroundings(defunct=few))
    assert finding.severity == "info"
    assert finding.why == f"5 defunct processes, 4 of them left by shim (pid 812); {defunct.ANOTHER_KIND}"
    assert "another kind of zombie than dying cgroups" in finding.why
    assert found(tmp_path, Surroundings(defunct=replace(few, lasting=100)))[0].severity == "warning"


def test_an_image_has_no_surroundings(tmp_path: Path) -> None:
    assert not found(tmp_path, Surroundings())
    assert not [one for one in examine(tmp_path).missing if "log" in one.source]

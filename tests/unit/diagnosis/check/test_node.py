"""The node as a whole: each threshold from both sides, and what is not measured stays unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import SECOND, START_US
from tests.unit.diagnosis.check.looks import checked, core, counters, event, found

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.surroundings import Surroundings
from zombiescope.audit.surroundings.quotas import Throttled
from zombiescope.base.missing import Missing
from zombiescope.diagnosis.check.check import Audited, verdict
from zombiescope.diagnosis.check.findings import WindowFinding
from zombiescope.node.systemd.show import RunningUnit

END_US = START_US + 10 * SECOND


@pytest.mark.parametrize(
    ("resource", "kind", "added_us", "severity"),
    [
        ("memory", "some_us", 900_000, None),
        ("memory", "some_us", 1_100_000, "warning"),
        ("memory", "full_us", 600_000, "warning"),
        ("memory", "full_us", 3_100_000, "critical"),
        ("io", "full_us", 3_100_000, "warning"),
        ("io", "some_us", 9_000_000, None),
        ("irq", "full_us", 1_100_000, "warning"),
        ("cpu", "some_us", 6_000_000, "info"),
    ],
)
def test_pressure(tmp_path: Path, resource: str, kind: str, added_us: int, severity: str | None) -> None:
    check = checked(tmp_path, counters({("pressure", kind, resource): added_us}))
    findings = found(check, f"pressure-{resource}")
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    measured = check.pressure[resource]
    assert (measured.some if kind == "some_us" else measured.full) == pytest.approx(added_us / 1e7)


def test_pressure_that_is_not_measured_is_unknown_not_zero(tmp_path: Path) -> None:
    lacking = [{"source": "pressure", "why": "psi=0", "grant": "boot with psi=1"}]
    check = checked(tmp_path, missing=lacking)
    assert {(one.some, one.full) for one in check.pressure.values()} == {(None, None)}
    assert not check.sources["pressure"]
    assert "13 of 14 sources" in verdict(check).text


@pytest.mark.parametrize(
    ("name", "added", "severity"),
    [
        ("allocstall", 9, None),
        ("allocstall", 11, "warning"),
        ("pgscan_direct", 20_000, "warning"),
        ("compact_stall", 30, "warning"),
        ("pgscan_kswapd", 200_000, "info"),
    ],
)
def test_reclaim(tmp_path: Path, name: str, added: int, severity: str | None) -> None:
    check = checked(tmp_path, counters({("vmstat", name, ""): added}))
    assert [finding.severity for finding in found(check, "reclaim")] == ([severity] if severity else [])
    assert check.reclaim is not None
    assert check.reclaim.per_second[name] == pytest.approx(added / 10)


def test_an_oom_kill_is_critical(tmp_path: Path) -> None:
    (finding,) = found(checked(tmp_path, counters({("vmstat", "oom_kill", ""): 2})), "oom_kill")
    assert finding.severity == "critical"


def test_throttling_names_the_cgroup_and_the_part_of_its_periods(tmp_path: Path) -> None:
    hard = Throttled("/kubepods/a", 2.0, 100, 44, 3.1)
    mild = Throttled("/kubepods/b", 2.0, 100, 3, 0.1)
    check = checked(tmp_path, around=Surroundings(throttled=(hard, mild)))
    (finding,) = found(check, "throttled")
    assert "/kubepods/a was stopped by its CPU quota in 44% of its periods, for 3.1 s" in finding.why
    assert "reported when a CPU quota stopped a cgroup in 20% of its periods" in finding.evidence[0].text
    assert finding.pattern == "cfs-throttle"


# --- cgroups ----------------------------------------------------------------------------------------------------


def census(second: int, dying: int, live: int | None = 240, created: int = 0) -> tuple[Any, ...]:
    at_us = START_US + (second + 1) * SECOND
    return (at_us, "v1", dying + (live or 0), live, None if live is None else dying, created, created, 0, 0)


def test_a_count_that_costs_is_told_with_why_on_this_kernel(tmp_path: Path) -> None:
    tables = {"census": [census(second, 68_440) for second in range(10)]}
    series = [(0, "probe", "numa_stat_leaf_ns", "", "gauge")]
    tables |= {"series": series, "counters": [(START_US + SECOND, 0, 70_000)]}
    old, new = checked(tmp_path / "old", tables), checked(tmp_path / "new", tables, kernel="6.18.0")
    (finding,) = found(old, "memory-cgroups")
    assert finding.severity == "warning"  # a count alone is no incident
    assert "68,680 memory cgroups are tracked and 240 are in use: one read" in finding.why
    assert "kernel 5.4 walks all of them" in finding.why
    assert found(new, "memory-cgroups")[0].severity == "warning"


def test_growth_is_said_as_extrapolated(tmp_path: Path) -> None:
    tables = {"census": [census(second, 100 + 2 * second) for second in range(10)]}
    check = checked(tmp_path, tables, kernel="6.18.0")
    assert (check.cgroups.growth.dying, check.cgroups.growth.total) == (18, 18)
    (finding,) = found(check, "dying-cgroups-grow")
    assert finding.severity == "warning"
    assert "18 new dying memory cgroups" in finding.why
    assert "about 6,480/h if sustained" in finding.why


def test_growth_that_was_not_counted_is_unknown(tmp_path: Path) -> None:
    check = checked(tmp_path, {"census": [census(second, 100, live=None) for second in range(10)]})
    assert check.cgroups.growth.dying is None
    assert check.cgroups.growth.dying_per_hour is None


def test_who_makes_and_removes_cgroups(tmp_path: Path) -> None:
    line = (END_US, "/ecs/*", 30, 30, 30, 0, 1, "ecs-agent", 7001, "ecs.service", None)
    tables = {"census": [census(second, 100) for second in range(10)], "leaks": [line]}
    (finding,) = found(checked(tmp_path / "seen", tables), "cgroup-churn")
    assert "30 cgroups were made by ecs-agent of ecs.service and 30 removed in 10 s at /ecs/*" in finding.why
    # AND without tracepoints nobody says that there was nobody
    lacking = [{"source": "tracefs", "why": "closed", "grant": "CAP_DAC_READ_SEARCH"}]
    blind = checked(tmp_path / "blind", tables, missing=lacking)
    assert blind.cgroups.makers is None


# --- network, units, log ----------------------------------------------------------------------------------------


def test_drops_of_a_card_count_against_its_packets(tmp_path: Path) -> None:
    def card(drops: int, **more: int) -> list[WindowFinding]:
        figures = {("netdev", "rx_packets", "eth0"): 100_000, ("netdev", "rx_drop", "eth0"): drops}
        figures |= {("ethtool", name, "eth0"): count for name, count in more.items()}
        return found(checked(tmp_path / f"{drops}{more}", counters(figures)), "card-trouble")

    assert card(0) == []
    assert [finding.severity for finding in card(50)] == ["info"]
    assert [finding.severity for finding in card(200)] == ["warning"]
    assert [finding.severity for finding in card(0, tx_timeout=1)] == ["warning"]
    assert card(0, interrupts=5_000, tx_bytes=9) == []


def test_packets_dropped_by_a_core_that_did_not_keep_up(tmp_path: Path) -> None:
    rows = [core(at, cpu, dropped=7 if (at, cpu) == (3, 1) else 0) for at in range(10) for cpu in (0, 1)]
    (finding,) = found(checked(tmp_path, {"cores": rows}), "softnet-dropped")
    assert "7 packets were dropped" in finding.why
    assert "core 1" in finding.why


def test_what_the_kernel_logged_in_the_window(tmp_path: Path) -> None:
    events = [
        event(2, "nic_reset", "critical", "ena eth0: resetting"),
        event(3, "nic_reset", "critical", "ena eth0: resetting again"),
        event(4, "kernel_log", "warning", "something else"),
        event(5, "mark", "info", "epoch 12"),
    ]
    check = checked(tmp_path, {"events": events})
    (finding,) = found(check, "nic_reset")
    assert (finding.severity, finding.pattern) == ("critical", "hardware-nic-reset")
    assert finding.why.startswith("ena eth0: resetting (and 1 more)")
    assert len(check.findings) == 1


def test_units_that_restarted_and_units_that_wait(tmp_path: Path) -> None:
    restart = event(2, "unit_restart", "warning", "ecs.service restarted", unit="ecs.service", delta=2, n_restarts=812)
    again = event(6, "unit_restart", "warning", "ecs.service restarted", unit="ecs.service", delta=1, n_restarts=813)
    waiting = RunningUnit("slow.service", "loaded", "activating", "auto-restart", {"NRestarts": 44})
    fine = RunningUnit("fine.service", "loaded", "active", "running", {"NRestarts": 0})
    running = {unit.name: unit for unit in (waiting, fine)}
    check = checked(tmp_path, {"events": [restart, again]}, audit=Audited(running=running))
    (restarted,) = found(check, "unit-restarted")
    assert "ecs.service was restarted 3 times in 10 s, 813 times so far" in restarted.why
    assert restarted.severity == "warning"
    # AND that one waits is a finding of the audit, and shown with the others
    assert check.units is not None
    assert (check.units.waiting, check.units.often, check.units.services) == ((waiting,), (waiting,), 2)


def test_units_that_cannot_be_asked_are_unknown(tmp_path: Path) -> None:
    assert checked(tmp_path).units is None


# --- the audit, what is missing, the order -----------------------------------------------------------------------

RULE = Finding("f1", "restart-always", "x.service", "critical", "restarts for ever", (EvidenceLine("/x", 1, "a"),), ())


def test_the_audit_is_no_verdict_on_these_seconds(tmp_path: Path) -> None:
    check = checked(tmp_path, audit=Audited((RULE,)))
    assert verdict(check).severity == "ok"
    assert "audit: 1 findings that may cause an incident later" in verdict(check).text
    assert check.all_findings() == [RULE]


def test_what_is_missing_is_told_once_and_in_order(tmp_path: Path) -> None:
    said = [
        {"source": "marks", "why": "no socket", "grant": "-"},
        {"source": "kernel log (/dev/kmsg)", "why": "denied", "grant": "CAP_SYSLOG"},
        {"source": "kernel log", "why": "none is open", "grant": "CAP_SYSLOG"},
        {"source": "stack samples", "why": "denied", "grant": "CAP_PERFMON"},
    ]
    around = Surroundings(missing=(Missing("kernel log since boot", "denied", "CAP_SYSLOG"),))
    check = checked(tmp_path, around=around, missing=said)
    assert [one.source for one in check.missing] == ["stack samples", "kernel log"]
    lacking = {source for source, seen in check.sources.items() if not seen}
    assert lacking == {"stack samples", "cgroup tracepoints", "kernel log"}


def test_the_worst_comes_first(tmp_path: Path) -> None:
    rows = [core(at, cpu, system=1000 if cpu else 0) for at in range(10) for cpu in (0, 1)]
    tables = {"cores": rows, **counters({("pressure", "some_us", "cpu"): 9_000_000, ("vmstat", "allocstall", ""): 99})}
    check = checked(tmp_path, tables, audit=Audited((RULE,)))
    severities = [finding.severity for finding in check.all_findings()]
    assert severities == ["critical", "warning", "warning", "info"]
    assert check.all_findings()[0] is RULE

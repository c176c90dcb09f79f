"""Blind is neither healthy nor refuted: no stacks, hidden names, rows that a kernel does not have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.pattern_scenes import FAULT, READ
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.diagnosis.ranking import UNSURE
from zombiescope.diagnosis.report import document

HIDDEN = "[kernel] [kernel] [kernel]"
WALK = f"{READ} memcg_numa_stat_show mem_cgroup_nr_lru_pages"
NO_SYMBOLS = {
    "source": "kernel symbols",
    "why": "/proc/kallsyms shows no addresses (kptr_restrict=2)",
    "grant": "sysctl kernel.kptr_restrict=1",
}
NO_PERF = {"source": "stack samples", "why": "perf_event_open: Permission denied", "grant": "CAP_PERFMON"}


def founding(scene: Scene) -> Scene:
    """What is known of the founding case whether or not there are stacks."""
    scene.census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent", "ecs.service")
    return scene.event("nic_tx_timeout", "ena: TX q 5 is paused for too long", at_s=11)


def without_perf(scene: Scene) -> Scene:
    """One core is lost to the kernel, and nobody was sampled there."""
    for cpu in range(scene.cpus):
        scene.mode(cpu, system=0.05)
    scene.mode(1, system=1.0)
    scene.node["missing"] = [NO_PERF]
    scene.sampled = False
    return scene


def hidden(scene: Scene) -> Scene:
    scene.node["missing"] = [NO_SYMBOLS]
    return scene.hog(HIDDEN, "kubelet")


def only(found: Diagnosis) -> Incident:
    (incident,) = (each for each in found.incidents if any(one.cpu == 1 for one in each.symptoms))
    return incident


def about(incident: Incident, pattern: str) -> list[Cause]:
    return [cause for cause in incident.causes if cause.pattern == pattern]


@pytest.mark.parametrize(
    ("blind", "why"), [(without_perf, NO_PERF["why"]), (hidden, NO_SYMBOLS["why"])], ids=["no perf", "no symbols"]
)
def test_the_founding_case_is_carried_by_what_was_seen(tmp_path: Path, blind: object, why: str) -> None:
    incident = only(blind(founding(Scene())).diagnose(tmp_path))  # type: ignore[operator]
    # THEN zombies are the first cause, no surer than a guess
    cause = incident.causes[0]
    assert cause.pattern == "zombie-memcg"
    assert 0.3 < cause.confidence <= 0.5
    assert cause.culprit is not None
    assert ": probably " in cause.summary
    assert "[kernel]" not in cause.frames
    # AND the report says what was not seen, and why
    (link,) = [link for link in cause.chain if link.step == "not seen"]
    assert why in link.fact
    assert any(why in said for said in incident.not_checked)
    assert document.incident(incident)["not_checked"] == list(incident.not_checked)
    # AND nobody is told to change the node for a guess
    assert not [step for step in cause.fix.steps if step.touches]
    assert cause.fix.steps[-1].line == UNSURE
    # AND nothing was ruled out by functions that nobody could have seen
    assert not [one for one in incident.ruled_out if "functions" in one.because]


@pytest.mark.parametrize("blind", [without_perf, hidden], ids=["no perf", "no symbols"])
def test_a_number_that_refutes_still_does(tmp_path: Path, blind: object) -> None:
    incident = only(blind(Scene().census(240, 30)).diagnose(tmp_path))  # type: ignore[operator]
    assert "zombie-memcg" in {one.pattern for one in incident.ruled_out}


@pytest.mark.parametrize("blind", [without_perf, hidden], ids=["no perf", "no symbols"])
def test_without_a_number_of_its_own_a_pattern_is_neither_named_nor_ruled_out(tmp_path: Path, blind: object) -> None:
    incident = only(blind(Scene()).diagnose(tmp_path))  # type: ignore[operator]
    assert [cause.pattern for cause in incident.causes] == ["unknown-kernel-hog"]
    told = {one.pattern for one in incident.ruled_out}
    assert not {"zombie-memcg", "rstat-lock", "audit-flood", "bpf-agent", "mount-storm", "smaps-reader"} & told
    assert incident.not_checked


def test_zombies_are_no_cause_where_nothing_shows_that_the_kernel_took_the_time(tmp_path: Path) -> None:
    scene = without_perf(Scene().census(240, 68_440))
    scene.mode(1, system=0.05)
    scene.counter("snmp", "TcpRetransSegs", 900, calm_per_s=900)
    scene.counter("snmp", "TcpOutSegs", 9_000, calm_per_s=9_000)
    causes = [cause.pattern for incident in scene.diagnose(tmp_path).incidents for cause in incident.causes]
    assert "zombie-memcg" not in causes


def test_what_every_node_has_carries_nothing(tmp_path: Path) -> None:
    """Much anonymous memory and busy softirqs are needed for some patterns, and prove none."""
    scene = hidden(Scene().gauge("meminfo", "anon_pages_bytes", 400 << 30)).mode(1, softirq=0.9)
    named = {cause.pattern for incident in scene.diagnose(tmp_path).incidents for cause in incident.causes}
    assert not {"smaps-reader", "ipvs-estimator"} & named


def test_shares_are_of_the_samples_that_have_names(tmp_path: Path) -> None:
    # GIVEN a hog of whose samples one in five has names
    scene = founding(Scene()).hog(HIDDEN, "kubelet", share=0.8).hog(WALK, "kubelet", share=0.2)
    incident = only(scene.diagnose(tmp_path))
    (cause,) = about(incident, "zombie-memcg")
    assert cause.confidence > 0.5
    assert any("80% of its samples" in said for said in incident.not_checked)


def test_a_few_names_among_thousands_of_samples_say_nothing(tmp_path: Path) -> None:
    scene = Scene().census(240, 68_440).hog(HIDDEN, "kubelet")
    scene.hog(" ".join((*SYSCALL, "do_futex")), "kubelet", from_s=6, to_s=6.05)
    incident = only(scene.diagnose(tmp_path))
    assert about(incident, "zombie-memcg")[0].confidence <= 0.5


def test_a_core_that_computes_still_rules_out_what_the_kernel_would_have_done(tmp_path: Path) -> None:
    """Sampled, and not in the kernel: that is seen, and not blind."""
    scene = Scene().census(240, 68_440).event("nic_reset", "eth0: reset", at_s=11)
    scene.hog("", "python", cpu=1)
    ruled_out = {one.pattern for incident in scene.diagnose(tmp_path).incidents for one in incident.ruled_out}
    assert "zombie-memcg" in ruled_out


def test_arm_has_no_row_for_tlb_shootdowns(tmp_path: Path) -> None:
    # GIVEN a machine that flushes all the time and whose /proc/interrupts has no TLB row
    scene = Scene(kernel="6.18.0").interrupts("IPI1", 900)
    scene.hog("do_syscall_64 __vm_munmap flush_tlb_mm_range on_each_cpu_cond_mask smp_call_function_many_cond")
    incident = only(scene.diagnose(tmp_path))
    assert "tlb-shootdown" not in {one.pattern for one in incident.ruled_out}
    assert about(incident, "tlb-shootdown")[0].confidence <= 0.5


@pytest.mark.parametrize(("known", "ruled_out"), [(True, True), (False, False)])
def test_a_counter_that_a_kernel_does_not_have_is_not_zero(tmp_path: Path, known: bool, ruled_out: bool) -> None:
    scene = Scene().counter("vmstat", "pgfault", 2_000, calm_per_s=2_000)
    scene.hog(f"{FAULT} __alloc_pages_direct_compact try_to_compact_pages compact_zone isolate_migratepages_block")
    if known:
        scene.counter("vmstat", "compact_stall", 0).counter("vmstat", "compact_migrate_scanned", 0)
    incident = only(scene.diagnose(tmp_path))
    assert ("thp-compaction" in {one.pattern for one in incident.ruled_out}) == ruled_out

"""The same cause on kernels from 3.10 to 7.0 and on arm64: its functions have other names there, and the same answer.

Each row is a path as that kernel shows it. The counters that confirm it are the same, so a row that is not named is a
name that nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.scenes import Scene

from zombiescope._native import context_of, plain_name
from zombiescope.diagnosis import patterns
from zombiescope.diagnosis.hog import WAITING
from zombiescope.diagnosis.incident import Cause
from zombiescope.diagnosis.sample_index import expanded

READ_3_10 = "system_call_fastpath sys_read vfs_read"
READ_4_14 = "entry_SYSCALL_64_fastpath SyS_read vfs_read __vfs_read kernfs_fop_read seq_read"
READ_4_19 = "entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_read ksys_read vfs_read seq_read kernfs_seq_show"
READ_6 = "entry_SYSCALL_64_after_hwframe do_syscall_64 ksys_read vfs_read seq_read_iter"
ARM64 = "el0t_64_sync el0t_64_sync_handler el0_svc do_el0_svc el0_svc_common invoke_syscall"
KSWAPD = "ret_from_fork kthread kswapd balance_pgdat"
CHARGE = "entry_SYSCALL_64_after_hwframe do_syscall_64 vfs_read filemap_add_folio"

Told = Callable[[Scene], Scene]


def zombies(scene: Scene) -> Scene:
    return scene.census(240, 20_000).leak("/ecs/*", 20_000, 500, 500, "ecs-agent")


def limit(scene: Scene) -> Scene:
    return scene.cgroup_stats("/agent.slice/job", memory_max_events=400_000, has_memory_limit=1)


def scanned(scene: Scene) -> Scene:
    return scene.vmstat(pgscan_kswapd=400_000)


def spinning(scene: Scene) -> Scene:
    path = "kthread kswapd balance_pgdat shrink_node cgroup_rstat_flush native_queued_spin_lock_slowpath"
    for cpu in (0, 2, 3):
        scene.hog(path, f"kswapd{cpu}", cpu=cpu, pid=40 + cpu, ppid=2)
    return scene


ZOMBIE = "zombie-memcg"
ROWS = [
    # Readers of statistics, which walked every memory cgroup: the root's usage until 5.1, as the files of v1 and v2.
    ("3.10.0-1160.el7", f"{READ_3_10} cgroup_seqfile_show memcg_stat_show mem_cgroup_iter", zombies, ZOMBIE),
    ("3.10.0-1160.el7", f"{READ_3_10} mem_cgroup_read mem_cgroup_recursive_stat mem_cgroup_iter", zombies, ZOMBIE),
    ("4.14.0", f"{READ_4_14} memcg_stat_show mem_cgroup_nr_lru_pages mem_cgroup_node_nr_lru_pages", zombies, ZOMBIE),
    ("4.14.0", f"{READ_4_14} memory_stat_show tree_stat mem_cgroup_iter", zombies, ZOMBIE),
    ("4.19.81", f"{READ_4_19} mem_cgroup_read_u64 mem_cgroup_usage mem_cgroup_iter", zombies, ZOMBIE),
    ("4.19.81", f"{READ_4_19} memcg_stat_show accumulate_memcg_tree memcg_page_state", zombies, ZOMBIE),
    ("4.19.81", f"{READ_4_19} memory_stat_show accumulate_memcg_tree", zombies, ZOMBIE),
    ("5.1.0", f"{READ_4_19} mem_cgroup_read_u64 mem_cgroup_usage mem_cgroup_iter", zombies, ZOMBIE),
    # Reclaim by generations: with mem_cgroup_iter in 6.1, with a list of its own from 6.3 on.
    ("6.1.0", f"{KSWAPD} lru_gen_age_node mem_cgroup_iter css_next_descendant_pre", zombies, ZOMBIE),
    ("6.6.0", f"{KSWAPD} shrink_node lru_gen_shrink_node shrink_many shrink_one", zombies, ZOMBIE),
    ("6.12.0", f"{KSWAPD} shrink_node shrink_many lru_gen_rotate_memcg", zombies, ZOMBIE),
    ("7.0.0", f"{KSWAPD} shrink_node lru_gen_shrink_node shrink_many mem_cgroup_iter", zombies, ZOMBIE),
    ("6.6.0", f"{KSWAPD} shrink_node shrink_many shrink_one try_to_shrink_lruvec evict_folios shrink_folio_list",
     scanned, "global-reclaim"),
    ("3.10.0-1160.el7", f"{KSWAPD} kswapd_shrink_zone shrink_zone shrink_lruvec", scanned, "global-reclaim"),
    # Limits.
    ("3.10.0-1160.el7", "page_fault do_page_fault __mem_cgroup_try_charge mem_cgroup_do_charge mem_cgroup_reclaim",
     limit, "memcg-limit-reclaim"),
    ("6.18.0", "exit_to_user_mode_loop __mem_cgroup_handle_over_high reclaim_high try_to_free_mem_cgroup_pages", limit,
     "memcg-limit-reclaim"),
    # rstat, carried back by distributions to releases below 5.13.
    ("4.18.0-553.el8", f"{READ_4_19} memory_stat_show cgroup_rstat_flush cgroup_rstat_flush_locked", spinning,
     "rstat-lock"),
    # Address spaces, on kernels before 5.3 and on arm64.
    ("4.19.81", "page_fault do_page_fault __do_page_fault down_read call_rwsem_down_read_failed rwsem_down_read_failed",
     lambda s: s.vmstat(pgfault=700_000), "page-fault-storm"),
    ("6.12.0", "el0t_64_sync el0t_64_sync_handler el0_da do_mem_abort do_translation_fault do_page_fault"
     " handle_mm_fault do_anonymous_page __pi_clear_page",
     lambda s: s.vmstat(pgfault=700_000).hog(f"{ARM64} __arm64_sys_munmap zap_pte_range", cgroup="/agent.slice/job",
                                             share=0.2), "page-fault-storm"),
    ("6.12.0", f"{ARM64} __arm64_sys_munmap unmap_page_range zap_pte_range", lambda s: s.vmstat(pgfault=700_000),
     "page-fault-storm"),
    # Mounts, asked for one by one.
    ("6.12.0", "entry_SYSCALL_64_after_hwframe do_syscall_64 __do_sys_statmount do_statmount", None, "mount-storm"),
    ("6.12.0", f"{ARM64} __arm64_sys_listmount do_listmount", None, "mount-storm"),
    # TLBs: in one address space of many threads.
    ("4.19.81", "do_syscall_64 __x64_sys_munmap flush_tlb_mm_range native_flush_tlb_others smp_call_function_many",
     lambda s: s.interrupts("TLB", 90_000, calm_per_s=300), "tlb-shootdown"),
    ("5.4.0", "do_syscall_64 __x64_sys_munmap flush_tlb_mm_range hyperv_flush_tlb_others",
     lambda s: s.interrupts("TLB", 3), "tlb-shootdown"),
    ("6.6.0", "do_syscall_64 __x64_sys_munmap flush_tlb_mm_range hyperv_flush_tlb_multi",
     lambda s: s.interrupts("TLB", 3), "tlb-shootdown"),
    ("6.18.0", "do_syscall_64 __x64_sys_munmap flush_tlb_mm_range broadcast_tlb_flush",
     lambda s: s.interrupts("TLB", 3), "tlb-shootdown"),
    # Services of IPVS, where a distribution carried the thread back.
    ("5.14.0-503.el9", "ret_from_fork kthread ip_vs_estimation_kthread ip_vs_tick_estimation",
     lambda s: s.mode(1, softirq=0.0), "ipvs-estimator"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "frames", "told", "pattern"), ROWS, ids=[f"{row[0]} {row[1].split()[-1]}" for row in ROWS]
)
def test_it_is_named_on_that_kernel(kernel: str, frames: str, told: Told | None, pattern: str, tmp_path: Path) -> None:
    scene = Scene(kernel=kernel).hog(frames, cgroup="/agent.slice/job")
    causes = found(told(scene) if told else scene, tmp_path)
    assert any(cause.pattern == pattern and cause.confidence > 0.5 for cause in causes), shown(causes)


@pytest.mark.parametrize(
    ("kernel", "frames"),
    [
        ("5.10.0", f"{READ_6} memcg_numa_stat_show mem_cgroup_nr_lru_pages"),
        ("5.15.0", f"{READ_6} memcg_stat_show memcg_page_state"),
        ("6.12.0", f"{READ_6} memory_stat_show memory_stat_format memcg_page_state"),
        ("6.6.0", f"{KSWAPD} shrink_node shrink_many shrink_one try_to_shrink_lruvec evict_folios shrink_folio_list"),
    ],
    ids=["numa_stat from 5.8 on", "stat from 5.2 on", "stat of v2", "pages, not cgroups"],
)
def test_a_kernel_that_does_not_walk_is_not_blamed_for_zombies(kernel: str, frames: str, tmp_path: Path) -> None:
    causes = found(zombies(Scene(kernel=kernel).hog(frames)), tmp_path)
    assert not any(cause.pattern == "zombie-memcg" and cause.confidence > 0.5 for cause in causes), shown(causes)


def test_a_walk_that_was_sampled_is_believed_whatever_the_release_says(tmp_path: Path) -> None:
    frames = f"{READ_6} memcg_numa_stat_show mem_cgroup_iter"
    causes = found(zombies(Scene(kernel="5.10.0-vendor").hog(frames)), tmp_path)
    assert causes[0].pattern == "zombie-memcg", shown(causes)


@pytest.mark.parametrize(
    "wait",
    [
        "_raw_spin_lock",
        "_raw_spin_lock_irqsave __ticket_lock_spinning kvm_lock_spinning",
        "down_write call_rwsem_down_write_failed rwsem_down_write_failed",
        "down_read rwsem_down_read_slowpath",
        "_raw_spin_lock native_queued_spin_lock_slowpath",
        "on_each_cpu smp_call_function_many",
    ],
)
def test_who_waits_is_not_the_hog_on_any_kernel(wait: str, tmp_path: Path) -> None:
    assert set(wait.split()) & WAITING
    scene = Scene(kernel="4.1.0").hog(f"do_syscall_64 SyS_read {wait}", "victim", pid=3000)
    scene.hog("do_syscall_64 SyS_write proc_sys_write drop_slab", "worker", cpu=2, pid=4000)
    hogs = {cause.hog.comm for cause in found(scene, tmp_path) if cause.hog is not None}
    assert hogs == {"worker"}


@pytest.mark.parametrize(
    "entry",
    ["sys_munmap", "SyS_munmap", "__x64_sys_munmap", "__arm64_sys_munmap", "__ia32_sys_munmap", "__do_sys_munmap"],
)
def test_a_system_call_has_one_name(entry: str) -> None:
    known = {entry, "__x64_sys_munmapped", "vfs_read"}
    assert expanded(frozenset({"sys_munmap"}), known) == {entry}


@pytest.mark.parametrize(
    ("name", "context"), [("cpuidle_enter_state.isra.0", 1), ("irq_exit.part.0", 2), ("do_idled", 0)]
)
def test_a_clone_of_the_idle_loop_is_the_idle_loop(name: str, context: int) -> None:
    assert context_of(name) == context


@pytest.mark.parametrize(
    "shown_as",
    ["isra.0", "constprop.0", "part.0", "cold", "cold.12", "isra.0.part.3", "constprop.0.cold", "llvm.123456789",
     "lto_priv.0", "localalias", "llvm.5.cold", "__uniq.31415926.llvm.27182818"],
)  # fmt: skip
def test_what_a_compiler_adds_is_no_part_of_a_name(shown_as: str) -> None:
    assert plain_name(f"mem_cgroup_usage.{shown_as}") == "mem_cgroup_usage"
    assert plain_name("bpf_prog_6deef7357e7b4530_sys.enter") == "bpf_prog_6deef7357e7b4530_sys.enter"


def test_every_name_in_a_signature_is_as_a_kernel_shows_it() -> None:
    """A suffix, a space or a prefix of one architecture in a signature would never match."""
    for pattern in patterns.every():
        for one in pattern.signatures:
            for name in one.outer | one.inner | one.proof:
                assert plain_name(name.rstrip("*")) == name.rstrip("*"), (pattern.id, name)
                assert not name.startswith(("__x64_", "__arm64_", "__ia32_", "SyS_")), (pattern.id, name)


def found(scene: Scene, place: Path) -> list[Cause]:
    return [cause for incident in scene.diagnose(place).incidents for cause in incident.causes]


def shown(causes: list[Cause]) -> list[tuple[str, float]]:
    return [(cause.pattern, cause.confidence) for cause in causes]

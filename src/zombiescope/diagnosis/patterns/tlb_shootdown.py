"""Threads of one address space unmap memory, and every core that runs one of them is interrupted for it."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import interrupt, unusual
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.memory_work import SHORTAGE
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_below, measured, signature
from zombiescope.diagnosis.thresholds import TLB_FEW_PER_S, TLB_MANY_PER_S, TLB_SILENT_CORES
from zombiescope.model.plans.step import advice, command, note

_FLUSH = (
    "flush_tlb_mm_range flush_tlb_func arch_tlbbatch_flush flush_tlb_page native_flush_tlb_multi "
    "native_flush_tlb_others"
    " tlb_finish_mmu tlb_flush_mmu ptep_clear_flush try_to_unmap_flush flush_tlb_multi flush_tlb_kernel_range"
)
_SEND = (
    "smp_call_function_many_cond on_each_cpu_cond_mask smp_call_function_many native_flush_tlb_multi"
    " __x2apic_send_IPI_mask x2apic_send_IPI_mask native_send_call_func_ipi default_send_IPI_mask_sequence_phys"
    " native_flush_tlb_others kvm_flush_tlb_multi kvm_flush_tlb_others uv_flush_tlb_others"
)
_HYPERVISOR = (
    "hyperv_flush_tlb_multi hyperv_flush_tlb_others hyperv_flush_tlb_others_ex xen_flush_tlb_multi xen_flush_tlb_others"
)
"""Others until 5.12, multi from 5.13 on (4ce94eabac16). The host flushes, and no guest core is interrupted."""
_BROADCAST = "broadcast_tlb_flush invlpgb_tlb_flush invlpgb_flush_user_nr_nosync invlpgb_kernel_range_flush"
"""AMD from 6.15 on (4afeb0ed1753): the processor tells the others, and nobody is interrupted."""


def examine(case: Case) -> Evidence:
    silent = _silent(case)
    what = "waits until their cores have flushed it" if silent else "interrupts their cores for it"
    return Evidence(
        (silent or _interrupts(case), *_reclaims(case)),
        case.answerable_hog,
        f"{case.hog.name} unmaps memory that its threads share, and {what}",
        Fix(
            "unmap less: keep memory in the allocator, or use processes instead of threads",
            (
                command("grep TLB /proc/interrupts"),
                advice("glibc: start it with MALLOC_TRIM_THRESHOLD_=-1 MALLOC_MMAP_THRESHOLD_=4294967296"),
                note("a core that answers late is the victim of something else: zombiescope cores --at TIME"),
            ),
        ),
    )


def _interrupts(case: Case) -> Measurement:
    return unusual(
        case,
        "TLB shootdowns",
        "TLB of /proc/interrupts",
        case.interrupts("TLB"),
        interrupt("TLB"),
        _FLUSH,
        least=TLB_MANY_PER_S,
        refutes_below=TLB_FEW_PER_S,
        source="interrupts",
    )


def _reclaims(case: Case) -> list[Measurement]:
    """Memory that is taken away from a program has to be flushed as well; then whoever needs it is the cause."""
    flushed = case.profile.total(*_FLUSH.split())
    for_memory = case.profile.under(SHORTAGE.functions, frozenset(_FLUSH.split()))
    if 2 * for_memory <= flushed:
        return []
    part = for_memory / flushed
    text = f"{part * 100:.0f}% of the flushing is done to free memory"
    return [measured(text, round(part, 4), "ratio", "samples", False)]


def _silent(case: Case) -> Measurement | None:
    """Where the host or the processor flushes nothing is in /proc/interrupts, and the time itself is the proof."""
    names = f"{_HYPERVISOR} {_BROADCAST}"
    profile = case.profile
    if profile.total(*names.split()) <= profile.under(frozenset(_FLUSH.split()), frozenset(_SEND.split())):
        return None
    return cpu_below(case, "flushing TLBs without an interrupt", names, confirms_from=TLB_SILENT_CORES)


PATTERN = Pattern(
    id="tlb-shootdown",
    title="Unmapping memory interrupts other cores",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="munmap, madvise or mprotect of a program with many threads waits until every core that runs one of "
    "them has flushed the pages from its TLB.",
    confirmed_by="10,000 more TLB shootdowns per second than usual (without a baseline, the hog's own share counts, "
    "and counts half); or a fifth of a core, if the host or the processor flushes without interrupts.",
    refuted_by="Fewer than 1,000 per second: then one core does not answer; examine that core. Or most of the flushing "
    "is done to free memory.",
    remedy="Keep memory in the allocator, batch unmapping, and use fewer threads per address space.",
    stop_gap="run it on fewer cores (taskset), so that fewer have to answer",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(_FLUSH, _SEND, means="other cores are made to flush pages from their TLB"),
        signature(_HYPERVISOR, means="the hypervisor flushes the TLB of other cores on request"),
        signature(_BROADCAST, means="the processor flushes the TLB of other cores, and this core waits for it"),
    ),
    least_share=0.12,
    culprit="The program that unmaps.",
    known_from="kubernetes 65142 (the victim of a stuck core); measured on 6.18",
)

"""Somebody reads smaps, smaps_rollup or pagemap of a large process: the kernel visits every page of it in one call."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, level, signature
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import SMAPS_LARGE_BYTES, SMAPS_READ_CORES, SMAPS_SMALL_BYTES
from zombiescope.model.plans.step import command

_WALK = (
    "smap_gather_stats walk_page_range walk_page_vma walk_page_mapping smaps_pte_range smaps_account "
    "smaps_page_accumulate"
    " vm_normal_page pagemap_pmd_range pagemap_read gather_pte_stats clear_refs_pte_range m_next __walk_page_range"
    " pagemap_scan_pmd_entry"
)
_FILES = (
    "show_smaps_rollup show_smap show_smaps show_pid_smap show_numa_map pagemap_read do_pagemap_cmd do_pagemap_scan"
    " clear_refs_write"
)
"""show_pid_smap until 4.18; do_pagemap_scan is PAGEMAP_SCAN, from 6.7 on."""


def examine(case: Case) -> Evidence:
    return Evidence(
        (_mapped(case), _reading(case)),
        case.answerable_hog,
        f"{case.hog.name} repeatedly reads the page tables of a large process (smaps, smaps_rollup or pagemap)",
        Fix(
            f"turn off in {case.hog.name} what reads smaps: proportional memory (PSS), referenced memory, swap by "
            "process",
            (
                *(
                    (command(shell("ps", "-o", "pid,lstart,args", "-p", case.hog.pid), "how it was started"),)
                    if case.hog.pid
                    else ()
                ),
                command("ps -eo pid,rss,comm --sort=-rss | head", "whose pages are walked: 14 to 22 ms a GB and read"),
            ),
        ),
    )


def _mapped(case: Case) -> Measurement:
    """Every large node has gigabytes of it, so much of it proves nothing; next to none of it refutes."""
    return level(
        "{} bytes of anonymous or shared memory are in use, of which a read may visit all",
        _most(case),
        "bytes",
        "counters",
        refutes_below=SMAPS_SMALL_BYTES,
    )


def _most(case: Case) -> int | None:
    """Anonymous or shared memory of all processes: the most that one walk can visit."""
    parts = [case.peak("meminfo", name, fresh=True) for name in ("anon_pages_bytes", "shmem_bytes")]
    return max((part for part in parts if part is not None), default=None)


def _reading(case: Case) -> Measurement:
    """These functions serve nothing else, so the hog's own time in them is the proof, where there is something large
    to walk."""
    cores, most = case.cores_in(*_FILES.split(), chosen=case.hog_samples), _most(case)
    enough = cores is not None and cores >= SMAPS_READ_CORES and most is not None and most >= SMAPS_LARGE_BYTES
    return cpu_used(f"it read smaps for {{}} in {case.seconds:.1f} s", cores, True if enough else None)


PATTERN = Pattern(
    id="smaps-reader",
    title="A monitoring agent walks the pages of a large process",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="An agent that reads /proc/PID/smaps, smaps_rollup or pagemap of a process with many gigabytes holds a "
    "core in the kernel: about 4.5 s for 200 GB, in one system call, at every scrape.",
    confirmed_by="The hog uses 0.3 of a CPU or more in such reads, while 1 GB or more of anonymous or shared memory is "
    "in use.",
    refuted_by="Less than 64 MB is in use: then no process is large enough for the walk to matter.",
    remedy="Turn off the metric that needs smaps (PSS, referenced memory), or exclude the large processes from it.",
    stop_gap="pause the agent while jobs run, or move it off the cores that serve the network card",
    examine=examine,
    signatures=(signature(_FILES, _WALK, means="the pages of a process are counted for a file in /proc"),),
    hog="The reader.",
    culprit="The reader; the large process is not at fault.",
    known_from="process-exporter 246, telegraf 15295, datadog-agent 41946, cadvisor 2622; measured on 6.18",
)

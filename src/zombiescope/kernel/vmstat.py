"""/proc/vmstat: what the memory management has done since boot, and a few gauges.

Fields: FIELDS, a choice of the roughly 190 that a kernel prints: faults, reclaim, allocation stalls,
compaction, huge pages, NUMA balancing, writeback, OOM kills, and the marks that drop_caches leaves. Names
are the kernel's; names starting with nr_ are gauges in pages, the rest count up. Older kernels count
reclaim and stalls per zone (pgscan_direct_normal): such columns are summed under the name without the zone.

Cost: one read of about 4 kB; the kernel folds its per-CPU event counters for it, a few microseconds a CPU.
Absence: a field that the kernel lacks is None (oom_kill before v4.13, numa_* without NUMA balancing).
"""

from zombiescope.kernel.procfile import at, number, read_file

FIELDS = (
    # faults and allocation
    "pgfault",
    "pgmajfault",
    "pgalloc",
    "pgfree",
    "allocstall",
    "oom_kill",
    # reclaim
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_khugepaged",
    "pgscan_proactive",
    "pgscan_direct_throttle",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgsteal_khugepaged",
    "pgsteal_proactive",
    "kswapd_low_wmark_hit_quickly",
    "kswapd_high_wmark_hit_quickly",
    "pageoutrun",
    "slabs_scanned",
    "workingset_refault_anon",
    "workingset_refault_file",
    "drop_pagecache",
    "drop_slab",
    # swap and writeback
    "pswpin",
    "pswpout",
    "nr_dirty",
    "nr_writeback",
    "nr_dirtied",
    "nr_written",
    "nr_dirty_threshold",
    # compaction, huge pages
    "compact_stall",
    "compact_fail",
    "compact_success",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_daemon_wake",
    "pgmigrate_success",
    "pgmigrate_fail",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "thp_split_page",
    # NUMA
    "numa_miss",
    "numa_foreign",
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_pages_migrated",
)

_ZONES = ("dma", "dma32", "normal", "high", "movable", "device")
_PER_ZONE = (
    "pgalloc",
    "allocstall",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
)


def _sources() -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """Each field with the names under which kernels have printed it, to be added up."""
    sources = {field: [field] for field in FIELDS}
    for field in _PER_ZONE:
        sources[field].extend(f"{field}_{zone}" for zone in _ZONES)
    # One refault counter until v5.9 split it (170b04b7ae49); it counted file pages.
    sources["workingset_refault_file"].append("workingset_refault")
    return tuple((field, tuple(name.encode() for name in sources[field])) for field in FIELDS)


_SOURCES = _sources()


def parse(data: bytes) -> dict[str, int | None]:
    """Every field of FIELDS, in that order; None where the text does not have it whole."""
    words = data[: data.rfind(b"\n") + 1].split()
    values = dict(zip(words[::2], words[1::2], strict=False))
    return {field: _sum(values, names) for field, names in _SOURCES}


def _sum(values: dict[bytes, bytes], names: tuple[bytes, ...]) -> int | None:
    if len(names) == 1:
        return number(values.get(names[0], b""))
    found = [value for name in names if (value := number(values.get(name, b""))) is not None]
    return sum(found) if found else None


def read(root: str = "/") -> dict[str, int | None] | None:
    data = read_file(at(root, "proc/vmstat"))
    return None if data is None else parse(data)

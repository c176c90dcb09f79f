"""/proc/meminfo: where the node's memory is, in bytes.

Fields: FIELDS, those that a leak of cgroups or of kernel memory moves (Percpu, Slab, KernelStack), and the
ones that show pressure and writeback. Percpu is the sign of dying memory cgroups on large machines.

Cost: one read of about 1.5 kB; the kernel walks its per-CPU counters for some rows. Absence: a row that the
kernel lacks is None (MemAvailable before v3.14, Percpu before v4.19, 7e8a6304d541).
"""

from zombiescope.kernel.procfile import at, number, read_file

FIELDS = {
    "mem_total_bytes": b"MemTotal",
    "mem_free_bytes": b"MemFree",
    "mem_available_bytes": b"MemAvailable",
    "buffers_bytes": b"Buffers",
    "cached_bytes": b"Cached",
    "swap_total_bytes": b"SwapTotal",
    "swap_free_bytes": b"SwapFree",
    "dirty_bytes": b"Dirty",
    "writeback_bytes": b"Writeback",
    "anon_pages_bytes": b"AnonPages",
    "anon_huge_pages_bytes": b"AnonHugePages",
    "shmem_bytes": b"Shmem",
    "slab_bytes": b"Slab",
    "slab_reclaimable_bytes": b"SReclaimable",
    "slab_unreclaimable_bytes": b"SUnreclaim",
    "kernel_stack_bytes": b"KernelStack",
    "page_tables_bytes": b"PageTables",
    "percpu_bytes": b"Percpu",
}
"""Our name -> the kernel's row."""


def parse(data: bytes) -> dict[str, int | None]:
    """Every field of FIELDS, in that order; None where the text does not have it whole."""
    rows: dict[bytes, int] = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        words = line.split()
        if len(words) == 3 and words[2] == b"kB" and (value := number(words[1])) is not None:
            rows[words[0][:-1]] = value * 1024
    return {field: rows.get(name) for field, name in FIELDS.items()}


def read(root: str = "/") -> dict[str, int | None] | None:
    data = read_file(at(root, "proc/meminfo"))
    return None if data is None else parse(data)

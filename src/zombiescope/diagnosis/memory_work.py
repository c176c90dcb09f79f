"""Which work with memory the kernel does for a task, told apart by the functions on its stacks.

Page faults alone say little: a job that starts fills new memory and pins some of it for a GPU, a data loader passes
its batches through shared memory, a program that reads a mapped file faults for every page, and a job that ends has
all of its memory freed. Healthy nodes do that all day. It is trouble where memory is taken and given back again and
again, where it comes back from swap, or where reclaim and compaction run below the fault.

A stack is of the first kind that one of its functions belongs to, so what runs below is named by what it is done for: a
fault that pinning takes is pinning, and unmapping at the exit of a process is its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zombiescope.diagnosis.kernel_profile import KernelProfile


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    does: str
    """What the task does, as the end of a sentence that begins with its name."""
    functions: frozenset[str]
    is_ordinary: bool = True
    advice: str = ""
    """What to do where there is too much of it."""


def _kind(name: str, does: str, functions: str, *, is_ordinary: bool = True, advice: str = "") -> Kind:
    return Kind(name, does, frozenset(functions.split()), is_ordinary, advice)


SHORTAGE = _kind(
    "shortage",
    "waits until memory is freed or moved",
    "try_to_free_pages try_to_free_mem_cgroup_pages __alloc_pages_direct_reclaim __alloc_pages_direct_compact"
    " compact_zone balance_pgdat shrink_node shrink_slab mem_cgroup_iter css_next_descendant_pre out_of_memory"
    " mem_cgroup_out_of_memory do_numa_page do_huge_pmd_numa_page",
    is_ordinary=False,
)
"""Other patterns tell which."""
CORE_DUMP = _kind(
    "core dump",
    "crashed, and the kernel writes its core dump",
    "do_coredump vfs_coredump elf_core_dump dump_user_range dump_emit dump_emit_page coredump_write",
    is_ordinary=False,
)
"""A pattern of its own: core-dump."""
LOCK = _kind(
    "lock",
    "waits for its address space",
    "rwsem_down_read_slowpath rwsem_down_write_slowpath rwsem_spin_on_owner rwsem_optimistic_spin"
    " rwsem_down_read_failed rwsem_down_write_failed call_rwsem_down_read_failed call_rwsem_down_write_failed",
    is_ordinary=False,
)
START = _kind(
    "start",
    "starts processes",
    "kernel_clone _do_fork do_fork copy_process sys_execve sys_execveat do_execveat_common __do_execve_file bprm_execve"
    " do_execve_common",
    is_ordinary=False,
)
"""Faults and exits below these are of the storm of processes, if it is one."""
DEVICE = _kind(
    "device",
    "gives back what it held of a GPU",
    "nvidia_close nvidia_close_callback nvidia_close_deferred nvidia_frontend_close nv_close_device uvm_release"
    " uvm_va_space_destroy amdgpu_driver_postclose_kms kfd_process_wq_release",
    advice="a job that starts and ends all the time can keep its process, and with it the GPU",
)
EXIT = _kind(
    "exit",
    "ended, and the kernel frees its memory",
    "do_exit do_group_exit exit_mm exit_mmap __mmput mmput_async_fn __oom_reap_task_mm oom_reaper exec_mmap",
    advice="freeing takes about 50 ms a GB with small pages, and hardly any with huge ones",
)
PINNING = _kind(
    "pinning",
    "pins memory for a device",
    "pin_user_pages pin_user_pages_fast pin_user_pages_remote get_user_pages internal_get_user_pages_fast"
    " gup_fast_fallback __gup_longterm_locked __get_user_pages __get_user_pages_locked os_lock_user_pages ib_umem_get"
    " ib_umem_get_peer vfio_pin_pages_remote io_sqe_buffers_register populate_vma_page_range __mm_populate"
    " nv_lock_user_pages unpin_user_pages unpin_user_page_range_dirty_lock",
    advice="pin once and reuse the buffers (PyTorch: pin_memory with persistent_workers); huge pages pin faster",
)
DRIVER = _kind(
    "driver",
    "has the GPU driver at work for it",
    "nvidia_ioctl nvidia_unlocked_ioctl nvidia_frontend_unlocked_ioctl uvm_ioctl uvm_unlocked_ioctl"
    " uvm_unlocked_ioctl_entry nvidia_mmap uvm_fault amdgpu_drm_ioctl kfd_ioctl nvidia_open rm_init_adapter",
    advice="allocating and freeing GPU memory in every step keeps the driver busy: let the framework cache it",
)
SWAP = _kind(
    "swap",
    "waits for pages that come back from swap",
    "do_swap_page swapin_readahead swap_read_folio swap_readpage swap_cluster_readahead",
    is_ordinary=False,
    advice="it has too little memory: see what pushes it out to swap, and raise memory.low of its cgroup",
)
SHARED = _kind(
    "shared",
    "fills shared memory (tmpfs, /dev/shm)",
    "shmem_fault shmem_get_folio_gfp shmem_getpage_gfp shmem_get_folio shmem_getpage shmem_fallocate shmem_write_begin"
    " shmem_file_write_iter shmem_undo_range shmem_truncate_range shmem_evict_inode",
    advice="shared memory is not malloc's: reuse the segments that batches travel in (PyTorch: fewer workers, "
    "larger batches, persistent_workers=True), or let /dev/shm have huge pages (mount -o remount,huge=within_size)",
)
FILE = _kind(
    "file",
    "reads mapped files, page by page",
    "filemap_fault filemap_map_pages do_fault_around do_read_fault do_shared_fault do_cow_fault xfs_filemap_fault"
    " ext4_filemap_fault",
    advice="read() or MAP_POPULATE takes many pages at once where a mapped file costs a fault for each few",
)
COPY = _kind(
    "copy",
    "copies pages that it shared with the process that forked it",
    "do_wp_page wp_page_copy do_huge_pmd_wp_page",
    advice="fork before memory is filled, or use spawn or forkserver",
)
RELEASE = _kind(
    "release",
    "gives memory back",
    "sys_munmap vm_munmap __vm_munmap do_munmap __do_munmap do_mas_munmap do_vmi_munmap sys_madvise do_madvise"
    " madvise_dontneed_free zap_page_range zap_page_range_single do_brk_munmap do_vmi_align_munmap sys_brk"
    " sys_mremap",
    is_ordinary=False,
)
NEW = _kind(
    "new",
    "touches memory for the first time",
    "do_anonymous_page do_huge_pmd_anonymous_page alloc_anon_folio clear_huge_page folio_zero_user hugetlb_fault"
    " hugetlb_no_page handle_mm_fault asm_exc_page_fault exc_page_fault do_user_addr_fault __do_page_fault"
    " do_page_fault async_page_fault page_fault do_mem_abort do_translation_fault",
    is_ordinary=False,
)
"""Ordinary only as long as it is kept: memory that grows is a job that starts."""

KINDS = (
    CORE_DUMP, SHORTAGE, LOCK, START, DEVICE, EXIT, PINNING, DRIVER, SWAP, SHARED, FILE, COPY, RELEASE, NEW,
)  # fmt: skip


def kinds(profile: KernelProfile) -> dict[Kind, int]:
    """Samples of each kind of work, the most first; each sample is of one kind or of none."""
    left = profile.counts.copy()
    found: dict[Kind, int] = {}
    for kind in KINDS:
        mine = profile.known.with_function(kind.functions)
        if count := int(left[mine].sum()):
            found[kind] = count
            left = np.where(mine, 0, left)
    return dict(sorted(found.items(), key=lambda item: -item[1]))

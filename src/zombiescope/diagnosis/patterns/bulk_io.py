"""A program reads or writes files as fast as it can, or the kernel writes back what it wrote: a checkpoint, a copy, a
data loader that fills the page cache. Healthy nodes do that."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case, is_kernel_thread
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.memory_work import SHORTAGE
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, signature
from zombiescope.diagnosis.thresholds import BULK_IO_SHARE
from zombiescope.model.plans.step import advice, command

_READS = (
    "filemap_read generic_file_buffered_read do_generic_file_read generic_file_read_iter page_cache_ra_unbounded"
    " page_cache_ra_order force_page_cache_ra filemap_splice_read iomap_dio_rw blkdev_direct_IO"
)
_WRITES = (
    "generic_perform_write iomap_file_buffered_write ext4_buffered_write_iter xfs_file_buffered_write"
    " btrfs_buffered_write generic_file_write_iter copy_file_range vfs_copy_file_range"
)
_WRITES_BACK = (
    "wb_workfn writeback_sb_inodes do_writepages ext4_writepages iomap_writepages xfs_vm_writepages btrfs_work_helper"
    " vfs_fsync_range sync_inodes_sb"
)


def examine(case: Case) -> Evidence:
    worker = case.hog_task is not None and is_kernel_thread(case.hog_task)
    culprit = case.caller(*_WRITES.split()) if worker else case.answerable_hog
    does = "writes back what was written to files" if worker else "reads or writes files as fast as it can"
    return Evidence(
        (_copying(case),),
        culprit,
        f"{case.hog.name} {does}" + (f"; {culprit.subject} wrote most of it" if worker and culprit else ""),
        Fix(
            "nothing has to be done, unless it happens all the time",
            (
                command("cat /proc/pressure/io", "whether tasks wait for a disk"),
                advice("large files that are read or written once: O_DIRECT, or posix_fadvise(POSIX_FADV_DONTNEED)"),
            ),
        ),
        is_ordinary=True,
    )


def _copying(case: Case) -> Measurement:
    """Without what goes into looking for memory: that is trouble, and other patterns'."""
    grid, names = case.facts.samples, f"{_READS} {_WRITES} {_WRITES_BACK}".split()
    mine = case.hog_samples & case.below(*names) & ~grid.with_function(*SHORTAGE.functions)
    profile = grid.profile(mine)
    share = case.profile.share(profile.kernel_samples)
    cores = profile.kernel_samples / case.facts.hz / case.seconds
    text = f"reading, writing and writing back files is {share * 100:.0f}% of its kernel time: {{}}"
    return cpu_used(text, cores if case.facts.is_sampled else None, share >= BULK_IO_SHARE)


PATTERN = Pattern(
    id="bulk-io",
    title="Files are read or written as fast as possible",
    proof="literature",
    looks_like="A checkpoint is written, a dataset is read through the page cache, or kworkers write dirty pages back. "
    "On every healthy node this may keep a core in the kernel for seconds.",
    confirmed_by="60% of the hog's kernel time goes into copying to and from files and writing back. Reported as a "
    "note (`info`) unless something suffers from it.",
    refuted_by="Less than that.",
    remedy="Nothing, unless it happens all the time; then read and write past the page cache.",
    no_stop_gap="it is ordinary work, and harmless unless another incident is reported",
    examine=examine,
    signatures=(
        signature(_READS, means="files are read"),
        signature(_WRITES, means="files are written"),
        signature(_WRITES_BACK, means="files are written back"),
    ),
    hog="The process that copies, or the kworker that writes back.",
    culprit="The process that writes; a kworker works for others.",
    known_from="checkpoints and page-cache readers of training nodes",
)

"""What a task waits for, by the kernel functions that it waits in: the kind of thing, not yet which one.

The whole stack is searched where it could be read, and the most telling function counts: a task that waits for a lock
below nfs_ waits for NFS. Where only wchan could be read there is one function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from zombiescope.kernel.blocked_task import Frame

FUSE_WAITS = frozenset({"request_wait_answer", "fuse_get_req", "fuse_block_alloc", "fuse_dev_uring_wait"})
"""A request of FUSE is waited for in state S until the first signal comes, so D alone would miss it."""

_MODULES = {
    "nvidia": "gpu", "nvidia_uvm": "gpu", "nvidia_modeset": "gpu", "amdgpu": "gpu", "habanalabs": "gpu",
    "nfs": "nfs", "nfsv3": "nfs", "nfsv4": "nfs", "sunrpc": "nfs", "fuse": "fuse", "virtiofs": "fuse", "ceph": "ceph",
    "libceph": "ceph", "cifs": "cifs", "lustre": "lustre", "osc": "lustre", "ptlrpc": "lustre", "mdc": "lustre",
    "lov": "lustre", "obdclass": "lustre", "9p": "9p", "9pnet": "9p", "mmfs26": "gpfs", "beegfs": "beegfs",
}  # fmt: skip

_NAMES = tuple(
    (kind, re.compile(names))
    for kind, names in (
        ("gpu", r"nv_|nvidia_|nvkms_|os_acquire_(mutex|rwlock|semaphore)|_nv\d+rm|rm_(ioctl|init|shutdown)|uvm_|"
                r"amdgpu_"),
        ("nfs", r"nfs\d?_|rpc_wait|__rpc_|rpc_|xprt_"),
        ("lustre", r"ll_|osc_|ptlrpc_|mdc_|lov_|ldlm_|cl_(sync_io|lock|io)|obd_"),
        ("ceph", r"ceph_|rbd_"),
        ("cifs", r"cifs_|SMB2_|smb2_|wait_for_response"),
        ("9p", r"p9_|v9fs_"),
        ("fuse", r"fuse_|__fuse_|request_wait_answer"),
        ("paused", r"__refrigerator|cgroup_freeze|do_freezer_trap"),
        ("vfork", r"wait_for_vfork_done|kernel_clone$|do_fork$|_do_fork$"),
        ("frozen", r"percpu_rwsem_wait|__percpu_down_read|percpu_down_read|__sb_start_write|sb_wait_write"),
        ("writeback", r"balance_dirty_pages"),
        ("swap", r"swap_read|swapin_|do_swap_page|swap_vma_readahead|swap_cluster_readahead"),
        ("journal", r"jbd2_|start_this_handle|wait_transaction|xlog_|xfs_log_|btrfs_commit_transaction"),
        ("disk", r"io_schedule|folio_wait_|wait_on_page_|__lock_page|bit_wait_io|submit_bio|blk_|blkdev_|rq_qos_|wbt_|"
                 r"__wait_on_buffer|wait_on_buffer|dio_|iomap_|md_|raid\d|bio_wait|submit_bh|__block_write|do_fsync"),
        ("lock", r"rwsem_|mutex_|__mutex|down_(read|write)|schedule_preempt_disabled|lock_mount|pipe_"),
    )
)  # fmt: skip


def kind_of(frames: Iterable[Frame], wchan: str | None) -> str | None:
    """None where the functions are of nothing that we know."""
    known = list(frames) or ([Frame(wchan)] if wchan else [])
    for frame in known:
        if frame.module in _MODULES:
            return _MODULES[frame.module]
    for kind, names in _NAMES:
        if any(names.match(frame.name) for frame in known):
            return kind
    return None

"""What a task waits for, by where it waits."""

from __future__ import annotations

import pytest

from zombiescope.kernel.blocked_task import Frame
from zombiescope.recorder.wait_kinds import kind_of


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ("rpc_wait_bit_killable nfs4_run_open_task vfs_open", "nfs"),
        ("rwsem_down_read_slowpath nfs_start_io_read nfs_file_read vfs_read", "nfs"),
        ("folio_wait_bit_common filemap_get_pages vfs_read", "disk"),
        ("jbd2_log_wait_commit ext4_sync_file do_fsync", "journal"),
        ("io_schedule_timeout balance_dirty_pages generic_perform_write", "writeback"),
        ("request_wait_answer __fuse_simple_request fuse_dentry_revalidate lookup_fast", "fuse"),
        ("fuse_fsync do_fsync", "fuse"),
        ("os_acquire_rwlock_write rm_ioctl nvidia_ioctl __x64_sys_ioctl", "gpu"),
        ("percpu_rwsem_wait __percpu_down_read ext4_file_write_iter vfs_write", "frozen"),
        ("folio_wait_bit_common do_swap_page handle_mm_fault", "swap"),
        ("__refrigerator get_signal", "paused"),
        ("wait_for_vfork_done kernel_clone __x64_sys_vfork", "vfork"),
        ("ldlm_completion_ast ll_file_open", "lustre"),
        ("rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff", "lock"),
        ("hrtimer_nanosleep", None),
        ("", None),
    ],
)
def test_the_kind_of_a_stack(stack: str, kind: str | None) -> None:
    assert kind_of([Frame(name) for name in stack.split()], None) == kind


def test_a_module_tells_what_a_name_does_not() -> None:
    assert kind_of([Frame("_nv012345rm", "nvidia"), Frame("__x64_sys_ioctl")], "msleep") == "gpu"


def test_where_the_stack_may_not_be_read_the_function_tells() -> None:
    assert kind_of([], "rpc_wait_bit_killable") == "nfs"
    assert kind_of([], None) is None

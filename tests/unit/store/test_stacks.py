"""Where kernel time is spent, and not where the sample happened to point."""

from __future__ import annotations

import pytest

from zombiescope.store.stacks import NamedFrame, hottest_path, kernel_path


def frames(*names: str) -> list[NamedFrame]:
    return [NamedFrame("main", "user"), *(NamedFrame(name, "kernel") for name in names)]


@pytest.mark.parametrize("skid", ["_raw_spin_unlock_irqrestore", "finish_task_switch", "__do_softirq"])
def test_skid_is_charged_to_its_caller(skid: str) -> None:
    assert kernel_path(frames("vfs_read", "seq_read", skid)) == ("vfs_read", "seq_read")
    assert kernel_path(frames("vfs_read", skid, "seq_read")) == ("vfs_read", skid, "seq_read"), "only at the end"


def test_a_stack_of_skid_alone_keeps_its_outermost_function() -> None:
    assert kernel_path(frames("do_syscall_64", "_raw_spin_unlock_irq")) == ("do_syscall_64",)
    assert kernel_path(frames()) == ()


def test_the_path_ends_where_it_spreads() -> None:
    even = [("read", "seq_read", name) for name in "abcdef"]
    assert hottest_path(even) == ("read", "seq_read")
    assert hottest_path([*even, *[("read", "seq_read", "a")] * 4]) == ("read", "seq_read", "a")
    assert hottest_path([(), ()]) == ()


@pytest.mark.parametrize(
    "entry",
    [
        ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call"),
        (
            "el0t_64_sync",
            "el0t_64_sync_handler",
            "el0_svc",
            "do_el0_svc",
            "el0_svc_common.constprop.0",
            "invoke_syscall",
        ),
    ],
)
def test_a_path_does_not_end_before_the_system_call_is_named(entry: tuple[str, ...]) -> None:
    """A program that makes ten different ones is said to make the most frequent of them."""
    spread = [(*entry, f"__x64_sys_{name}") for name in ("stat", "open", "read", "close", "read")]
    assert hottest_path(spread) == (*entry, "__x64_sys_read")
    assert hottest_path([*spread, *[entry] * 20]) == (*entry, "__x64_sys_read"), "getting in and out is no call"

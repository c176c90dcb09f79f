"""Call stacks by name: their kernel part, leaves that only look hot, and the path on which the time is spent.

A timer interrupt that comes while interrupts are off is taken when they are switched on again, so the
sample points to the function that does that and not to the one that took the time: such leaves (skid) are
charged to their callers. Measured with cpu-clock on 6.18: _raw_spin_unlock_irqrestore showed 48% self,
finish_task_switch 21 to 36%, handle_softirqs 34%.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

KERNEL_KINDS = frozenset({"kernel", "module", "bpf"})

SKID_LEAVES = frozenset(
    {
        "_raw_spin_unlock_irqrestore",
        "_raw_spin_unlock_irq",
        "finish_task_switch",
        "handle_softirqs",
        "__do_softirq",  # its name before 6.10
        "__softirqentry_text_start",  # as a kernel before 6.10 shows it where the section begins with it
        "do_syscall_64",
        "exc_page_fault",
        "el0_svc",  # arm64 switches interrupts on in these
        "el0_svc_common",
        "do_el0_svc",
        "el0_da",
        "native_write_msr",
    }
)

DISPATCH = frozenset(
    {
        "entry_SYSCALL_64", "entry_SYSCALL_64_after_hwframe", "entry_SYSCALL_64_safe_stack",
        "entry_SYSCALL_64_fastpath", "entry_SYSENTER_compat",
        "entry_SYSENTER_compat_after_hwframe", "entry_SYSCALL_compat", "entry_SYSCALL_compat_after_hwframe",
        "entry_INT80_compat", "asm_int80_emulation", "system_call_fastpath", "do_syscall_64", "do_fast_syscall_32",
        "do_int80_syscall_32", "__do_fast_syscall_32", "x64_sys_call", "ia32_sys_call",
        "el0_sync", "el0t_64_sync", "el0t_64_sync_handler", "el0_svc", "el0_svc_handler", "el0_svc_common",
        "do_el0_svc", "el0_svc_common.constprop.0", "invoke_syscall", "invoke_syscall.constprop.0",
    }
)  # fmt: skip
"""Every system call passes through these on its way in: which one it is, only what comes after them says."""

_NAMELESS = re.compile(r"\[.*\]|(?:0x)?[0-9a-f]{8,16}|")
"""A frame of which only the address is known, or not even that: [kernel], [unknown], ffffffff810018a0."""

_FOLLOWED = 3
"""A path is followed while one callee has at least a third of what passes through the caller."""


class NamedFrame(NamedTuple):
    name: str
    kind: str


def is_named(name: str) -> bool:
    """Whether it is a function's name; kallsyms may be hidden, and a profile may come without symbols."""
    return _NAMELESS.fullmatch(name) is None


def kernel_path(frames: Sequence[NamedFrame]) -> tuple[str, ...]:
    """The kernel's functions of a stack, outermost first, without skid at its end."""
    path = [frame.name for frame in frames if frame.kind in KERNEL_KINDS]
    while len(path) > 1 and path[-1] in SKID_LEAVES:
        path.pop()
    return tuple(path)


def hottest_path(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """From the outermost function to where most of the time is spent, following the heaviest callee.

    It ends where the time spreads, but not before the system call: a program that makes ten different ones does make
    the first of them most.
    """
    through: dict[tuple[str, ...], int] = Counter(path for path in paths if path)
    prefix: list[str] = []
    while True:
        depth = len(prefix)
        callees: Counter[str] = Counter()
        for path, weight in through.items():
            if len(path) > depth:
                callees[path[depth]] += weight
        if not callees:
            return tuple(prefix)
        name, weight = callees.most_common(1)[0]
        spreads = weight * _FOLLOWED < sum(through.values())
        if prefix and spreads and prefix[-1] not in DISPATCH:
            return tuple(prefix)
        prefix.append(name)
        through = {path: each for path, each in through.items() if len(path) > depth and path[depth] == name}

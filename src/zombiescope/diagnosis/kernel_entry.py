"""What a kernel path was entered for: the system call by the name of its manual page, or the kernel's own word."""

from __future__ import annotations

import re

from zombiescope.store.stacks import DISPATCH

_SHOWN_AS = {
    "mmap_pgoff": "mmap", "vm_mmap_pgoff": "mmap", "sendfile64": "sendfile", "newstat": "stat", "newlstat": "lstat",
    "newfstat": "fstat", "newuname": "uname",
}  # fmt: skip
"""The kernel's name of a call -> as strace shows it. vm_mmap_pgoff is jumped to by the entry, which is on no stack
then."""
_CALL = re.compile(r"(?:__(?:x64|ia32|arm64|s390x|se|do)_sys_|ksys_|__sys_|SyS_|sys_)([a-z0-9_]+?)(?:\.|$)")


def shown_as(call: str) -> str:
    """A system call of the kernel's table by the name that its stack is given."""
    return _SHOWN_AS.get(call, call)


def system_call(frames: tuple[str, ...]) -> str | None:
    """What the program asked for, by the name that its manual page has; None for a fault, an interrupt or a kernel
    thread."""
    for name in frames:
        if found := _CALL.match(name):
            return _SHOWN_AS.get(found[1], found[1])
        if name in _SHOWN_AS:
            return _SHOWN_AS[name]
    return None


def asked(frames: tuple[str, ...]) -> str | None:
    """The same; and for a fault, an interrupt or the work of a kernel thread the kernel's own word."""
    return system_call(frames) or next((name for name in frames if name not in DISPATCH), None)

"""What a child of the recorder gives up when it starts: capabilities that it does not need, calls that it never makes.

The recorder's four capabilities are nearly root's, and its children inherit them. The helper that compacts, the doctor
and the page only read and write files of their own user, so they drop them before they read a byte. The helper and the
doctor also give up starting programs, opening sockets, and looking into other processes: what takes one of them over
through a hostile recording can write that recording, and no more.

Nothing here raises: where a call is not there the rest holds, and the unit has its own filter.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

CAP_SYSLOG = 34
_HAS_64 = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _AMBIENT = 38, 22, 47
_CLEAR_AMBIENT, _FILTER = 4, 2
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # classic BPF: ld [k], jeq, jge, ret
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM
_X32 = 0x40000000

CALLS = {
    # name: (x86_64, aarch64)
    "execve": (59, 221), "execveat": (322, 281), "socket": (41, 198), "socketpair": (53, 199), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241), "bpf": (321, 280), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "pivot_root": (155, 41), "chroot": (161, 51), "open_by_handle_at": (304, 265),
    "init_module": (175, 105), "finit_module": (313, 273), "kexec_load": (246, 104), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "syslog": (103, 116),
}  # fmt: skip
"""What is refused with EPERM."""


def confine(*, keep: Iterable[int] = (), programs: bool = False, allow: Iterable[str] = ()) -> None:
    """Drops every capability but those to `keep`. Without `programs` the calls above are refused too, but for those to
    `allow`."""
    libc = ctypes.CDLL(None, use_errno=True)
    dropped = _drop_capabilities(libc, sum(1 << number for number in keep))
    # A browser that the page opens may be set-uid: nothing is taken from a user who had no more than others.
    if dropped or not programs:
        libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if not programs:
        _refuse_calls(libc, CALLS.keys() - set(allow))


def _drop_capabilities(libc: ctypes.CDLL, kept: int) -> bool:
    """Whether there was one to drop."""
    header = struct.pack("Ii", _HAS_64, 0)
    data = ctypes.create_string_buffer(24)
    if libc.capget(header, data) != 0:
        return False
    low = struct.unpack("6I", data.raw)
    permitted = low[1] | low[4] << 32
    if not permitted & ~kept:
        return False
    libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    left = permitted & kept
    words = (left & 0xFFFFFFFF, left & 0xFFFFFFFF, 0, left >> 32, left >> 32, 0)
    return bool(libc.capset(header, struct.pack("6I", *words)) == 0)


def _refuse_calls(libc: ctypes.CDLL, names: Iterable[str]) -> None:
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return
    program = _program(_ARCHITECTURES[machine], [CALLS[name][machine == "aarch64"] for name in names])
    code = ctypes.create_string_buffer(program, len(program))
    libc.prctl(_SET_SECCOMP, _FILTER, struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)), 0, 0)


def _program(architecture: int, calls: list[int]) -> bytes:
    """Refused: another architecture's calls, x32's, and these."""

    def step(code: int, if_true: int, if_false: int, value: int) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    steps = [
        step(_LOAD, 0, 0, 4),  # seccomp_data.arch
        step(_EQUAL, 0, len(calls) + 3, architecture),
        step(_LOAD, 0, 0, 0),  # seccomp_data.nr
        step(_AT_LEAST, len(calls) + 1, 0, _X32),
        *(step(_EQUAL, len(calls) - at, 0, number) for at, number in enumerate(calls)),
        step(_RETURN, 0, 0, _ALLOWED),
        step(_RETURN, 0, 0, _REFUSED),
    ]
    return b"".join(steps)

"""System calls by number, and which of their arguments say what they work on.

    /usr/include/asm/unistd.h    the numbers; x86-64 has its own up to 334, arm64 the generic ones up to 294,
                                 and from 424 on all architectures share them

Only numbers are looked at: file descriptors, lengths, process ids, flags. Strings that a program passes stay in its
memory. A number that is not here is named "call NUMBER"."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

_X86_64 = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
ioctl pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise shmget shmat shmctl dup
dup2 pause nanosleep getitimer alarm setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg
shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve exit wait4 kill
uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents
getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask
gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid
getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid
getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib
personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam sched_getparam sched_setscheduler
sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall
vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2
swapon swapoff reboot sethostname setdomainname iopl ioperm create_module init_module delete_module get_kernel_syms
query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr lsetxattr
fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time
futex sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit io_cancel
get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address
restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete
clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes vserver mbind
set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid
add_key request_key keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat
mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6
ppoll unshare set_robust_list get_robust_list splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait
signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3
pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64
name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv process_vm_writev kcmp
finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat
userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents
rseq
"""
_GENERIC = """
io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr
llistxattr flistxattr removexattr lremovexattr fremovexattr getcwd lookup_dcookie eventfd2 epoll_create1 epoll_ctl
epoll_pwait dup dup3 fcntl inotify_init1 inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat
mkdirat unlinkat symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs fstatfs truncate ftruncate
fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat fchown openat close vhangup pipe2 quotactl getdents64
lseek read write readv writev pread64 pwrite64 preadv pwritev sendfile pselect6 ppoll signalfd4 vmsplice splice tee
readlinkat newfstatat fstat sync fsync fdatasync sync_file_range timerfd_create timerfd_settime timerfd_gettime
utimensat acct capget capset personality exit exit_group waitid set_tid_address unshare futex set_robust_list
get_robust_list nanosleep getitimer setitimer kexec_load init_module delete_module timer_create timer_gettime
timer_getoverrun timer_settime timer_delete clock_settime clock_gettime clock_getres clock_nanosleep syslog ptrace
sched_setparam sched_setscheduler sched_getscheduler sched_getparam sched_setaffinity sched_getaffinity sched_yield
sched_get_priority_max sched_get_priority_min sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack
rt_sigsuspend rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn setpriority
getpriority reboot setregid setgid setreuid setuid setresuid getresuid setresgid getresgid setfsuid setfsgid times
setpgid getpgid getsid setsid getgroups setgroups uname sethostname setdomainname getrlimit setrlimit getrusage umask
prctl getcpu gettimeofday settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo mq_open
mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd semget semctl semtimedop
semop shmget shmctl shmat shmdt socket socketpair bind listen accept connect getsockname getpeername sendto recvfrom
setsockopt getsockopt shutdown sendmsg recvmsg readahead brk munmap mremap add_key request_key keyctl clone execve mmap
fadvise64 swapon swapoff mprotect msync mlock munlock mlockall munlockall mincore madvise remap_file_pages mbind
get_mempolicy set_mempolicy migrate_pages move_pages rt_tgsigqueueinfo perf_event_open accept4 recvmmsg
"""
_GENERIC_260 = """
wait4 prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime syncfs setns sendmmsg
process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom
memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
pkey_free statx io_pgetevents rseq kexec_file_load
"""
_EVERYWHERE_424 = """
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick
pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd
landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv
set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount
lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
"""


def numbers(machine: str) -> dict[int, str]:
    """Of an architecture; none where we do not know it."""
    own = {
        "x86_64": {**dict(enumerate(_X86_64.split()))},
        "aarch64": {**dict(enumerate(_GENERIC.split())), **dict(enumerate(_GENERIC_260.split(), 260))},
    }.get(machine)
    return {} if own is None else {**own, **dict(enumerate(_EVERYWHERE_424.split(), 424))}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_HERE = numbers(os.uname().machine)


def name(number: int) -> str:
    return _HERE.get(number, f"call {number}")


# --- what a call works on --------------------------------------------------------------------------------------------

_FD_FIRST = _set(
    """
    read write close fstat lseek ioctl pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 fcntl flock fsync
    fdatasync ftruncate getdents getdents64 fchdir fchmod fchown fstatfs sendto recvfrom sendmsg recvmsg sendmmsg
    recvmmsg connect accept accept4 bind listen shutdown getsockname getpeername setsockopt getsockopt fadvise64
    fallocate readahead sync_file_range syncfs epoll_wait epoll_pwait epoll_pwait2 epoll_ctl fsetxattr fgetxattr
    flistxattr fremovexattr inotify_add_watch inotify_rm_watch tee vmsplice signalfd4 timerfd_settime timerfd_gettime
    io_uring_enter dup2 dup3 setns finit_module mq_timedsend mq_timedreceive cachestat
    """
)
OPENS = _set(
    """
    open openat openat2 creat accept accept4 socket epoll_create epoll_create1 eventfd eventfd2 memfd_create
    timerfd_create signalfd inotify_init inotify_init1 dup perf_event_open pidfd_open
    """
)
"""What they return is a file descriptor."""
_FD_PAIRS = {"sendfile": (1, 0), "copy_file_range": (0, 2), "splice": (0, 2)}
"""Which arguments are read from and written to."""
_DIRECTORY_FIRST = _set(
    """
    mkdirat mknodat fchownat newfstatat unlinkat renameat renameat2 symlinkat readlinkat fchmodat fchmodat2 faccessat
    faccessat2 statx utimensat name_to_handle_at execveat
    """
)
LENGTH = {
    "munmap": 1, "mprotect": 1, "madvise": 1, "mincore": 1, "mlock": 1, "munlock": 1, "msync": 1, "mremap": 2,
    "getrandom": 1,
}  # fmt: skip
_PROCESS = {"kill": 0, "tkill": 0, "tgkill": 0, "sched_setaffinity": 0, "sched_getaffinity": 0, "getpgid": 0,
            "rt_sigqueueinfo": 0, "process_vm_readv": 0, "process_vm_writev": 0, "ptrace": 1, "sched_setscheduler": 0,
            "getpriority": 1, "setpriority": 1, "kcmp": 0}  # fmt: skip
_MAP_ANONYMOUS = 0x20
_AT_FDCWD = -100
_FUTEX = (
    "wait", "wake", "fd", "requeue", "cmp_requeue", "wake_op", "lock_pi", "unlock_pi", "trylock_pi", "wait_bitset",
    "wake_bitset", "wait_requeue_pi", "cmp_requeue_pi", "lock_pi2",
)  # fmt: skip

READS = _set("read pread64 readv preadv preadv2 getdents getdents64 recvfrom recvmsg recvmmsg")
WRITES = _set("write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg")
MOVES = READS | WRITES | {"sendfile", "copy_file_range", "splice", "tee", "vmsplice"}
"""What they return is a number of bytes."""
WAITS = _set(
    """
    poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 nanosleep clock_nanosleep wait4 waitid pause
    rt_sigsuspend rt_sigtimedwait futex futex_wait futex_waitv io_getevents io_pgetevents restart_syscall accept accept4
    """
)
"""A thread sleeps in them more often than it works."""
YIELDS = frozenset({"sched_yield"})

Path = Callable[[int], str | None]


def object_of(call: str, args: Sequence[int], returned: int | None, path: Path) -> str | None:
    """What a call worked on, as far as numbers tell. `path`: what a file descriptor is; `returned`: None while it goes
    on. None: nothing that its arguments name, or nothing that could be looked up."""
    if call in _FD_PAIRS:
        from_, to = (path(signed(args[at])) for at in _FD_PAIRS[call])
        return f"{from_ or 'a file'} to {to or 'a file'}" if from_ or to else None
    if call in OPENS:
        return path(returned) if returned is not None and returned >= 0 else _made(call, args)
    if call in _FD_FIRST:
        return path(signed(args[0]))
    if call in _DIRECTORY_FIRST:
        return None if signed(args[0]) == _AT_FDCWD else path(signed(args[0]))
    if call == "mmap":
        return size_text(args[1]) if args[3] & _MAP_ANONYMOUS or signed(args[4]) < 0 else path(signed(args[4]))
    if call in LENGTH:
        return size_text(args[LENGTH[call]])
    if call in _PROCESS:
        return f"pid {signed(args[_PROCESS[call]])}" if args[_PROCESS[call]] else None
    if call == "futex":
        operation = args[1] & 0x7F
        return _FUTEX[operation] if operation < len(_FUTEX) else None
    return None


def _made(call: str, args: Sequence[int]) -> str | None:
    """A socket that could not be made is still one of a family."""
    if call != "socket":
        return None
    with suppress(ValueError):
        return socket.AddressFamily(args[0]).name
    return None


def signed(argument: int) -> int:
    """An int that came as an unsigned long."""
    low = argument & 0xFFFF_FFFF
    return low - (1 << 32) if low & 1 << 31 else low


def size_text(size: int) -> str:
    """ "4 kB": a power of 1024 as people round it."""
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if size >= bytes_:
            return f"{size / bytes_:.3g} {unit}"
    return f"{size} bytes"

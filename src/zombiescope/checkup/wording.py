"""How a finding is said: who, in which kernel path, how long."""

from __future__ import annotations

from zombiescope.audit.finding import Evidence, Finding
from zombiescope.checkup.sampled import Hog

PATH_FRAMES = 4
_ENTRIES = (
    "entry_SYSCALL", "do_syscall_64", "x64_sys_call", "__x64_sys_", "__arm64_sys_", "invoke_syscall", "el0", "asm_",
    "ret_from_fork", "kthread",
)  # fmt: skip


def finding(
    rule: str,
    subject: object,
    severity: str,
    why: str,
    file: str,
    shown: str,
    *,
    unit: str | None = None,
    fix: tuple[str, ...] = (),
) -> Finding:
    """`file` is where the figure was read, `shown` the figure and the threshold that it broke."""
    return Finding(f"{rule}:{subject}", rule, unit, severity, why, (Evidence(file, None, shown),), fix)


def who(hog: Hog | None) -> str:
    """python3 (pid 4242, x.service)"""
    if hog is None:
        return "nobody was sampled there"
    details = [f"pid {hog.pid}"] if hog.pid else []
    details += [name for name in (hog.unit or hog.container,) if name]
    return f"{hog.comm or '?'}" + (f" ({', '.join(details)})" if details else "")


def where(hog: Hog | None) -> str:
    """ " in mem_cgroup_iter <- shrink_node <- ...": innermost first, without the entries to the kernel."""
    path = inner(hog.path) if hog is not None else ()
    if not path:
        return ""
    shown = path[::-1][:PATH_FRAMES]
    return " in " + " <- ".join(shown) + (" <- ..." if len(path) > PATH_FRAMES else "")


def inner(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path without the frames that every system call and every interrupt has."""
    kept = tuple(name for name in path if not name.startswith(_ENTRIES))
    return kept or path[-1:]


def seconds(value: float) -> str:
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 60 else f"{value / 60:.0f} min"


def percent(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio * 100:.0f} %"


def ago(seconds_ago: float) -> str:
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds_ago >= size:
            return f"{seconds_ago / size:.0f} {name} ago"
    return "a moment ago"

"""Which process is meant by a number, and whether it lives. Only the standard library: the recorder uses this too."""

from __future__ import annotations

from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When the kernel made this process: two processes of one number differ in it. None: it is gone, or a zombie."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def is_stopped(pid: int) -> bool:
    """By SIGSTOP, or by a debugger."""
    fields = _stat(pid)
    return bool(fields) and fields[0] in ("T", "t")


def boot_id() -> str:
    """Of this boot of the machine; empty where it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > 20 and fields[0] not in ("Z", "X") else []

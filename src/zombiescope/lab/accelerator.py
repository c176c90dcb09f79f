"""Does KVM really work here? Asked by booting the kernel in it, since a /dev/kvm that opens may still hang its guests.

The kernel is given no disk, so a good boot ends by itself in "Unable to mount root fs" within a second or two; that
it came so far proves interrupts, timers and all CPUs. The answer is kept until the next reboot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from zombiescope.lab import cache
from zombiescope.lab.qemu import KVM, TCG, Hardware, Qemu

_LIMIT_S = 10.0
_REACHED = "Unable to mount root fs"


def accelerator(kernel: Path, note: Callable[[str], None]) -> tuple[str, ...]:
    """QEMU's options for KVM, else for software emulation, which is said in one line."""
    why = why_not_kvm(kernel)
    if why is None:
        return KVM
    note(f"no KVM ({why}): the machine runs in software emulation, several times slower")
    return TCG


def why_not_kvm(kernel: Path) -> str | None:
    """None where KVM works."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "no /dev/kvm" if not os.path.exists("/dev/kvm") else "/dev/kvm cannot be opened"  # noqa: PTH110
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        place = cache.entry("accelerator", cache.key(boot), lambda into: _remember(kernel, into / "verdict.json"))
    except PermissionError:  # the cache is somebody else's
        return _ask(kernel)
    why: str | None = json.loads((place / "verdict.json").read_text())["why_not"]
    return why


def _remember(kernel: Path, answer: Path) -> None:
    answer.write_text(json.dumps({"why_not": _ask(kernel)}))


def _ask(kernel: Path) -> str | None:
    machine = Qemu(Hardware(kernel, KVM, options="loglevel=7"))
    try:
        ended = machine.wait(_LIMIT_S)
        console = machine.console()
    finally:
        machine.close()
    if _REACHED in console:
        return None
    if ended:
        said = [line for line in console.splitlines() if line.strip() and "warning:" not in line] or ["nothing"]
        return f"QEMU says: {said[0].removeprefix('qemu-system-x86_64: ')}"
    return f"/dev/kvm opens, but a kernel booted in it hung for {_LIMIT_S:.0f} s"

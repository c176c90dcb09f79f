"""How the running kernel was built: its tick, its preemption, and how exact its CPU times are.

Sources: /proc/config.gz, else /boot/config-RELEASE, else /lib/modules/RELEASE/config; of a PREEMPT_DYNAMIC kernel
/sys/kernel/debug/sched/preempt, which says how it preempts now, else preempt= of the command line;
/sys/devices/system/cpu/nohz_full.

CPU times of /proc/stat are sampled at the tick unless the kernel accounts them at every switch: natively, or
with VIRT_CPU_ACCOUNTING_GEN *and* nohz_full CPUs (distributions build it in, few boot with it).
IRQ_TIME_ACCOUNTING makes irq and softirq exact.

Cost: config.gz is inflated once, about 3 ms. Absence: None; a container has neither file as a rule.
"""

import os
import zlib
from dataclasses import dataclass

from zombiescope.kernel import cpu
from zombiescope.kernel.procfile import at, number, read_file

_GZIP = 16 + zlib.MAX_WBITS
_INFLATED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class KernelConfig:
    hz: int | None
    accounting: str | None
    """tick, virt_gen (exact where nohz_full is set) or virt_native (exact)."""
    irq_time: bool | None
    preempt: str | None
    """none, voluntary, full, lazy or rt."""
    preempt_is_dynamic: bool | None
    schedstats: bool | None
    psi: bool | None


_NOTHING = KernelConfig(None, None, None, None, None, None, None)
_PREEMPT = {
    b"PREEMPT_RT": "rt",
    b"PREEMPT_NONE": "none",
    b"PREEMPT_VOLUNTARY": "voluntary",
    b"PREEMPT_LAZY": "lazy",
    b"PREEMPT": "full",
}


def _options(data: bytes) -> dict[bytes, bytes]:
    lines = (line.partition(b"=") for line in data[: data.rfind(b"\n") + 1].split(b"\n"))
    return {name[7:]: value for name, _, value in lines if name.startswith(b"CONFIG_")}


def parse(data: bytes) -> KernelConfig:
    """From the text of a kernel's .config; all None where it is none."""
    options = _options(data)
    if not options:
        return _NOTHING
    on = {name for name, value in options.items() if value == b"y"}
    return KernelConfig(
        hz=number(options.get(b"HZ", b"")),
        accounting=_accounting(on),
        irq_time=b"IRQ_TIME_ACCOUNTING" in on,
        preempt=next((kind for name, kind in _PREEMPT.items() if name in on), None),
        preempt_is_dynamic=b"PREEMPT_DYNAMIC" in on,
        schedstats=b"SCHEDSTATS" in on,
        psi=b"PSI" in on,
    )


def _accounting(on: set[bytes]) -> str | None:
    if b"VIRT_CPU_ACCOUNTING_NATIVE" in on:
        return "virt_native"
    if b"VIRT_CPU_ACCOUNTING_GEN" in on:
        return "virt_gen"
    return "tick" if b"TICK_CPU_ACCOUNTING" in on else None


def _text(root: str, release: str) -> bytes:
    packed = read_file(at(root, "proc/config.gz"))
    if packed is not None:
        try:
            return zlib.decompressobj(_GZIP).decompress(packed, _INFLATED_BYTES)
        except zlib.error:
            return b""
    return read_file(at(root, f"boot/config-{release}")) or read_file(at(root, f"lib/modules/{release}/config")) or b""


def _preempt_of_boot(root: str) -> str | None:
    words = (read_file(at(root, "proc/cmdline")) or b"").split()
    chosen = [word[8:].decode("ascii", "replace") for word in words if word.startswith(b"preempt=")]
    return chosen[-1] if chosen and chosen[-1] in _PREEMPT.values() else None


def parse_debug(text: str) -> str | None:
    """ "none (voluntary) full lazy": the one in brackets."""
    chosen = next((word[1:-1] for word in text.split() if word.startswith("(") and word.endswith(")")), None)
    return chosen if chosen in _PREEMPT.values() else None


def _preempt_now(root: str) -> str | None:
    return parse_debug((read_file(at(root, "sys/kernel/debug/sched/preempt")) or b"").decode("ascii", "replace"))


def read(root: str = "/", release: str | None = None) -> KernelConfig:
    """The running kernel's configuration, with what the command line chose."""
    config = parse(_text(root, release or os.uname().release))
    preempt = _preempt_now(root) or (_preempt_of_boot(root) if config.preempt_is_dynamic else None)
    exact_gen = config.accounting != "virt_gen" or bool(cpu.nohz_full(root))
    return KernelConfig(
        hz=config.hz,
        accounting=config.accounting if exact_gen else "tick",
        irq_time=config.irq_time,
        preempt=preempt or config.preempt,
        preempt_is_dynamic=config.preempt_is_dynamic,
        schedstats=config.schedstats,
        psi=config.psi,
    )

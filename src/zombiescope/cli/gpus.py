"""What `zombiescope cores --gpu` prints: a line for each GPU, what is wrong with it, and who is on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from zombiescope.cli.output import command_line, console, note, table
from zombiescope.cli.quantities import human_bytes, human_count
from zombiescope.kernel import nvml_codes

if TYPE_CHECKING:
    from zombiescope.documents.cores import Cores
    from zombiescope.query.gpus import Gpu, GpuProcess

_HEADS = ("util", "lowest", "power", "memory", "clock", "temp")
_QUIET_REASONS = nvml_codes.IDLE | nvml_codes.APPLICATION_CLOCKS | nvml_codes.POWER_CAP
_WORTH_SAYING_S = 0.1
_HARMLESS = ("nvlink_recoveries", "pcie_replays")
_PROCESSES = 8


def print_gpus(found: Cores, driver: str | None, directory: str | None) -> None:
    out = console()
    out.print(found.heading, style="bold")
    if not found.gpus:
        look = command_line("info", directory)
        why = f"a driver ({driver}) was there; '{look}' says where it was blind" if driver else "no driver was loaded"
        note(f"zombiescope: no GPU is known in this window: {why}")
        return
    rows = table("gpu", "name", *_HEADS, "slowed by", right=("gpu", *_HEADS), gap=2, wraps="slowed by")
    for gpu in found.gpus:
        bad = gpu.state not in ("ok", None)
        rows.add_row(*_cells(gpu), style="bold red" if bad else None)
    out.print(rows)
    for gpu in found.gpus:
        for line in _troubles(gpu):
            out.print(f"GPU {gpu.gpu} {line}", style="red")
    for gpu in found.gpus:
        _print_processes(gpu)


def _cells(gpu: Gpu) -> list[str]:
    memory, clock, hot = gpu.memory_used_bytes, gpu.clock_sm_mhz, gpu.temperature_c
    return [
        str(gpu.gpu),
        str(gpu.name or "?"),
        "MIG" if gpu.mig else "?" if gpu.utilisation is None else f"{gpu.utilisation:.0f}%",
        "?" if gpu.lowest_utilisation is None else f"{gpu.lowest_utilisation}%",
        "?" if gpu.power_w is None else f"{gpu.power_w:.0f} W",
        "?" if memory is None else human_bytes(memory),
        "?" if clock is None else f"{clock} MHz",
        "?" if hot is None else f"{hot} °C",
        _slowed(gpu),
    ]


def _slowed(gpu: Gpu) -> str:
    """By counters where there are some: bits of a moment miss what was between."""
    lost = {name: held_s for name, held_s in gpu.lost_clocks_s.items() if (held_s or 0) >= _WORTH_SAYING_S}
    words = [f"{name.replace('_', ' ')} {held_s:.1f} s" for name, held_s in lost.items()]
    if all(held_s is None for held_s in gpu.lost_clocks_s.values()):
        words = nvml_codes.reasons((gpu.reason_bits or 0) & ~_QUIET_REASONS)
    return ", ".join(words) or "-"


def _troubles(gpu: Gpu) -> Iterator[str]:
    if gpu.state not in ("ok", None):
        yield f"is {str(gpu.state).replace('_', ' ')}"
    grown = {name: number for name, number in gpu.added.items() if number and name not in _HARMLESS}
    for name, number in grown.items():
        yield f"counted {human_count(number)} more: {name.replace('_', ' ')}"
    if gpu.counters.get("remap_failed"):
        yield "could not remap a row of its memory: it must be replaced"


def _print_processes(gpu: Gpu) -> None:
    out = console()
    for one in gpu.processes[:_PROCESSES]:
        out.print(f"GPU {gpu.gpu}  {_who(one)}", style="dim" if one.to_us is not None else None)
    if len(gpu.processes) > _PROCESSES:
        out.print(f"GPU {gpu.gpu}  and {len(gpu.processes) - _PROCESSES} more; --json has them all", style="dim")


def _who(one: GpuProcess) -> str:
    box = one.container_name or (one.container or "")[:12]
    pod = one.pod_name or one.pod
    owner = f"container {box}" if box else one.unit
    whose = ", ".join(part for part in (f"pid {one.pid}", owner, f"pod {pod}" if pod else None) if part)
    memory = "" if one.memory_bytes is None else f"  {human_bytes(one.memory_bytes)}"
    return f"{one.comm or '?'} ({whose}){memory}" + ("  left" if one.to_us is not None else "")

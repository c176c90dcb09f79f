"""/sys/devices/system/edac/mc/mcN: memory errors that were corrected (ce) and that were not (ue), by memory module.

Fields: dimmM/dimm_{ce,ue}_count with dimm_label, or those of the controller where it does not know its modules. A
module is called as its label calls it ("CPU_SrcID#0_MC#0_Chan#1_DIMM#0"), as the kernel's log does.

Cost: numbers in memory, three small files a module. Absence: no EDAC driver, as in nearly every virtual machine.
"""

from __future__ import annotations

import re

from zombiescope.kernel.procfile import at, names_in, read_int, read_text

DIRECTORY = "sys/devices/system/edac/mc"
MOST_MODULES = 128
_CONTROLLER = re.compile(r"mc\d{1,3}")
_MODULE = re.compile(r"(?:dimm|rank)\d{1,3}")
_UNSAFE = re.compile(r"[^\w#:. /-]")


def read(root: str = "/") -> dict[str, tuple[int | None, int | None]]:
    """Module -> errors corrected, and not corrected."""
    found: dict[str, tuple[int | None, int | None]] = {}
    base = at(root, DIRECTORY)
    for controller in names_in(base) or ():
        if not _CONTROLLER.fullmatch(controller) or len(found) >= MOST_MODULES:
            continue
        modules = [name for name in names_in(f"{base}/{controller}") or () if _MODULE.fullmatch(name)]
        for module in modules[: MOST_MODULES - len(found)]:
            where = f"{base}/{controller}/{module}"
            counts = read_int(f"{where}/dimm_ce_count"), read_int(f"{where}/dimm_ue_count")
            found[_label(where) or f"{controller}/{module}"] = counts
        if not modules:
            where = f"{base}/{controller}"
            found[controller] = read_int(f"{where}/ce_count"), read_int(f"{where}/ue_count")
    return {name: counts for name, counts in found.items() if counts != (None, None)}


def _label(where: str) -> str:
    return _UNSAFE.sub("?", (read_text(f"{where}/dimm_label") or "")[:64]).strip()

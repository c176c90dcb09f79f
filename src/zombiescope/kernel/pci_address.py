"""PCI addresses as drivers print them: ``0000:81:00`` (Xid), ``0000:81:00.0`` (probe), ``00000000:81:00.0`` (NVML).

They are the same device; `device` is the one spelling by which lines, tables and readings of one GPU are joined.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<bus>[0-9a-fA-F]{2,4}):(?P<slot>[0-9a-fA-F]{2})(?:\.[0-7])?(?![\w.:])"
)


def device(text: str | None) -> str | None:
    """``0000:81:00``: without its function, at the beginning of a text; None where there is no address."""
    found = _ADDRESS.match(text or "")
    if found is None:
        return None
    domain, bus, slot = (int(found[name] or "0", 16) for name in ("domain", "bus", "slot"))
    return f"{domain:04x}:{bus:02x}:{slot:02x}"

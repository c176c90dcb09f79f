"""The specifiers of a unit's name: %i, %I, %n, %N, %p, %P, %j, %J and %%."""

from __future__ import annotations

from zombiescope.node.systemd.unit_files import names


def expand(text: str, unit: str) -> str | None:
    """None where another specifier stands, of the machine or of the moment."""
    prefix, instance, _ = names.split(unit)
    last = prefix.rpartition("-")[2]
    known = {
        "i": instance or "", "I": names.unescape(instance or ""), "n": unit, "N": unit.rpartition(".")[0],
        "p": prefix, "P": names.unescape(prefix), "j": last, "J": names.unescape(last), "%": "%",
    }  # fmt: skip
    found, rest = "", text
    while "%" in rest:
        before, _, rest = rest.partition("%")
        if not rest or rest[0] not in known:
            return None
        found, rest = found + before + known[rest[0]], rest[1:]
    return found + rest

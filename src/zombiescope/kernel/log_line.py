"""One known line of the kernel log, written the way the kernel writes it.

A template is the format string of the driver with names in place of its conversions: ``TX q {queue:d} is
paused for too long (threshold {threshold_us:d}).`` Conversions: d a number, x a hexadecimal number, l a
list of numbers (0-3,7), w a word, n anything without a comma, c a command name, which may hold any
character, t the rest of the line. The regular expression made from it is anchored, no repetition is inside
another, and those that could end in several places are short, so matching costs the length of the line
times a constant.

A line that a network driver prints with netdev_err() or dev_err() begins ``driver bus interface: `` or
``driver bus: ``; `drivers` names those that print it ("*": any), and the template starts after that prefix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from zombiescope.base.severity import Severity

# source: read in the source of the driver or the kernel; seen: quoted from, or made on, a running kernel;
# unconfirmed: from memory or second hand, the exact wording may differ.
Evidence = Literal["source", "seen", "unconfirmed"]

_PLACE = re.compile(r"\{(\w+):([dxlwnct])\}")
_CONVERSIONS = {
    "d": r"-?\d{1,18}",
    "x": r"(?:0x)?[0-9a-fA-F]{1,32}",
    "l": r"[\d,()nul-]{1,400}",
    "w": r"\S{1,1000}",
    "n": r"[^,]{0,1000}",
    "c": r".{0,64}?",
    "t": r".*",
}
# netdev_printk() may add the state of the device: "eth0 (unregistering)".
_DEVICE = r"(?P<bus>[\w:.-]{1,64})(?: (?P<interface>[^\s:]{1,64})(?: \([a-z ]{1,32}\))?)?: "


@dataclass(frozen=True, slots=True)
class LineFormat:
    """`name` is unique in the table. `also` holds fields that are the same in every such line. A `loose`
    format catches lines of a family whose exact wording is not in the table; it is asked only when nothing
    else matched. `detail` reads fields of its own out of what the places hold, where those have a form that is not
    always the same."""

    name: str
    kind: str
    severity: Severity
    template: str
    sample: str
    evidence: Evidence
    drivers: tuple[str, ...] = ()
    also: dict[str, str | int] = field(default_factory=dict)
    loose: bool = False
    detail: Callable[[Mapping[str, str | None]], dict[str, str | int]] | None = None

    def pattern(self) -> re.Pattern[str]:
        return re.compile(self._prefix() + self._body() + r"\s*\Z", re.DOTALL)

    def first_words(self) -> tuple[str, ...]:
        """What the text up to the first space must be; empty when that can be anything."""
        if self.drivers == ("*",):
            return ()
        if self.drivers:
            return self.drivers
        word, space, _ = self.template.partition(" ")
        return (word,) if space and "{" not in word else ()

    def keyword(self) -> str:
        """The longest piece of the line that never changes."""
        return max(_PLACE.split(self.template)[::3], key=len)

    def number_fields(self) -> tuple[str, ...]:
        return tuple(name for name, conversion in _PLACE.findall(self.template) if conversion == "d")

    def _prefix(self) -> str:
        if not self.drivers:
            return ""
        driver = r"[\w-]{1,32}" if self.drivers == ("*",) else "|".join(map(re.escape, self.drivers))
        return rf"(?P<driver>{driver}) {_DEVICE}"

    def _body(self) -> str:
        pieces = _PLACE.split(self.template)
        literals = (re.escape(piece) for piece in pieces[::3])
        groups = [f"(?P<{n}>{_CONVERSIONS[c]})" for n, c in zip(pieces[1::3], pieces[2::3], strict=True)]
        return "".join(a + b for a, b in zip(literals, [*groups, ""], strict=True))

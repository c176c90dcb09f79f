"""Which lines of the kernel log mean something, and which become events.

The table is in :mod:`zombiescope.kernel.log_lines_net` and its neighbours of that name, one entry per wording. Most
entries are found by the first word of the line, the rest by a fixed piece of text, so an uninteresting line costs a
dictionary look-up and some twenty substring tests, under two microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from zombiescope.base.severity import Severity
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.log_line import LineFormat
from zombiescope.kernel.log_lines_core import FAULT_FORMATS, LIMIT_FORMATS, MEMORY_FORMATS, STALL_FORMATS
from zombiescope.kernel.log_lines_gpu import GPU_FORMATS
from zombiescope.kernel.log_lines_machine import CLOCK_FORMATS, FABRIC_FORMATS, HARDWARE_FORMATS, HEAT_FORMATS
from zombiescope.kernel.log_lines_net import DRIVER_FORMATS, ENA_FORMATS
from zombiescope.kernel.log_lines_storage import STORAGE_FORMATS

FORMATS: tuple[LineFormat, ...] = (
    *ENA_FORMATS,
    *DRIVER_FORMATS,
    *FABRIC_FORMATS,
    *STALL_FORMATS,
    *MEMORY_FORMATS,
    *LIMIT_FORMATS,
    *FAULT_FORMATS,
    *GPU_FORMATS,
    *STORAGE_FORMATS,
    *HEAT_FORMATS,
    *HARDWARE_FORMATS,
    *CLOCK_FORMATS,
)

# A record of the kernel is at most 1 KB of text on every kernel to date; what is longer was not printed by
# it.
_TEXT_MAX = 2048
_WARNING = 4
_CRITICAL = 2

Fields = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class KnownLine:
    """`name` is the entry of the table that matched."""

    name: str
    kind: str
    severity: Severity
    fields: Fields


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A line of the kernel log that is worth keeping. `known` is the table entry, None for kernel_log."""

    kind: str
    severity: Severity
    source: str
    text: str
    fields: Fields = field(default_factory=dict)
    known: str | None = None


class _Compiled:
    __slots__ = ("format", "numbers", "pattern")

    def __init__(self, line_format: LineFormat) -> None:
        self.format = line_format
        self.pattern: re.Pattern[str] | None = None
        self.numbers = frozenset(line_format.number_fields())

    def match(self, text: str) -> KnownLine | None:
        if self.pattern is None:  # compiling all at start-up would cost every start 20 ms
            self.pattern = self.format.pattern()
        match = self.pattern.match(text)
        if match is None:
            return None
        fields: Fields = dict(self.format.also)
        for name, value in match.groupdict().items():
            if value is not None and name != "rest":
                fields[name] = int(value) if name in self.numbers else value
        if self.format.detail is not None:
            fields |= self.format.detail(match.groupdict())
        return KnownLine(self.format.name, self.format.kind, self.format.severity, fields)


class LogFormats:
    """A table of formats, made ready for look-up."""

    def __init__(self, formats: Iterable[LineFormat]) -> None:
        self._by_word: dict[str, list[_Compiled]] = {}
        self._by_keyword: list[tuple[str, _Compiled]] = []
        for line_format in sorted(formats, key=lambda f: f.loose):
            compiled = _Compiled(line_format)
            for word in line_format.first_words():
                self._by_word.setdefault(word, []).append(compiled)
            if not line_format.first_words():
                self._by_keyword.append((line_format.keyword(), compiled))

    def classify(self, text: str) -> KnownLine | None:
        """The table's entry for this line, with its fields; None for a line that is not in the table."""
        if len(text) > _TEXT_MAX:
            return None
        candidates = [entry for keyword, entry in self._by_keyword if keyword in text]
        by_word = self._by_word.get(text.partition(" ")[0])
        if by_word is not None:
            candidates = sorted((*by_word, *candidates), key=lambda entry: entry.format.loose)
        for entry in candidates:
            known = entry.match(text)
            if known is not None:
                return known
        return None


_FORMATS = LogFormats(FORMATS)
classify = _FORMATS.classify


def event_of(record: KmsgRecord, source: str = "kmsg") -> LogEvent | None:
    """The event that a record becomes; None for the ordinary lines that nobody asked for.

    Wanted is whatever is in the table, and everything at warning or worse. A line that a process wrote is
    kept as what it is, a line of text: it is never matched with the table."""
    loud = record.level is not None and record.level <= _WARNING
    if record.from_kernel is False:
        return LogEvent("kernel_log", "info", f"{source}-user", record.text) if loud else None
    known = classify(record.text)
    if known is None:
        return LogEvent("kernel_log", _severity(record.level), source, record.text) if loud else None
    fields = known.fields if record.from_kernel else {**known.fields, "writer_unknown": 1}
    return LogEvent(known.kind, known.severity, source, record.text, fields, known.name)


def _severity(level: int | None) -> Severity:
    """Of a line that nobody has listed. What one driver calls a warning another calls an error, and both are mostly
    about nothing ("oom_control is deprecated"): worth keeping, and no reason to look. From critical on they mean it."""
    return "critical" if level is not None and level <= _CRITICAL else "info"

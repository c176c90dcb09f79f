"""The text of `perf script`, in whatever layout: what the native parser finds becomes SampleRows, header lines become
facts of the node.

A frame's module is the file's own name without its folders; its kind is read from what perf prints as the DSO:

    [kernel.kallsyms], [guest.kernel.kallsyms], /boot/vmlinux-6.1    kernel
    [nf_conntrack], /lib/modules/.../nf_conntrack.ko.xz              module
    bpf_prog_6deef7357e7b4530_sd_fw_ingress                          bpf
    [vdso]                                                           vdso
    /tmp/perf-4711.map, [JIT] tid 4711, //anon                       jit
    anything else                                                    user
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from zombiescope._native import PerfScriptText, plain_name
from zombiescope.base.secrets import mask_text
from zombiescope.base.text import number
from zombiescope.imports.clock import MONTHS
from zombiescope.imports.rows import FrameRow, ImportReport, SampleRows, TaskRow
from zombiescope.imports.writer import MAX_ROWS
from zombiescope.store.sample_event import SampleEvent

UNKNOWN = "[unknown]"
_PEEK_BYTES = 1 << 18
_UNIX_US = 10**15
"""A clock that started at boot does not get here in thirty years; Unix time is beyond."""

_KERNEL = ("[kernel", "[guest.kernel")
_VDSO = ("[vdso]", "[vdso32]", "[vsyscall]", "[uprobes]", "[vectors]", "[sigpage]")
_BPF = ("bpf_prog_", "bpf_trampoline_", "bpf_dispatcher_", "[bpf")
_JIT = (
    "//anon", "/anon_hugepage", "/dev/zero", "/memfd:", "/SYSV", "[anon", "[JIT]", "[jit]", "[heap]", "[stack",
    "anon_inode",
)  # fmt: skip
_PERF_MAP = re.compile(r"perf-\d+\.map|jitted-\d+-\d+\.so|\[JIT\].*")
_MODULE_FILE = re.compile(r"(.+)\.ko(?:\.(?:gz|xz|zst|bz2|debug))?")
_FILE_OFFSET = re.compile(r"\+0x[0-9a-f]+$")

_FACT = re.compile(r"# ([a-z][a-z ]*?)\s*: (.*)")
_CAPTURED = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d{1,2}):(\d{1,2}):(\d{1,2}) (\d{4})")
_REFERENCE = re.compile(r"# reference time: .* = (\d{1,12})\.(\d{6})\d* \(TOD\) = (\d{1,12})\.(\d{6})\d* ")


def place(name: bytes, dso: bytes | None, high: bool) -> tuple[str, str, str]:
    """(name, module, kind) of a function as perf prints it; `high`: its address is in the kernel's half."""
    shown = name.decode("utf-8", "backslashreplace") or UNKNOWN
    if dso is None:
        return (plain_name(shown), "", "kernel") if high else (shown, "", "unknown" if shown == UNKNOWN else "user")
    module, kind = _where(_FILE_OFFSET.sub("", dso.decode("utf-8", "backslashreplace")), shown, high)
    return (plain_name(shown) if kind in ("kernel", "module") else shown), module, kind


def _where(dso: str, name: str, high: bool) -> tuple[str, str]:
    """(module, kind)."""
    path = dso.removesuffix(" (deleted)")
    base = path.rpartition("/")[2] or path
    if path.startswith(_KERNEL) or base.startswith("vmlinux") or path == "[guest.kernel]":
        return "", "kernel"
    if path.startswith(_BPF) or (high and name.startswith(_BPF)):
        return "bpf", "bpf"
    if path.startswith(_VDSO):
        return path, "vdso"
    if path in (UNKNOWN, "inlined", ""):
        return "", "kernel" if high else "unknown"
    if module_file := _MODULE_FILE.fullmatch(base):
        return module_file[1].replace("-", "_"), "module"
    if high and path.startswith("["):
        return path.strip("[]"), "module"
    if path == "//anon":
        return "[anon]", "jit"  # as in /proc/PID/maps
    if path.startswith(_JIT) or _PERF_MAP.fullmatch(base):
        return base, "jit"
    return base, "user"


class ScriptHeader:
    """What the lines that `perf script --header` puts in front say."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.values: dict[str, str] = {}
        self.offset_us: int | None = None
        self.first_us: int | None = None
        self.last_us: int | None = None
        for line in lines:
            if (both := _REFERENCE.match(line)) is not None:
                wall_us, own_us = (int(both[at]) * 1_000_000 + int(both[at + 1]) for at in (1, 3))
                self.offset_us = wall_us - own_us
            elif (fact := _FACT.match(line)) is not None:
                # Of several texts in one file the last header belongs to the last sample.
                self.values[fact[1]] = fact[2].strip()
        self.first_us = _seconds_us(self.values.get("time of first sample"))
        self.last_us = _seconds_us(self.values.get("time of last sample"))

    @property
    def host(self) -> str | None:
        return self.values.get("hostname") or None

    @property
    def captured_wall_us(self) -> int | None:
        """When perf closed its file, to the second. The text does not say of which zone: this machine's is taken."""
        found = _CAPTURED.match(self.values.get("captured on", ""))
        if found is None or found[1] not in MONTHS:
            return None
        month, (day, hour, minute, second, year) = MONTHS.index(found[1]) + 1, map(int, found.groups()[1:])
        try:
            return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1))) * 1_000_000
        except (OverflowError, ValueError):
            return None

    def facts(self) -> dict[str, Any]:
        """As node.json names them."""
        named = {"kernel": "os release", "machine": "arch", "cpu_model": "cpudesc", "perf_cmdline": "cmdline"}
        facts: dict[str, Any] = {
            key: mask_text(self.values[said]) for key, said in named.items() if self.values.get(said)
        }
        if (cpus := number(self.values.get("nrcpus online", ""))) is not None:
            facts["cpus"] = min(cpus, 65536)
        return facts


def _seconds_us(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"\d{1,12}\.\d{1,9}", text):
        return None
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))


class PerfScriptImport:
    """Reads one text. `span_us` and `header` are known once read() has ended."""

    def __init__(self, outcome: ImportReport) -> None:
        self._outcome = outcome
        self._text = PerfScriptText(place, MAX_ROWS)
        self._nameless_kernel = False
        self._named_kernel = False

    def read(self, pieces: Iterable[bytes], is_cut: Iterable[object] = ()) -> Iterator[SampleRows]:
        """Rows of at most MAX_ROWS samples, `time_us` in the text's own clock. `is_cut` is not empty, once the pieces
        are over, when they are known not to be all."""
        text = self._text
        for piece in pieces:
            at = text.feed(piece)
            while at < len(piece):
                yield self._rows()
                at = text.feed(piece, at)
        text.finish(cut=any(True for _ in is_cut))
        if len(text):
            yield self._rows()
        self._tell()

    @property
    def header(self) -> ScriptHeader:
        return ScriptHeader(self._text.header)

    @property
    def span_us(self) -> tuple[int, int] | None:
        return self._text.span_us

    @property
    def event_lines(self) -> int:
        return self._text.event_lines

    def _rows(self) -> SampleRows:
        time_us, cpu, task, stack, period, event, lengths, flat, frames, tasks, events, idle = self._text.take()
        if self._text.untimed and -1 in time_us:
            start = self.span_us[0] if self.span_us is not None else 0
            for at, value in enumerate(time_us):
                if value < 0:
                    time_us[at] = start
        names = {name for name, _, kind in frames if kind == "kernel"}
        self._nameless_kernel |= UNKNOWN in names
        self._named_kernel |= bool(names - {UNKNOWN})
        return SampleRows(
            time_us=time_us,
            cpu=cpu,
            task=task,
            stack=stack,
            period=period,
            event=event,
            stack_lengths=lengths,
            stack_frames=flat,
            frames=[FrameRow(*frame) for frame in frames],
            tasks=[TaskRow(*row) for row in tasks],
            events=[SampleEvent(name or "samples") for name in events],
            idle_samples=idle,
        )

    def _tell(self) -> None:
        text, note = self._text, self._outcome.note
        self._outcome.skipped.update(text.skipped)
        if text.untimed:
            note(
                f"{text.untimed:,} samples carry no time and are all at one moment; flame graphs are right, the heat "
                "map is not (perf script -F +time prints it)"
            )
        if text.one_id:
            note(
                "the text has one number where pid and tid could be, which perf prints for the thread; it is used "
                "for both (perf script -F +pid prints both)"
            )
        # A few addresses that nobody knows are in every text: stacks without frame pointers hold any number.
        if self._nameless_kernel and not self._named_kernel:
            note(
                "kernel functions without a name in the text: perf script could not read kallsyms of that kernel "
                "(run it as root on that node, or import perf.data with --kallsyms)"
            )
        if text.open_end:
            note("the text ends without an empty line: its last stack may be cut short")


def is_unix(span_us: tuple[int, int] | None) -> bool:
    """Whether the times of a text are Unix time already (perf record -k CLOCK_REALTIME)."""
    return span_us is not None and span_us[0] >= _UNIX_US


def peek(file: BinaryIO, size: int) -> tuple[ScriptHeader, tuple[int, int] | None]:
    """Header and span of a plain file that can seek, from its beginning and its end alone. Raises OSError."""
    first = PerfScriptText(place, MAX_ROWS)
    file.seek(0)
    first.feed(file.read(_PEEK_BYTES))
    last = PerfScriptText(place, MAX_ROWS)
    file.seek(max(0, size - _PEEK_BYTES))
    end = file.read(_PEEK_BYTES)
    last.feed(end[end.find(b"\n") + 1 if size > _PEEK_BYTES else 0 :])
    last.finish()
    file.seek(0)
    spans = [text.span_us for text in (first, last) if text.span_us is not None]
    span = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
    return ScriptHeader([*first.header, *last.header]), span


def peek_head(head: bytes) -> tuple[ScriptHeader, tuple[int, int] | None]:
    """Header and span of a text of which only the beginning can be read before the rest: the span if the header says
    it."""
    first = PerfScriptText(place, MAX_ROWS)
    first.feed(head)
    header = ScriptHeader(first.header)
    if header.first_us is None or header.last_us is None:
        return header, None
    return header, (header.first_us, header.last_us)

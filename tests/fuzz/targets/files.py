"""Files that people hand to `import`: side files of an incident, and streams that are packed."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from typing import Any

import zstandard

from tests.fuzz.target import Target
from zombiescope.imports import kernel_log, mpstat, proc_cgroups
from zombiescope.imports.collapsed import CollapsedImport, host_in
from zombiescope.imports.inputs import detect
from zombiescope.imports.rows import ImportReport
from zombiescope.imports.stream import Stream, text_of
from zombiescope.store import schema
from zombiescope.store.log import encode_rows

NAMES = ("nice", "iowait", "irq", "soft", "steal")
LOAD = {"cpu": "0", "usr": 1.5, "sys": 2, **dict.fromkeys(NAMES, 0.0), "idle": 96.5}
REPORT = {"timestamp": "11:52:47", "cpu-load": [LOAD]}
MPSTAT = {"sysstat": {"hosts": [{"nodename": "n", "date": "11/15/26", "statistics": [REPORT] * 3}]}}
ENTRY = {"__REALTIME_TIMESTAMP": "1794743206000000", "MESSAGE": "oom", "_TRANSPORT": "kernel", "PRIORITY": "0"}
LOG = (
    json.dumps(ENTRY)
    + "\n[12612.193516] a\n<4>[1.000000] b\nNov 15 11:46:46 n kernel: c\n2026-11-15T11:46:46,1+00:00 d\n"
)
CGROUPS = "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t68680\t1\n"
COLLAPSED = '# {"metadata": {"hostname": "n"}, "container_names_enabled": true}\na;b;c_[k] 12\nd 3.5\n'
TEXTS = (json.dumps(MPSTAT, indent=1), LOG, CGROUPS, COLLAPSED)
PACKED_BYTES = 1 << 20


def storable(table: schema.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        assert encode_rows(table, list(rows), 0)


def read_mpstat(text: str) -> None:
    mpstat.host_in(text)
    storable(schema.CORES, mpstat.read(text, 0, ImportReport()))


def read_kernel_log(text: str) -> None:
    kernel_log.host_in(text)
    for boot_offset_us in (None, 1 << 50):
        events = kernel_log.read(text, 1 << 50, boot_offset_us, ImportReport())
        storable(schema.EVENTS, [event.row() for event in events])


def read_proc_cgroups(text: str) -> None:
    proc_cgroups.live_directories(text)
    storable(schema.CENSUS, proc_cgroups.read(text, 0, None, ImportReport()))


def read_collapsed(text: str) -> None:
    host_in(text)
    data = text.encode("utf-8", "surrogatepass")
    for rows in CollapsedImport(ImportReport()).read([data[: len(data) // 2], data[len(data) // 2 :]]):
        assert rows.period is not None
        assert min(rows.period) > 0


def read_all(text: str) -> None:
    """One text as each of the kinds."""
    detect(text.encode("utf-8", "surrogatepass"))
    for read in (read_mpstat, read_kernel_log, read_proc_cgroups, read_collapsed):
        read(text)


def stream(data: bytes) -> None:
    """Unpacked, in bounded pieces; a stream that claims to be endless is cut off by whoever reads it."""
    detect(data)
    left = PACKED_BYTES
    for piece in Stream(io.BytesIO(data), lambda _: None):
        left -= len(piece)
        if left < 0:
            break
    said = text_of(Stream(io.BytesIO(data), lambda _: None), 1 << 16)
    assert len(said) <= 4 << 16  # a byte that is no text is written as \\xff


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _packed() -> list[bytes]:
    return [gzip.compress(LOG.encode()), zstandard.ZstdCompressor().compress(LOG.encode()), LOG.encode()]


TARGETS = (
    Target("mpstat", lambda data: read_mpstat(_text(data)), lambda: [TEXTS[0].encode()]),
    Target(
        "dmesg-and-journal-files",
        lambda data: read_kernel_log(_text(data)),
        lambda: [LOG.encode()],
        most_bytes=1024,
    ),
    Target("proc-cgroups-file", lambda data: read_proc_cgroups(_text(data)), lambda: [CGROUPS.encode()]),
    Target("collapsed", lambda data: read_collapsed(_text(data)), lambda: [COLLAPSED.encode()]),
    Target("packed-streams", stream, _packed),
)

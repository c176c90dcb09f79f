"""What `perf script` prints of a recording, as an oracle for the importer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

KERNEL_HALF = 0xFFFF_8000_0000_0000
FIELDS = "comm,pid,tid,cpu,time,event,ip,sym,symoff,dso"
_HEAD = re.compile(r"^\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(?:\[(\d+)\]\s+)?(\d+)\.(\d{6}):\s+(\S+):(\s.*)?$")
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*?)(?:\+0x([0-9a-f]+))? \((.*)\)$")


class ScriptFrame(NamedTuple):
    name: str
    offset: int
    dso: str
    address: int

    @property
    def is_kernel(self) -> bool:
        """Said to be of the kernel: a user's stack may hold any number, and perf then knows no place for it."""
        return self.address >= KERNEL_HALF and self.dso != "[unknown]"


class ScriptSample(NamedTuple):
    comm: str
    pid: int
    tid: int
    cpu: int
    time_us: int
    event: str
    frames: list[ScriptFrame]
    """Leaf first."""


def read(perf: str, path: Path, *, has_cpu: bool = True) -> list[ScriptSample]:
    fields = FIELDS if has_cpu else FIELDS.replace("cpu,", "")
    command = [perf, "script", "-i", str(path), "--no-inline", "--no-demangle", "--max-stack", "1024", "-F", fields]
    text = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout.decode("utf-8", "replace")
    samples: list[ScriptSample] = []
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            comm, pid, tid, cpu, seconds, micros, event, rest = head.groups()
            at_us = int(seconds) * 1_000_000 + int(micros)
            samples.append(ScriptSample(comm, int(pid), int(tid), int(cpu or -1), at_us, event, []))
            line = rest or ""  # without call chains, the one frame stands here
        frame = _FRAME.match(line)
        if frame is not None:
            address, name, offset, dso = frame.groups()
            samples[-1].frames.append(ScriptFrame(name, int(offset or "-1", 16), dso, int(address, 16)))
        else:
            assert not line.strip(), f"perf script says something unforeseen: {line!r}"
    return samples

# ruff: noqa: E501 - lines that perf prints are kept whole
"""Text that the perf of this machine prints, against a slow and simple reading of it."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.script_rows import parse

LOAD = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); cat /proc/self/stat > /dev/null; done"
EVENT = re.compile(r"(?P<comm>.+?) +(?P<pid>-?\d+)(?:/(?P<tid>-?\d+))? +\[(?P<cpu>\d+)\] +(?P<s>\d+)\.(?P<us>\d{6})\d*: +(?P<period>\d+ +)?(?P<event>\S+): *")  # fmt: skip
FRAME = re.compile(r"\t *([0-9a-f]+) (.*?) \(([/\[b].*)\)")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs = Needs()
    needs.root()
    needs.binary("perf", "linux-perf")
    needs.perf_events()
    path = tmp_path_factory.mktemp("perf") / "perf.data"
    command = ("perf", "record", "-q", "-a", "-g", "-F", "999", "-e", "cpu-clock,task-clock", "-o", str(path), "--")
    subprocess.run([*command, "sh", "-c", LOAD], check=True, capture_output=True)
    return path


def script(data: Path, *options: str) -> str:
    done = subprocess.run(["perf", "script", "-i", str(data), *options], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "backslashreplace")


@pytest.mark.parametrize("options", [(), ("-F", "+pid"), ("--ns", "-F", "+pid"), ("--header",)])
def test_every_sample_is_there_with_all_that_its_line_says(data: Path, options: tuple[str, ...]) -> None:
    text = script(data, *options)
    expected: Counter[tuple[object, ...]] = Counter()
    for line in text.splitlines():
        found = None if line[:1] in ("\t", " ", "#") else EVENT.fullmatch(line)
        if found is not None:
            pid, tid = (None if int(said) < 0 else int(said) for said in (found["pid"], found["tid"] or found["pid"]))
            at = int(found["s"]) * 1_000_000 + int(found["us"])
            comm: str | None = found["comm"].strip()
            if comm == f":{found['tid'] or found['pid']}":
                comm = None  # of a thread that perf knows no name of, such as one that was gone by then (-1)
            expected[comm, pid, tid, int(found["cpu"]), at, found["event"]] += 1
    assert sum(expected.values()) > 50
    parsed = parse(text)
    assert (
        Counter((each.comm, each.pid, each.tid, each.cpu, each.time_us, each.event) for each in parsed.samples)
        == expected
    )
    assert not parsed.text.skipped


def test_every_frame_is_there_in_its_place(data: Path) -> None:
    text = script(data, "--no-inline")
    stacks: list[list[str]] = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip()]
        if lines:
            names = [(FRAME.fullmatch(line) or [""] * 3)[2] for line in lines[1:]]
            stacks.append([re.sub(r"\+0x[0-9a-f]+$", "", name) for name in names])
    found = [[*reversed(sample.stack)] for sample in parse(text).samples]
    assert len(found) == len(stacks)
    # The kernel's names lose what the compiler put behind them (.isra.0), as in a recording of our own.
    assert [len(stack) for stack in found] == [len(stack) for stack in stacks]
    for ours, theirs in zip(found, stacks, strict=True):
        odd = [
            pair
            for pair in zip(ours, theirs, strict=True)
            if pair[0] != pair[1] and not pair[1].startswith(f"{pair[0]}.")
        ]
        assert not odd

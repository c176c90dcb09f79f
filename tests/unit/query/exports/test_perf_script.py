"""The text of perf script, as those who read it take it apart. The expressions are theirs: FlameGraph's
stackcollapse-perf.pl, FlameScope, Firefox Profiler; speedscope itself opens it in test_speedscope."""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest
from tests.helpers import truth
from tests.helpers.truth import imported

from zombiescope.query.exports import perf_script
from zombiescope.query.selection import Filters
from zombiescope.store.reader import Recording
from zombiescope.store.sample_event import SampleEvent

EVENT_LINES = {
    "stackcollapse-perf.pl": r"^(?P<comm>\S.+?)\s+(?P<pid>\d+)/*(?P<tid>\d+)*\s+",
    "FlameScope": r" +(?P<time>[0-9.]+): .+?:",
    "Firefox Profiler": r"^(?P<comm>.*)\s+(?:(?P<pid>\d+)/)?(?P<tid>\d+)\b.*\s(?P<time>[\d.]+):",
    "speedscope": r"^(?P<comm>\S.+?)\s+(?P<pid>\d+)(?:/?(?P<tid>\d+))?\s.*\s+(?P<time>\d+\.\d+):\s+",
}
FRAME_LINES = {
    "stackcollapse-perf.pl": r"^\s*(\w+)\s*(?P<name>.+) \((?P<file>.*)\)",
    "FlameScope": r"^[\t ]*[0-9a-fA-F]+ (?P<name>.+) \((?P<file>.*?)\)$",
    "Firefox Profiler": r"^\s*(\w+)\s*(?P<name>.+) \((?P<file>[^)]*)\)",
}
OFFSET = re.compile(r"\+0x[\da-f]+$")


def text(recording: Recording, filters: Filters | None = None) -> str:
    out = BytesIO()
    perf_script.write(truth.samples(recording, filters), out)
    return out.getvalue().decode()


def blocks(whole: str) -> list[list[str]]:
    """Samples: an event line and its frame lines."""
    head, _, body = whole.partition("\n\n")
    assert all(line.startswith("#") for line in head.splitlines())
    return [block.splitlines() for block in body.removesuffix("\n\n").split("\n\n")]


@pytest.mark.parametrize("reader", sorted(EVENT_LINES))
def test_event_lines_are_understood(recording: Recording, reader: str) -> None:
    found: Counter[object] = Counter()
    expected: Counter[object] = Counter()
    for first, *_ in blocks(text(recording)):
        match = re.search(EVENT_LINES[reader], first)
        assert match is not None, first
        found[tuple(sorted(match.groupdict().items()))] += 1
    keys = re.compile(EVENT_LINES[reader]).groupindex
    for row in truth.rows(recording):
        seconds, us = divmod(row.time_us, 1_000_000)
        known = {"comm": row.comm, "pid": str(row.pid), "tid": str(row.tid), "time": f"{seconds}.{us:06}"}
        expected[tuple(sorted((key, known[key]) for key in keys))] += 1
    assert found == expected


@pytest.mark.parametrize("reader", sorted(FRAME_LINES))
def test_frame_lines_are_understood(odd: Recording, reader: str) -> None:
    line = re.compile(FRAME_LINES[reader])
    for _, *frames in blocks(text(odd)):
        for frame in frames:
            match = line.search(frame)
            assert match is not None, frame
    named = {
        OFFSET.sub("", match["name"]) for _, *frames in blocks(text(odd)) for f in frames if (match := line.search(f))
    }
    plain = {name for name, module, _ in truth.FRAMES if "(" not in (module or "")}
    assert plain <= named


def test_every_sample_in_full(odd: Recording) -> None:
    found = Counter((first, *frames) for first, *frames in blocks(text(odd)))
    assert sum(found.values()) == len(truth.rows(odd))
    whole = text(odd)
    assert "\nWeb Content 7 42/43 [001] 1760000000.001000:   10101010 cpu-clock: \n" in whole
    assert "\n:-1 -1/-1 1760000000.300000: " in whole, "a task and a core that are not known"
    found_frames = re.findall(r"^\t *[0-9a-f]+ (\S+) \((.*)\)$", whole, re.MULTILINE)
    kinds = dict(found_frames)
    assert kinds["do_syscall_64"] == "[kernel.kallsyms]"
    assert kinds["ena_io_poll"] == "[ena]"
    assert kinds["bpf_prog_6deef7357e7b4530_sd_fw_ingress"] == "[bpf]"
    generated = {file for name, file in found_frames if name == "[jit]"}
    assert generated == {"[anon]", "[anon:v8]", "/memfd:doublemapper"}
    assert kinds["clock_gettime"] == "[vdso]"
    assert kinds["[exited]"] == "[unknown]"
    assert kinds["libfoo.so+0x1234+0x0"] == "libfoo.so", "what looks like an offset is not one"


def test_addresses_tell_functions_and_the_kernel_apart(odd: Recording) -> None:
    found = re.findall(r"^\t *([0-9a-f]+) (.*) \((.*)\)$", text(odd), re.MULTILINE)
    functions = {(name, module) for _, name, module in found}
    addresses = {int(address, 16): module for address, _, module in found}
    assert len(addresses) == len(functions)
    high = {module for address, module in addresses.items() if address >> 63}
    assert high == {"[kernel.kallsyms]", "[ena]", "[bpf]"}


def test_each_sample_names_its_event_and_period(tmp_path: Path) -> None:
    events = [SampleEvent("cycles:ppp"), SampleEvent("sched:sched_switch")]
    with imported(tmp_path, events, [0, 1], [4242, 1]) as recording:
        both = blocks(text(recording, Filters(every_event=True)))
        assert [first.split(": ", 1)[1].split() for first, *_ in both] == [
            ["4242", "cycles:ppp:"],
            ["1", "sched:sched_switch:"],
        ]

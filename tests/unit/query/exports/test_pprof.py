"""pprof as its own tool reads it: `go tool pprof`."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import Needs
from tests.helpers import truth
from tests.helpers.truth import imported

from zombiescope.query.exports import pprof
from zombiescope.store.reader import Recording
from zombiescope.store.sample_event import SampleEvent


class Sample(NamedTuple):
    values: tuple[int, ...]
    names: tuple[str, ...]
    labels: dict[str, str]


class Raw(NamedTuple):
    text: str
    types: list[str]
    samples: list[Sample]
    modules: dict[str, str]


def raw(profile: bytes, place: Path, needs: Needs) -> Raw:
    """The profile as `pprof -raw` prints it."""
    written = place / "cpu.pb.gz"
    written.write_bytes(profile)
    go = needs.binary("go", "golang-go")
    done = subprocess.run(
        [go, "tool", "pprof", "-symbolize=none", "-raw", str(written)], capture_output=True, text=True, check=True
    )
    head, _, rest = done.stdout.partition("Samples:\n")
    listed, _, tables = rest.partition("Locations\n")
    locations, _, mappings = tables.partition("Mappings\n")
    files = dict(re.findall(r"^(\d+): \S+ (\S.*?) *\[FN\]", mappings, re.MULTILINE))
    names, modules = {}, {}
    for number, mapping, rest in re.findall(r"^ *(\d+): 0x[0-9a-f]+ (?:M=(\d+) )?(.*)$", locations, re.MULTILINE):
        # "name file:0 s=0"; only Python functions have a file.
        names[number] = rest.removesuffix(":0 s=0").rpartition(" ")[0]
        modules[names[number]] = files.get(mapping, "")
    types, *lines = listed.splitlines()
    samples: list[Sample] = []
    for line in lines:
        values, colon, stack = line.partition(": ")
        if colon and re.fullmatch(r"[ \d]+", values):
            functions = tuple(names[number] for number in reversed(stack.split()))
            samples.append(Sample(tuple(map(int, values.split())), functions, {}))
        else:
            samples[-1].labels.update(re.findall(r"(\w+):\[(.*?)\](?= \w+:|\s*$)", line))
    return Raw(head, types.split(), samples, modules)


def profile(recording: Recording) -> bytes:
    out = BytesIO()
    pprof.write(truth.samples(recording), out)
    return out.getvalue()


def test_every_stack_thread_and_core_keeps_its_count(odd: Recording, tmp_path: Path, needs: Needs) -> None:
    found = raw(profile(odd), tmp_path, needs)
    expected = Counter((row.names, row.pid, row.tid, row.comm, row.cpu) for row in truth.rows(odd))
    counted: Counter[object] = Counter()
    for sample in found.samples:
        pid, tid, cpu = (_number(sample.labels.get(key)) for key in ("pid", "tid", "cpu"))
        counted[sample.names, pid, tid, sample.labels.get("comm"), cpu] += sample.values[0]
    assert counted == expected
    assert len(found.samples) == len(expected), "each of them once"


def _number(label: str | None) -> int | None:
    return None if label is None else int(label.removesuffix(" id"))


def test_time_and_units(recording: Recording, tmp_path: Path, needs: Needs) -> None:
    found = raw(profile(recording), tmp_path, needs)
    assert found.types == ["samples/count", "cpu/nanoseconds[dflt]"]
    assert "PeriodType: cpu nanoseconds\nPeriod: 10101010\nTime: 2025-10-09 08:53:20 +0000 UTC\n" in found.text
    assert all(sample.values[1] == sample.values[0] * 10_101_010 for sample in found.samples)
    assert sum(sample.values[0] for sample in found.samples) == len(truth.rows(recording))
    assert {"unit", "container"} <= {key for sample in found.samples for key in sample.labels}


def test_modules_are_mappings(odd: Recording, tmp_path: Path, needs: Needs) -> None:
    modules = raw(profile(odd), tmp_path, needs).modules
    assert modules["do_syscall_64"] == "[kernel.kallsyms]"
    assert modules["ena_io_poll"] == "[ena]"
    assert modules["main"] == "train"
    assert modules["[exited]"] == ""


@pytest.mark.parametrize(
    ("event", "types", "values"),
    [
        (SampleEvent("cycles:u"), ["samples/count", "cycles/count[dflt]"], (2, 300)),
        (SampleEvent("task-clock"), ["samples/count", "cpu/nanoseconds[dflt]"], (2, 300)),
        (SampleEvent("collapsed", weighted=True), ["samples/count[dflt]"], (300,)),
    ],
)
def test_other_events(
    tmp_path: Path, needs: Needs, event: SampleEvent, types: list[str], values: tuple[int, ...]
) -> None:
    with imported(tmp_path / "rec", [event], [0, 0], [100, 200]) as recording:
        found = raw(profile(recording), tmp_path, needs)
    assert found.types == types
    assert [sample.values for sample in found.samples] == [values]


def test_no_sample_is_a_profile_that_opens(recording: Recording, tmp_path: Path, needs: Needs) -> None:
    from zombiescope.query.selection import Filters

    out = BytesIO()
    pprof.write(truth.samples(recording, Filters(comms=("nobody",))), out)
    assert raw(out.getvalue(), tmp_path, needs).samples == []

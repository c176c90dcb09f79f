"""import(export(x)): what comes back is what was recorded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.helpers import truth
from tests.helpers.cli import Cli
from tests.helpers.recordings import Written, contents

from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.sample_event import SampleEvent


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def back(cli: Cli, place: str, name: str, *options: str) -> Recording:
    """The recording after it was exported to a file and imported from there."""
    written, again = cli.home / name, cli.home / "again"
    done = cli("export", place, *options, "-o", str(written))
    assert done.code == 0, done.err
    done = cli("import", str(written), str(again), "--json")
    assert done.code == 0, done.err
    assert done.document["skipped"] == []
    return open_recording(again)


def samples(recording: Recording) -> Counter[truth.Row]:
    """Without units, which perf does not know."""
    return Counter(row._replace(unit=None) for row in truth.rows(recording))


@pytest.mark.parametrize("name", ["lab.perf", "lab.perf.gz"])
def test_perf_script_keeps_every_sample(cli: Cli, written: Written, recording: Recording, name: str) -> None:
    with back(cli, str(written.dir), name, "--format", "perf-script") as again:
        assert samples(again) == Counter(
            row._replace(unit=None, stack=tuple(_as_perf_says(*frame) for frame in row.stack))
            for row in truth.rows(recording)
        )
        assert again.node["imported"]["events"] == ["cpu-clock"]
        assert again.node["kernel"] == "5.4.0-1024-aws"
        assert again.name == "lab"


def test_perf_script_keeps_what_is_odd(cli: Cli, odd: Recording) -> None:
    place = str(odd.store.place)
    with back(cli, place, "odd.perf", "--format", "perf-script", "--idle") as again:
        expected = Counter(
            row._replace(unit=None, stack=tuple(_as_perf_says(*frame) for frame in row.stack))
            for row in truth.rows(odd)
        )
        assert samples(again) == expected


def _as_perf_says(name: str, module: str | None, kind: str) -> truth.Frame:
    """perf has no name for the kernel as a module."""
    return name, None if kind == "kernel" else module, kind


def test_periods_and_events_come_back(cli: Cli, tmp_path: Path) -> None:

    events = [SampleEvent("cycles:ppp"), SampleEvent("sched:sched_switch")]
    with truth.imported(tmp_path / "rec", events, [0, 1, 0], [4242, 1, 17]) as recording:
        expected = _events(recording)
    with back(cli, str(tmp_path / "rec"), "two.perf", "--format", "perf-script") as again:
        assert _events(again) == expected


def _events(recording: Recording) -> Counter[object]:
    rows = contents(recording)["samples"]
    return Counter((time, period, series[1]) for time, _, _, _, period, series in rows)


@pytest.mark.parametrize("options", [(), ("--annotate",), ("--bare",)])
def test_collapsed_keeps_every_stack_and_count(cli: Cli, odd: Recording, options: tuple[str, ...]) -> None:
    with back(cli, str(odd.store.place), "odd.folded", "--format", "collapsed", *options) as again:
        found: Counter[tuple[str, ...]] = Counter()
        for _, _, _, stack, weight, _ in contents(again)["samples"]:
            found[tuple(name for name, _, _ in stack)] += weight
    first = () if "--bare" in options else ("comm",)
    expected = Counter((*(row.comm or "?" for _ in first), *row.names) for row in truth.rows(odd))
    assert found == expected


def test_collapsed_keeps_kinds_when_they_are_marked(cli: Cli, odd: Recording) -> None:
    with back(cli, str(odd.store.place), "odd.folded", "--format", "collapsed", "--annotate") as again:
        kinds = {name: kind for row in truth.rows(again) for name, _, kind in row.stack}
    assert kinds["do_syscall_64"] == kinds["ena_io_poll"] == "kernel"
    assert kinds["[jit]"] == "jit"

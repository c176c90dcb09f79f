"""The recorder starts on any kernel: what is not there, or raises while it is opened, is a missing source."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.replay import IDLE, Replay, Runs, Task

from zombiescope.kernel import cpu, hypervisor, kconfig
from zombiescope.kernel.ethtool import Ethtool
from zombiescope.recorder import __main__ as process
from zombiescope.recorder import cgroups, node, parts, priority, rings
from zombiescope.recorder.compactor import ChildProcess
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.cores import Cores
from zombiescope.recorder.counters import Counters
from zombiescope.recorder.kernel_log import KernelLog
from zombiescope.recorder.ledger import Ledger
from zombiescope.recorder.recorder import Recorder
from zombiescope.recorder.rings import PerfRings
from zombiescope.store.reader import open_recording

SECONDS = 3
AGENT = Task("agent", 2811, "/system.slice/agent.service")


def on(number: int, _: float) -> Runs:
    return Runs(AGENT, ("do_syscall_64", "cgroup_mkdir")) if number == 0 else IDLE


def spent(number: int, _: int) -> Mapping[str, int]:
    return {"system": 60, "idle": 40} if number == 0 else {"idle": 100}


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    functions = ["do_syscall_64", "cgroup_mkdir", *IDLE.path]
    made = Replay(tmp_path, 2, 19, on, spent, functions, (AGENT,), 12, ["/system.slice"])
    made.keep_time(monkeypatch)
    monkeypatch.setattr(ChildProcess, "start", lambda *_: None)
    return made


def recorded(replay: Replay) -> tuple[dict[str, int], set[str]]:
    """Rows by table, and the sources that were missing at the end."""
    made: list[Recorder] = []
    place = replay.record(SECONDS, lambda _, recorder, __: made.append(recorder), diagnose=True)
    with open_recording(place) as opened:
        rows = {name: opened.table(name).num_rows for name in ("cores", "cost", "samples", "counters", "census")}
    return rows, {one.source for one in made[0].sources.missing}


WITHOUT = (
    "proc/schedstat", "proc/pressure", "proc/vmstat", "proc/interrupts", "proc/net", "proc/softirqs", "proc/cgroups",
    "proc/self", "proc/kallsyms", "proc/meminfo", "proc/loadavg", "sys/kernel/tracing", "sys/fs/cgroup",
    "sys/devices/system/cpu", "sys/devices/system/node", "dev/kmsg", "proc/sys", "etc", "proc/cmdline", "proc/stat",
)  # fmt: skip


@pytest.mark.parametrize("path", WITHOUT)
def test_a_kernel_without_a_file_is_recorded_without_it(replay: Replay, path: str) -> None:
    there = replay.root / path
    shutil.rmtree(there) if there.is_dir() else there.unlink(missing_ok=True)
    rows, _ = recorded(replay)
    assert rows["cost"] == SECONDS + 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("proc/schedstat", "run queue delay"),
        ("proc/pressure", "pressure"),
        ("proc/softirqs", "softirqs"),
        ("proc/net", "softnet"),
        ("proc/vmstat", "vmstat"),
        ("proc/interrupts", "interrupts"),
        ("proc/kallsyms", "kernel symbols"),
        ("proc/stat", "per-core time"),
    ],
)
def test_what_is_not_there_is_missing_and_comes_back(replay: Replay, path: str, source: str) -> None:
    there, away = replay.root / path, replay.directory / "away"
    if path == "proc/schedstat":
        there.write_text("version 15\ntimestamp 1\n" + "".join(f"cpu{n} 0 0 0 0 0 0 1 2 3\n" for n in (0, 1)))
    there.rename(away)
    missing: list[set[str]] = []

    def happens(_: Replay, recorder: Recorder, second: int) -> None:
        missing.append({one.source for one in recorder.sources.missing})
        if second == 1 and not there.exists():
            away.rename(there)

    replay.record(4, happens)
    assert source in missing[0]
    if path not in ("proc/kallsyms", "proc/stat"):  # read at the start alone; written anew by the case itself
        assert source not in missing[-1]


BREAKS: tuple[tuple[str, Any, str], ...] = (
    ("host (start)", node, "this_host"),
    ("online cpus (start)", cpu, "online"),
    ("possible cpus (start)", cpu, "possible"),
    ("stack samples (start)", rings, "load_kernel_symbols"),
    ("stack samples (start)", PerfRings, "follow"),
    ("tracepoints (start)", PerfRings, "trace"),
    ("kernel log (start)", parts, "KernelLog"),
    ("kernel log (start)", KernelLog, "settle"),
    ("memory cgroups (start)", cgroups, "CgroupCounter"),
    ("cgroup directories (start)", cgroups.CgroupTracker, "begin"),
    ("ledger (start)", Ledger, "restore"),
    ("per-core time (start)", parts, "Cores"),
    ("ksoftirqd run delay (start)", Cores, "follow"),
    ("counters (start)", parts, "Counters"),
    ("NIC drivers (start)", Counters, "drivers"),
    ("node (start)", kconfig, "read"),
    ("node (start)", hypervisor, "read"),
    ("live diagnosis (start)", parts, "Doctor"),
)


@pytest.mark.parametrize("error", [OSError(97, "Address family not supported by protocol"), ValueError("odd")], ids=str)
@pytest.mark.parametrize(("source", "place", "name"), BREAKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_source_that_raises_at_the_start_is_missing_and_the_rest_is_recorded(
    replay: Replay, monkeypatch: pytest.MonkeyPatch, source: str, place: Any, name: str, error: Exception
) -> None:
    whole = getattr(place, name)
    tries: list[object] = []

    def raises_once(*args: Any, **more: Any) -> Any:
        tries.append(args)
        if len(tries) == 1:
            raise error
        return whole(*args, **more)

    if source.startswith("ledger"):
        replay.record(1, lambda *_: None)
        shutil.rmtree(replay.directory / "recording/node=replayed/log")  # its state stays
    monkeypatch.setattr(place, name, raises_once)
    rows, missing = recorded(replay)
    assert source in missing
    assert rows["cost"] == SECONDS + 1
    if not source.startswith(("per-core", "online")):
        assert rows["cores"] == 2 * SECONDS
    assert any(rows[table] for table in ("samples", "counters", "census"))


def test_no_socket_of_any_family_is_a_missing_source(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> socket.socket:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr("zombiescope.kernel.ethtool.socket.socket", unsupported)
    (replay.root / "sys/class/net/eth0/device").mkdir(parents=True)
    rows, missing = recorded(replay)
    assert rows["cores"] == 2 * SECONDS
    assert "NIC statistics" in missing


def test_a_kernel_without_internet_sockets_is_asked_over_another(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = socket.socket

    def only_unix(family: int, kind: int) -> socket.socket:
        if family != socket.AF_UNIX:
            raise OSError(97, "Address family not supported by protocol")
        return whole(family, kind)

    monkeypatch.setattr("zombiescope.kernel.ethtool.socket.socket", only_unix)
    asked = Ethtool()
    try:
        # THEN the kernel answers: lo has no driver's statistics, or some, but the socket is not to blame
        assert asked.is_open
        asked.driver("lo")
        assert asked.why is None or "socket" not in asked.why
        assert "Inappropriate" not in (asked.why or "")
    finally:
        asked.close()


@pytest.fixture
def no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """`record` is called in the process of the tests, which stays where it is."""
    monkeypatch.setattr(priority, "claim", lambda: 0)


@pytest.mark.usefixtures("no_priority")
def test_what_is_not_about_a_directory_does_not_speak_of_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: RecorderConfig) -> Recorder:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(process, "Recorder", broken)
    assert process.record(RecorderConfig(dir="/somewhere")) == 1
    said = capsys.readouterr().err
    assert "Too many open files" in said
    assert "directory" not in said


@pytest.mark.usefixtures("no_priority")
def test_a_directory_that_cannot_be_written_still_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert process.record(RecorderConfig(dir=str(tmp_path / "taken"))) == 1
    assert "choose a directory that you may write to" in capsys.readouterr().err

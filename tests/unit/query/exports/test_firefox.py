"""Firefox Profiler's own code (its command line, from npm) upgrades and opens the export, and finds in it what was
recorded."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers import truth
from tests.helpers.truth import imported

from zombiescope.query import events
from zombiescope.query.exports import firefox
from zombiescope.store.reader import Recording
from zombiescope.store.sample_event import SampleEvent

Ask = Callable[..., dict[str, Any]]
OLDEST_NODE = 20


def exported(recording: Recording) -> bytes:
    out = BytesIO()
    firefox.write(truth.samples(recording), out, title="lab <1>")
    return out.getvalue()


def listens(place: Path) -> bool:
    for path in place.glob("*.sock"):
        with socket.socket(socket.AF_UNIX) as tried:
            if tried.connect_ex(str(path)) == 0:
                return True
    return False


@pytest.fixture
def profiler(tmp_path: Path, needs: Needs) -> Iterator[Callable[[bytes], Ask]]:
    """Loads a file into a session; answers what a command of it says."""
    script = needs.npm("@firefox-devtools/profiler-cli", OLDEST_NODE) / "dist" / "profiler-cli.js"
    environment = os.environ | {"PROFILER_CLI_SESSION_DIR": str(tmp_path / "session")}

    sessions: list[subprocess.Popen[bytes]] = []

    def answer(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["node", str(script), *arguments, "--session", "test", "--json"],
            capture_output=True, text=True, timeout=60, env=environment, check=False,
        )  # fmt: skip

    def ask(*arguments: str) -> dict[str, Any]:
        done = answer(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    def load(file: bytes) -> Ask:
        path = tmp_path / "profile.json"
        path.write_bytes(file)
        # Its own `load` gives the process behind it half a second to start, which a busy machine does not keep.
        session = subprocess.Popen(["node", str(script), "--daemon", str(path), "--session", "test"], env=environment)
        sessions.append(session)
        for _ in range(600):
            # Asked before it listens, the command line takes the session for a dead one and removes it.
            if session.poll() is not None or (
                listens(tmp_path / "session") and answer("profile", "info").returncode == 0
            ):
                break
            time.sleep(0.05)
        return ask

    yield load
    for session in sessions:
        session.terminate()
        session.wait()


def test_firefox_profiler_opens_it(recording: Recording, profiler: Callable[[bytes], Ask]) -> None:
    ask = profiler(exported(recording))
    rows = truth.rows(recording)
    info = ask("profile", "info", "--all")
    assert info["name"].startswith("lab <1>")
    threads = {
        (process["pid"], thread["tid"], thread["name"]): thread["threadHandle"]
        for process in info["processes"]
        for thread in process["threads"]
        if process["pid"] != "node"
    }
    counts = Counter((str(row.pid), row.tid, row.comm) for row in rows)
    assert set(threads) == set(counts)
    handle = threads["1201", 1201, "kubelet"]
    found = ask("thread", "functions", "--thread", handle, "--include-idle")["functions"]
    mine = [row.names for row in rows if row.pid == 1201]
    leaves = Counter(names[-1] for names in mine)
    anywhere = Counter(name for names in mine for name in set(names))
    assert {each["name"]: each["selfSamples"] for each in found if each["selfSamples"]} == leaves
    assert {each["name"]: each["totalSamples"] for each in found} == anywhere
    assert {each["library"] for each in found} == {"[kernel.kallsyms]", "libtorch.so"}


def test_events_are_markers(recording: Recording, profiler: Callable[[bytes], Ask]) -> None:
    ask = profiler(exported(recording))
    (node,) = [
        thread["threadHandle"]
        for process in ask("profile", "info", "--all")["processes"]
        for thread in process["threads"]
        if process["pid"] == "node"
    ]
    text = json.dumps(ask("thread", "markers", "--thread", node, "--list"))
    for event in events.events(recording):
        assert event.kind in text
        assert json.dumps(event.text)[1:-1] in text


def test_every_stack_and_count_and_time(odd: Recording) -> None:
    document = json.loads(exported(odd))
    shared = document["shared"]
    names = [shared["stringArray"][each] for each in shared["funcTable"]["name"]]
    tree = list(zip(shared["stackTable"]["prefix"], shared["stackTable"]["frame"], strict=True))

    def stack(node: int | None) -> tuple[str, ...]:
        if node is None:
            return ()
        prefix, frame = tree[node]
        return (*stack(prefix), names[shared["frameTable"]["func"][frame]])

    found: Counter[object] = Counter()
    for thread in document["threads"][1:]:
        table = thread["samples"]
        for node, time_ms in zip(table["stack"], table["time"], strict=True):
            found[thread["pid"], thread["tid"], round(time_ms * 1000) + odd.start_us, stack(node)] += 1
    assert found == Counter((str(row.pid or 0), row.tid or 0, row.time_us, row.names) for row in truth.rows(odd))
    for table in (table for table in shared.values() if isinstance(table, dict)):
        assert all(len(column) == table["length"] for column in table.values() if isinstance(column, list))
    for thread in document["threads"]:
        times = thread["samples"]["time"]
        assert times == sorted(times)


def test_kinds_are_categories(odd: Recording) -> None:
    document = json.loads(exported(odd))
    shared = document["shared"]
    categories = [each["name"] for each in document["meta"]["categories"]]
    found = {
        shared["stringArray"][shared["funcTable"]["name"][function]]: categories[category]
        for function, category in zip(shared["frameTable"]["func"], shared["frameTable"]["category"], strict=True)
    }
    assert found["do_syscall_64"] == "Kernel"
    assert found["ena_io_poll"] == "Kernel module"
    assert found["[jit]"] == "Generated code"
    assert found["main"] == found["clock_gettime"] == "User"
    assert found["[exited]"] == "Other"


def test_weights_are_kept(tmp_path: Path, profiler: Callable[[bytes], Ask]) -> None:
    with imported(tmp_path / "rec", [SampleEvent("collapsed", weighted=True)], [0, 0], [5, 7]) as recording:
        ask = profiler(exported(recording))
    found = ask("thread", "functions", "--thread", "t-1", "--include-idle")["functions"]
    assert [(each["name"], each["selfSamples"]) for each in found] == [("main", 12)]

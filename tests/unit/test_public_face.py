"""What `import zombiescope` shows, and what it costs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zombiescope


def in_fresh_python(code: str) -> object:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    return json.loads(done.stdout)


def test_what_is_visible_is_what_is_exported() -> None:
    visible = in_fresh_python(
        "import json, zombiescope; print(json.dumps([n for n in dir(zombiescope) if n[0] != '_']))"
    )
    assert visible == sorted(zombiescope.__all__) == ["Recording", "mark", "open", "step"]


def test_everything_exported_exists() -> None:
    assert all(callable(getattr(zombiescope, name)) for name in zombiescope.__all__)
    with pytest.raises(AttributeError, match="no attribute 'close'"):
        _ = zombiescope.close


def test_importing_and_marking_loads_nothing_heavy() -> None:
    code = "import json, sys, zombiescope; zombiescope.mark('x'); print(json.dumps(sorted(sys.modules)))"
    loaded = in_fresh_python(code)
    assert isinstance(loaded, list)
    assert not {"numpy", "pyarrow", "zstandard", "typer", "rich", "asyncio", "zombiescope._native"} & set(loaded)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_a_mark_reaches_the_recorders_socket(runtime: Path) -> None:
    # GIVEN a socket as the recorder opens it
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as recorder:
        recorder.bind(str(runtime / "mark.sock"))
        # WHEN a script marks
        before_us = time.time_ns() // 1000
        assert zombiescope.mark("epoch 12") is True
        # THEN text and time arrive
        said = json.loads(recorder.recv(65536))
    assert said["text"] == "epoch 12"
    assert before_us <= said["at_us"] <= time.time_ns() // 1000


def test_a_mark_without_a_recorder_is_no_error(runtime: Path) -> None:
    assert zombiescope.mark("into the void") is False


def test_a_mark_never_raises_and_never_waits(runtime: Path) -> None:
    # GIVEN a recorder that does not drain its socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as recorder:
        recorder.bind(str(runtime / "mark.sock"))
        assert zombiescope.mark("\udcff\x00🦈" * 100_000) is True
        # THEN marks are taken until the socket is full, and then given up: one that waited would not end
        while zombiescope.mark("epoch 13"):
            pass
        # AND a recorder that reads 4096 bytes at a time gets it whole
        assert len(json.loads(recorder.recv(4096))["text"]) == 500

"""Which recorder runs here, and which directory is meant when none is named."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope._mark import RECORDERS
from zombiescope.store import locate


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory of this test's own, and no recording anywhere."""
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(place))
    monkeypatch.delenv("ZOMBIESCOPE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(locate, "SYSTEM_DIR", tmp_path / "var")
    return place


def publish(runtime: Path, recording: Path, pid: int, *, place: int = 1, started_us: int = 5) -> Path:
    node_dir = recording / "node=lab"
    node_dir.mkdir(parents=True, exist_ok=True)
    (node_dir / "lock").touch()
    said = {
        "pid": pid,
        "recording": str(recording),
        "node": "lab",
        "started_us": started_us,
        "mark_socket": str(runtime / "mark.sock"),
    }
    (runtime / locate.published_name(place)).write_text(json.dumps(said))
    return node_dir / "lock"


def test_a_recorder_runs_while_its_lock_is_held(runtime: Path, tmp_path: Path) -> None:
    # GIVEN a recorder that published itself and holds its lock
    lock = publish(runtime, tmp_path / "rec", os.getpid())
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # THEN it is found, and so is its recording
        recorder = locate.running_recorder()
        assert recorder is not None
        assert (recorder.pid, recorder.node, recorder.node_dir) == (
            os.getpid(),
            "lab",
            tmp_path / "rec" / "node=lab",
        )
        assert locate.default_dir() == tmp_path / "rec"
    # WHEN the lock is gone, though the process lives and its file is still there
    # THEN no recorder runs: the number may be somebody else's by now
    assert locate.running_recorder() is None


def test_a_second_recorder_hides_nobody(runtime: Path, tmp_path: Path) -> None:
    # GIVEN one that runs for long, and its place taken
    first = publish(runtime, tmp_path / "long", os.getpid(), started_us=5)
    with first.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert locate.free_place(runtime) == 2
        # WHEN a short one runs beside it
        second = publish(runtime, tmp_path / "short", os.getpid(), place=2, started_us=9)
        with second.open() as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            # THEN both are found, and the first is the one that is meant
            assert [one.recording.name for one in locate.running_recorders()] == ["long", "short"]
            assert locate.default_dir() == tmp_path / "long"
            assert locate.free_place(runtime) == 3
        assert [one.recording.name for one in locate.running_recorders()] == ["long"]
    # WHEN the first has ended, THEN its place is free
    assert locate.free_place(runtime) == 1


def test_only_so_many_are_listed(runtime: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for place in range(1, RECORDERS + 1):
            lock = stack.enter_context(publish(runtime, tmp_path / str(place), os.getpid(), place=place).open())
            fcntl.flock(lock, fcntl.LOCK_EX)
        assert locate.free_place(runtime) is None


@pytest.mark.parametrize("said", ["", "[]", "null", "{}", '{"pid": "x"}', '{"pid": 1, "recording": 7}'])
def test_nonsense_in_the_published_file_is_no_recorder(runtime: Path, said: str) -> None:
    (runtime / locate.published_name(1)).write_text(said)
    assert locate.running_recorder() is None


def test_a_file_of_another_user_is_not_believed(needs: Needs, runtime: Path, tmp_path: Path) -> None:
    needs.root()  # only root can give a file away
    lock = publish(runtime, tmp_path / "rec", os.getpid())
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        os.chown(runtime / locate.published_name(1), 4242, 4242)
        assert locate.running_recorder() is None


def test_the_environment_names_the_directory_first(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_DIR", "/data/flight")
    assert locate.default_dir() == locate.default_dir_for_writing() == Path("/data/flight")


def test_reading_falls_back_to_the_users_recording(runtime: Path, tmp_path: Path) -> None:
    # GIVEN no recording for the system, THEN the system's place is named, for the error to say
    assert locate.default_dir() == tmp_path / "var"
    # WHEN the user has one, THEN it is that
    (tmp_path / "state/zombiescope/node=lab").mkdir(parents=True)
    assert locate.default_dir() == tmp_path / "state/zombiescope"
    # WHEN the system has one too, THEN it comes first
    (tmp_path / "var/node=lab").mkdir(parents=True)
    assert locate.default_dir() == tmp_path / "var"


def test_writing_goes_to_the_users_state_where_the_system_place_is_closed(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locate.default_dir_for_writing() == tmp_path / "var"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert locate.default_dir_for_writing() == tmp_path / "state/zombiescope"


def test_a_user_publishes_in_the_session_directory_or_in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZOMBIESCOPE_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert locate.runtime_directory() == tmp_path / "zombiescope"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert locate.runtime_directory() == Path("/tmp/zombiescope-1000")
    # WHEN it is the user of a unit with RuntimeDirectory=, which may write there, or root
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert locate.runtime_directory() == Path("/run/zombiescope")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert locate.runtime_directory() == Path("/run/zombiescope")


def test_nobody_is_alive_under_an_absurd_number() -> None:
    assert locate.is_alive(os.getpid())
    assert not locate.is_alive(2**62)


def test_a_recorder_whose_directory_root_gave_it_is_believed(needs: Needs, runtime: Path, tmp_path: Path) -> None:
    # GIVEN a recorder as a service: a user of its own, and a runtime directory that its unit asked root for
    needs.root()  # only root can give a file away
    lock = publish(runtime, tmp_path / "rec", os.getpid())
    os.chown(runtime, 4242, 4242)
    os.chown(runtime / locate.published_name(1), 4242, 4242)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # THEN everybody finds it
        assert locate.running_recorder() is not None
        # WHEN anybody may make directories beside it, THEN nobody believes it
        tmp_path.chmod(0o777)
        assert locate.running_recorder() is None


def test_a_killed_recorder_does_not_live_on_by_the_lock_of_the_next_one(runtime: Path, tmp_path: Path) -> None:
    # GIVEN a recorder that was killed, and its successor in the same directory, which holds the lock
    lock = publish(runtime, tmp_path / "rec", 2**22 + 1, place=1, started_us=5)
    publish(runtime, tmp_path / "rec", os.getpid(), place=2, started_us=9)
    lock.write_text(json.dumps({"pid": os.getpid(), "started_us": 9}))
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # THEN only the successor runs, and the place of the other is free
        assert [one.started_us for one in locate.running_recorders()] == [9]
        assert locate.free_place(runtime) == 1


def test_where_a_full_disk_kept_the_number_out_of_the_lock_the_process_decides(runtime: Path, tmp_path: Path) -> None:
    lock = publish(runtime, tmp_path / "rec", os.getpid(), place=1)
    published = runtime / locate.published_name(1)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert locate.running_recorder() is not None
        published.write_text(json.dumps({**json.loads(published.read_text()), "start_ticks": 1}))
        assert locate.running_recorder() is None, "another process has its number"

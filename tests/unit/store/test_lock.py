"""One recorder per directory, whatever becomes of the one before."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from zombiescope.store import locate
from zombiescope.store.node_directory import AlreadyRecordingError, Lock


def test_the_second_recorder_learns_who_the_first_one_is(tmp_path: Path) -> None:
    lock = Lock(tmp_path, 7)
    with pytest.raises(AlreadyRecordingError, match=str(os.getpid())) as refused:
        Lock(tmp_path, 8)
    assert refused.value.pid == os.getpid()
    assert json.loads((tmp_path / "lock").read_text()) == {"pid": os.getpid(), "started_us": 7}
    lock.release()
    Lock(tmp_path, 9).release()


def test_a_killed_holder_leaves_a_lock_that_holds_nothing(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from zombiescope.store.node_directory import Lock\n"
        "lock = Lock(Path(sys.argv[1]), 7); print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRecordingError, match=str(holder.pid)):
            Lock(tmp_path, 8)
        holder.kill()
    Lock(tmp_path, 9).release()


def test_a_reader_that_looks_for_a_moment_does_not_stop_a_recorder(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    descriptor = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)

    def leave() -> None:
        time.sleep(0.1)
        os.close(descriptor)

    reader = threading.Thread(target=leave)
    reader.start()
    Lock(tmp_path, 7).release()
    reader.join()


@pytest.mark.parametrize("kind", [fcntl.LOCK_SH, fcntl.LOCK_EX])
def test_a_reader_of_the_recording_cannot_keep_a_recorder_from_it(tmp_path: Path, kind: int) -> None:
    # GIVEN what everybody may read, locked by somebody else and never let go
    (tmp_path / "lock").touch()
    descriptor = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(descriptor, kind)
    lock = Lock(tmp_path, 7)
    # THEN the lock that counts can be opened by its owner and by root alone
    assert stat.S_IMODE((tmp_path / locate.HELD_FILE).stat().st_mode) == 0o600
    assert locate.is_locked(tmp_path) is True
    with pytest.raises(AlreadyRecordingError):
        Lock(tmp_path, 8)
    lock.release()
    assert locate.is_locked(tmp_path) is False
    os.close(descriptor)


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b'{"pid": "x"}', b"\xff\xfe"])
def test_a_lock_that_cannot_be_read_still_locks(tmp_path: Path, content: bytes) -> None:
    lock = Lock(tmp_path, 7)
    (tmp_path / "lock").write_bytes(content)
    with pytest.raises(AlreadyRecordingError) as refused:
        Lock(tmp_path, 8)
    assert refused.value.pid is None
    lock.release()

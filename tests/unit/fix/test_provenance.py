"""Root acts on a recording only if nobody else could have written it, and if it is of this node as it runs now."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path

import pytest
from tests.helpers.made import SECOND, Node, write_segment

from zombiescope.fix import log, provenance
from zombiescope.kernel import host
from zombiescope.store.reader import Recording, open_recording

STRANGER = 12345
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")


@pytest.fixture
def place() -> Path:
    """A directory of ours, with nothing above it that others may write."""
    return Path(tempfile.mkdtemp())


def recorded(place: Path, *, age_s: float = 5, boot: str | None = None, kernel: str | None = None) -> Path:
    here = host.read()
    end_us = time.time_ns() // 1000 - int(age_s * SECOND)
    made = Node()
    for second in range(3):
        made.core(end_us - (2 - second) * SECOND, 0)
    boot, kernel = boot or here.boot_id or "", kernel or here.release or ""
    write_segment(place / "rec", made.tables, start_us=end_us - 3 * SECOND, boot=boot, kernel=kernel)
    return place / "rec"


def opened(path: Path) -> Recording:
    return open_recording(path)


def test_a_recording_of_our_own_of_this_boot_is_acted_on(place: Path) -> None:
    with opened(recorded(place)) as recording:
        assert provenance.why_not(recording, recording.end_us) is None


@ROOT_ONLY
@pytest.mark.parametrize("which", ["directory", "node.json", "segment", "folder above"])
def test_a_recording_that_another_user_could_have_written_is_not(place: Path, which: str) -> None:
    path = recorded(place)
    chosen = {
        "directory": path, "node.json": next(path.rglob("node.json")),
        "segment": next(one for one in path.rglob("*") if one.is_file() and one.name != "node.json"),
        "folder above": place,
    }  # fmt: skip
    os.chown(chosen[which], STRANGER, STRANGER)
    with opened(path) as recording:
        why = provenance.why_not(recording)
    assert why is not None
    assert str(chosen[which]) in why
    assert str(STRANGER) in why


def test_one_that_everybody_may_write_is_not(place: Path) -> None:
    path = recorded(place)
    next(path.rglob("node.json")).chmod(0o666)
    with opened(path) as recording:
        assert provenance.why_not(recording) is not None


@pytest.mark.parametrize(("boot", "kernel"), [("5b9a1a3e-7d0c-4c7a-9d35-0d8a4e1f2b60", None), (None, "5.4.0-1024-aws")])
def test_one_of_another_boot_or_kernel_is_not(place: Path, boot: str | None, kernel: str | None) -> None:
    with opened(recorded(place, boot=boot, kernel=kernel)) as recording:
        assert provenance.why_not(recording) is not None


@pytest.mark.parametrize(("age_s", "incident_age_s"), [(7200, 7200), (5, 90_000), (-3600, 5)])
def test_one_that_is_old_or_of_the_future_is_not(place: Path, age_s: float, incident_age_s: float) -> None:
    with opened(recorded(place, age_s=age_s)) as recording:
        assert provenance.why_not(recording, int((time.time() - incident_age_s) * SECOND)) is not None


@ROOT_ONLY
def test_the_user_behind_sudo_may_have_recorded_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded(place)
    os.chown(next(path.rglob("node.json")), STRANGER, STRANGER)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    with opened(path) as recording:
        assert provenance.why_not(recording) is None


def test_a_reader_of_the_action_log_cannot_keep_fix_from_it(place: Path) -> None:
    with log.opened(place / "fix") as held:
        held.append("test:x", "planned")
    with (place / "fix" / log.FILE).open() as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        with log.opened(place / "fix") as held:
            assert held.append("test:x", "planned").event == "planned"
    assert (place / "fix" / log.LOCK).stat().st_mode & 0o077 == 0

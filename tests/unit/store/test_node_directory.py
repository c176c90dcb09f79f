"""Who may read a recording: the group, unless it was recorded for everybody."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path

import pytest
from tests.helpers.recordings import write_recording

from zombiescope.base.safe_files import UnsafePlaceError
from zombiescope.recorder import state
from zombiescope.recorder.rollup import Rollup
from zombiescope.store import freeze, incident_file, node_directory
from zombiescope.store.compact import compact
from zombiescope.store.locate import HELD_FILE
from zombiescope.store.node_directory import Lock
from zombiescope.store.segment_writer import SegmentWriter


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def everything_below(place: Path) -> tuple[set[int], set[int]]:
    """Modes of all directories and of all files but the lock, which has to be private."""
    paths = [place, *place.rglob("*")]
    files = {path for path in paths if path.is_file()}
    locks = {path for path in files if path.name == HELD_FILE}
    assert {mode(path) for path in locks} == {0o600}
    return {mode(path) for path in paths if path.is_dir()}, {mode(path) for path in files - locks}


def fill(node_dir: Path) -> None:
    """Everything that a recorder and its helpers write."""
    Lock(node_dir, 0).release()
    writer = SegmentWriter(node_dir / "log")
    writer.start(1_760_000_000_000_000, {"format": "x"})
    writer.frame(1_760_000_001_000_000, 0, [], closes=True)
    state.save(node_dir, {"boot": "b"})
    freeze.freeze(node_dir, 1, 2, "test")
    incident_file.write(node_dir, [], 0)
    assert Rollup(node_dir, "b")._file.append(1_760_000_000_000_000, 0, [])


@pytest.mark.parametrize(("read_by_all", "directories", "files"), [(False, 0o750, 0o640), (True, 0o755, 0o644)])
def test_everything_in_it_has_the_rights_that_were_asked_for(
    tmp_path: Path, read_by_all: bool, directories: int, files: int
) -> None:
    node_dir = tmp_path / "rec/node=a"
    node_directory.prepare(node_dir, read_by_all=read_by_all)
    fill(node_dir)
    assert everything_below(tmp_path / "rec") == ({directories}, {files})


def test_parquet_is_as_private_as_the_log(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "rec", cpus=2, seconds=20)
    node_directory.prepare(written.node_dir)
    (written.node_dir / "lock").unlink(missing_ok=True)
    assert compact(written.node_dir).parts
    made = list(written.node_dir.glob("date=*/*"))
    assert made
    assert {mode(path) for path in made} == {0o640}


def test_a_directory_that_was_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o711)
    node_directory.prepare(tmp_path / "data/node=a")
    assert mode(tmp_path / "data") == 0o711
    assert mode(tmp_path / "data/node=a") == 0o750


def test_another_setting_holds_for_what_was_recorded_before(tmp_path: Path) -> None:
    node_dir = tmp_path / "rec/node=a"
    for read_by_all, expected in ((False, (0o750, 0o640)), (True, (0o755, 0o644)), (False, (0o750, 0o640))):
        node_directory.prepare(node_dir, read_by_all=read_by_all)
        if not (node_dir / "log").exists():
            fill(node_dir)
        directories, files = everything_below(node_dir)
        assert (directories, files) == ({expected[0]}, {expected[1]})


def test_it_belongs_to_the_group_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getgroups() or [os.getegid()]
    group = own[-1]
    monkeypatch.setattr(grp, "getgrnam", lambda name: grp.struct_group((name, "", group, [])))
    node_directory.prepare(tmp_path / "rec/node=a")
    assert {(tmp_path / part).stat().st_gid for part in ("rec", "rec/node=a")} == {group}


def test_what_others_can_write_is_not_recorded_into(tmp_path: Path) -> None:
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec").chmod(0o777)
    with pytest.raises(UnsafePlaceError, match=r"chmod go-w"):
        node_directory.prepare(tmp_path / "rec/node=a")
    assert not (tmp_path / "rec/node=a").exists()


def test_a_team_collects_what_it_imports_in_one_place(tmp_path: Path) -> None:
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec").chmod(0o777)
    node_directory.prepare(tmp_path / "rec/node=a", shared=True)
    assert mode(tmp_path / "rec/node=a") == 0o750
    (tmp_path / "rec/node=b").symlink_to(tmp_path)
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        node_directory.prepare(tmp_path / "rec/node=b", shared=True)

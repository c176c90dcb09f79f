"""Files made where somebody else may write too: no link is followed, nothing of others is taken over."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from zombiescope.base import safe_files
from zombiescope.base.safe_files import UnsafePlaceError

STRANGER = 4242


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "place"
    made.mkdir(mode=0o750)
    made.chmod(0o750)
    return made


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """What must not be touched, as /etc/shadow."""
    made = tmp_path / "treasure"
    made.write_text("kept")
    made.chmod(0o600)
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits_at", ["state.json", "state.json.tmp"])
def test_a_link_that_waits_under_the_name_is_replaced_and_not_followed(
    place: Path, treasure: Path, waits_at: str
) -> None:
    (place / waits_at).symlink_to(treasure)
    safe_files.replace(place / "state.json", b"new", sync=True)
    assert treasure.read_text() == "kept"
    assert (place / "state.json").read_bytes() == b"new"
    assert not (place / "state.json").is_symlink()
    assert names(place) == ["state.json"]


def test_a_new_file_takes_over_nothing_that_is_there(place: Path, treasure: Path) -> None:
    (place / "link").symlink_to(treasure)
    (place / "dangling").symlink_to(place / "elsewhere")
    (place / "file").write_text("kept")
    for name in ("link", "dangling", "file"):
        with pytest.raises(FileExistsError):
            safe_files.create(place / name)
    assert (treasure.read_text(), (place / "file").read_text()) == ("kept", "kept")
    assert not (place / "elsewhere").exists()


def test_a_lock_is_never_a_link_and_never_a_second_name_of_another_file(place: Path, treasure: Path) -> None:
    (place / "lock").symlink_to(treasure)
    with pytest.raises(UnsafePlaceError, match=r"lock is a link; remove it: rm .*lock"):
        safe_files.open_lock(place / "lock")
    (place / "lock").unlink()
    (place / "lock").hardlink_to(treasure)
    with pytest.raises(UnsafePlaceError, match="not a regular file with a single name"):
        safe_files.open_lock(place / "lock")
    assert treasure.read_text() == "kept"


def test_a_lock_that_is_a_pipe_keeps_nobody_waiting(place: Path) -> None:
    os.mkfifo(place / "lock")
    with pytest.raises(UnsafePlaceError):
        safe_files.open_lock(place / "lock")
    with pytest.raises(FileNotFoundError):
        safe_files.open_to_read(place / "lock")


def test_a_lock_is_opened_again(place: Path) -> None:
    for _ in range(2):
        os.close(safe_files.open_lock(place / "lock"))


def test_a_folder_that_is_a_link_is_not_written_through(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "0000000000000001.seg").touch()
    (place / "log").symlink_to(elsewhere)
    for call in (safe_files.create, safe_files.create_again, safe_files.remove):
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            call(place / "log/0000000000000001.seg")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        safe_files.make_directory(place / "log")
    assert names(elsewhere) == ["0000000000000001.seg"]


def test_what_a_person_asked_for_replaces_a_link_under_its_name(place: Path, treasure: Path) -> None:
    (place / "report.html").symlink_to(treasure)
    with safe_files.output(place / "report.html") as file:
        file.write(b"report")
    assert treasure.read_text() == "kept"
    assert (place / "report.html").read_bytes() == b"report"


def test_what_could_not_be_written_leaves_nothing(place: Path) -> None:
    (place / "old").write_text("old")
    for write in (safe_files.replacing, safe_files.output):
        with pytest.raises(ValueError, match="half"), write(place / "old"):
            raise ValueError("half of it")
    assert names(place) == ["old"]
    assert (place / "old").read_text() == "old"


# --- rights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("directory", "file"), [(0o750, 0o640), (0o700, 0o640), (0o755, 0o644)])
def test_who_may_read_is_what_the_directory_says(place: Path, directory: int, file: int) -> None:
    place.chmod(directory)
    before = os.umask(0o077)
    try:
        safe_files.replace(place / "a", b"")
        os.close(safe_files.create(place / "b"))
        os.close(safe_files.open_lock(place / "pid", public=True))
        os.close(safe_files.open_lock(place / "lock"))
        safe_files.make_directory(place / "folder")
    finally:
        os.umask(before)
    assert {mode(place / name) for name in ("a", "b", "pid")} == {file}
    assert mode(place / "lock") == 0o600  # who can read a file can lock it
    assert mode(place / "folder") == (0o755 if directory == 0o755 else 0o750)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory somebody else's")
def test_what_root_writes_into_a_recording_of_another_user_is_that_users(place: Path) -> None:
    os.chown(place, STRANGER, STRANGER)
    safe_files.replace(place / "frozen.json", b"")
    found = (place / "frozen.json").stat()
    assert (found.st_uid, found.st_gid) == (STRANGER, STRANGER)


# --- directories that others write -----------------------------------------------------------------------------------


def test_a_directory_that_others_may_write_is_refused_with_what_to_do(place: Path) -> None:
    safe_files.refuse_shared(place / "rec" / "node=a")
    place.chmod(0o777)
    for below in (place, place / "rec" / "node=a"):
        with pytest.raises(UnsafePlaceError, match=r"place can be written by other users.*chmod go-w .*place"):
            safe_files.refuse_shared(below)


def test_in_a_sticky_directory_nobody_removes_what_is_ours(place: Path) -> None:
    place.chmod(0o1777)
    safe_files.refuse_shared(place / "rec")


def test_a_group_of_others_that_may_write_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.chmod(0o770)
    monkeypatch.setattr(safe_files, "_is_own_group", lambda _: False)
    with pytest.raises(UnsafePlaceError, match="other users"):
        safe_files.refuse_shared(place)
    monkeypatch.setattr(safe_files, "_is_own_group", lambda _: True)
    safe_files.refuse_shared(place)


def test_a_link_on_the_way_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(UnsafePlaceError, match="is a link"):
        safe_files.refuse_shared(tmp_path / "link" / "rec")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory somebody else's")
def test_a_directory_of_another_user_is_refused_and_its_owner_named(place: Path) -> None:
    os.chown(place, STRANGER, STRANGER)
    with pytest.raises(UnsafePlaceError, match=r"place belongs to user 4242.*run this as user 4242"):
        safe_files.refuse_shared(place / "rec")
    with pytest.raises(UnsafePlaceError):
        safe_files.make_public_directory(place / "runtime")


def test_a_public_directory_may_be_entered_by_everybody(place: Path) -> None:
    safe_files.make_public_directory(place / "runtime")
    assert mode(place / "runtime") == 0o755


def test_nobody_makes_files_in_another_way() -> None:
    """O_CREAT stands here, and in the store of symbols, which checks its directory itself; scenarios work in their own
    sandbox."""
    source = Path(safe_files.__file__).parents[1]
    users = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "O_CREAT" in path.read_text() and not path.is_relative_to(source / "lab")
    }
    assert users == {"base/safe_files.py", "symbols/store.py"}


@pytest.mark.parametrize("room", ["recorder", "store", "diagnosis", "kernel", "node", "symbols"])
def test_what_runs_beside_the_recorder_writes_no_file_by_its_path(room: str) -> None:
    """What is written below /proc, and pages of the documentation, are none of a recording's directory."""
    source = Path(safe_files.__file__).parents[1]
    wrong = re.compile(r"""\.write_(?:text|bytes)\(|\.open\(["'][wax]|\bopen\([^)]*["'][wax]b?["']""")
    for path in (source / room).rglob("*.py"):
        if path.parent.name == "shipping":  # in the agent's own folder, by a process without the recorder's powers
            continue
        for line in path.read_text().splitlines():
            allowed = "/proc/" in line or path.name == "pattern_pages.py" or "_archive.open(" in line
            assert allowed or not wrong.search(line), f"{path.relative_to(source)}: {line.strip()}"

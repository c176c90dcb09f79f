"""A root directory is never left, whatever it holds."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope.node.systemd.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    """A root with links that lead out, around and into it, and files that are none."""
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/inner").write_text("outside")
    inner = tmp_path / "root"
    (inner / "usr/lib").mkdir(parents=True)
    (inner / "usr/lib/file").write_text("inside")
    (inner / "lib").symlink_to("/usr/lib")
    (inner / "out").symlink_to(tmp_path / "secret")
    (inner / "up").symlink_to("../../../../secret")
    (inner / "out-directory").symlink_to(tmp_path / "outside")
    (inner / "loop").symlink_to("loop")
    (inner / "round").symlink_to("about")
    (inner / "about").symlink_to("round")
    (inner / "null").symlink_to("/dev/null")
    os.mkfifo(inner / "pipe")
    with Root(inner) as made:
        yield made


def test_absolute_links_mean_inside(root: Root) -> None:
    assert root.read("/lib/file") == b"inside"
    assert root.resolve("/lib/file") == "/usr/lib/file"
    assert root.names("/lib") == ["file"]
    assert root.link("/lib") == "/usr/lib"


@pytest.mark.parametrize("path", ["/out", "/up", "/out-directory/inner", "/../secret", "/usr/../../secret"])
def test_nothing_outside_is_read(root: Root, path: str) -> None:
    assert root.read(path) is None
    assert root.resolve(path) is None
    assert not root.is_file(path)
    assert root.unread == {}  # inside the root there is no such file, and that is no fault


def test_a_directory_outside_is_not_listed(root: Root) -> None:
    assert root.entries("/out-directory") == []


@pytest.mark.parametrize("path", ["/loop", "/round", "/loop/file"])
def test_a_circle_of_links_ends_and_is_told(root: Root, path: str) -> None:
    assert root.read(path) is None
    assert root.unread == {path: os.strerror(errno.ELOOP)}


def test_a_pipe_is_looked_at_and_not_opened(root: Root) -> None:
    assert root.read("/pipe") is None
    assert root.unread == {"/pipe": "not a regular file"}


def test_a_long_file_is_cut_and_told(root: Root, tmp_path: Path) -> None:
    (tmp_path / "root/long").write_bytes(b"x" * 100)
    assert root.read("/long", limit_bytes=10) == b"x" * 10
    assert "only its beginning" in root.unread["/long"]


def test_what_is_masked(root: Root, tmp_path: Path) -> None:
    (tmp_path / "root/empty").touch()
    assert root.is_nothing("/empty")
    assert not root.is_nothing("/usr/lib/file")
    assert not root.is_nothing("/null")  # this root has no /dev/null: whoever masks has to look at the link


def test_odd_names(root: Root, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9\n.service")
    (tmp_path / "root" / name).write_text("here")
    assert name in root.names("/")
    assert root.read(f"/{name}") == b"here"
    assert root.read("/a\0b") is None


def test_this_machine_is_known_and_another_root_is_not(root: Root) -> None:
    assert not root.is_this_machine
    with Root("/") as here:
        assert here.is_this_machine
    with Root(f"/proc/{os.getpid()}/root") as linked:
        assert linked.is_this_machine
        assert linked.resolve("/proc/../etc") == "/etc"


def test_a_file_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Root(tmp_path / "file")

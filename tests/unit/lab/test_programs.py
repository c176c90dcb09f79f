"""What is missing on a machine is said in one line, with what mends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zombiescope.lab import debian, product, programs
from zombiescope.lab.failure import CannotBuildError, LabError


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "_SBIN", ())
    with pytest.raises(CannotBuildError, match=r"qemu-system-x86_64 is not installed; apt-get install qemu"):
        programs.find("qemu-system-x86_64")


def test_nothing_is_unpacked_that_nobody_signed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """debootstrap without its keyring goes on with a warning."""
    program = tmp_path / "debootstrap"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(programs.BESIDE, "debootstrap", (tmp_path / "keyring.gpg", "debian-archive-keyring"))
    with pytest.raises(CannotBuildError, match=r"keyring\.gpg is missing; apt-get install debian-archive-keyring"):
        programs.call(["debootstrap", "bookworm"])
    (tmp_path / "keyring.gpg").touch()
    assert programs.find("debootstrap") == str(program)


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(CannotBuildError, match="sh failed: no space left"):
        programs.call(["sh", "-c", "echo no space left >&2; exit 1"])


def test_building_needs_root_and_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotBuildError, match="needs root, once; sudo ZOMBIESCOPE_CACHE="):
        programs.root("building the image")


def test_no_debian_mirror_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "call", lambda *_, **__: "http://mirror.test/ubuntu main noble\n")
    with pytest.raises(LabError, match="apt on this machine knows no Debian mirror"):
        debian.mirror()


def test_this_zombiescope_can_be_put_into_a_machine() -> None:
    assert product.source_tree() is not None

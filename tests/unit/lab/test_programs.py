"""What is missing on a machine is said in one line, with what mends it."""

from __future__ import annotations

import os

import pytest

from zombiescope.lab import debian, product, programs
from zombiescope.lab.failure import CannotBuildError, LabError


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "_SBIN", ())
    with pytest.raises(CannotBuildError, match=r"qemu-system-x86_64 is not installed; apt-get install qemu"):
        programs.find("qemu-system-x86_64")


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

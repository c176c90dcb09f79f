"""ELF files made by the real tool chain: gcc, as, ld and strip come with what builds the package."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Build = Callable[..., Path]

PROGRAM = """
#include <stdio.h>
__attribute__((noinline)) int inner_function(int x) { __asm__ volatile(""); return x + 1; }
static __attribute__((noinline, used)) int local_function(int x) { __asm__ volatile(""); return x * 3; }
int global_alias(int x) __attribute__((alias("inner_function")));
int __underscored_alias(int x) __attribute__((weak, alias("inner_function")));
int main(void) { return printf("%d %d", inner_function(1), local_function(2)) < 0; }
"""


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a C or assembler source to a file of the given name."""

    def compiled(source: str, *options: str, name: str = "program", language: str = "c") -> Path:
        out = tmp_path_factory.mktemp("built") / name
        command = ["gcc", "-x", language, "-", "-O1", "-o", str(out), *options]
        subprocess.run(command, input=source, text=True, check=True)
        return out

    return compiled


@pytest.fixture(scope="session")
def program(build: Build) -> Path:
    """A position-independent program with .symtab, .dynsym and a build id."""
    return build(PROGRAM, "-pie", "-fPIE", "-rdynamic", "-Wl,--build-id=sha1")


@pytest.fixture(scope="session")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 32-bit program; assembler and linker make one without a 32-bit C library."""
    folder = tmp_path_factory.mktemp("narrow")
    source = ".globl _start, second\n.type _start,@function\n_start: nop\n nop\n.size _start,2\n"
    source += ".type second,@function\nsecond: nop\n ret\n.size second,2\n"
    subprocess.run(["as", "--32", "-o", folder / "narrow.o"], input=source, text=True, check=True)
    link = ["ld", "-m", "elf_i386", "--build-id=sha1", "-o", "narrow", "narrow.o"]
    subprocess.run(link, check=True, cwd=folder)
    return folder / "narrow"


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes to the store of this machine, nor finds in it what an earlier one left."""
    monkeypatch.setenv("ZOMBIESCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))

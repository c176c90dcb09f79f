"""The native module with AddressSanitizer, UBSan and coverage: built once for a state of the sources, below build/.

Cython's C file is the one that the package is built of. clang is needed (scripts/need-fuzz); gcc has no coverage that
libFuzzer understands. It takes a minute of CPU, which is why `make test` uses it only where it lies there already.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import zombiescope

HERE = Path(__file__).parents[2]
BUILT = HERE / "build" / "fuzz" / "native"
SOURCE = HERE / "src" / "zombiescope" / "_native.c"
KINDS = "-fsanitize=address,undefined,fuzzer-no-link"
# Cython itself adds 0 to NULL where a call has no arguments; a pointer that goes astray is seen when it is used.
FLAGS = (
    "-fno-sanitize=pointer-overflow", "-fno-sanitize-recover=undefined",
    "-O1", "-g1", "-fPIC", "-fno-omit-frame-pointer", "-w",
)  # fmt: skip
# What was freed is kept from use for a megabyte, more than one execution frees, and of who allocated it two callers are
# kept: with 16 MB and thirty callers, most of the time was the allocator's, and a third of the inputs were tried.
_ALLOCATOR = "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=2:max_redzone=64"
OPTIONS = {
    "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:handle_abort=1:{_ALLOCATOR}",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # Small objects come from malloc as well: a read beyond the end of one is seen.
    "PYTHONMALLOC": "malloc",
}


def built() -> Path | None:
    """The module of today's sources, if it was built."""
    path = BUILT / f"_native-{_state()}.so"
    return path if path.exists() else None


def build() -> Path:
    """The module of today's sources. Raises CalledProcessError."""
    path = BUILT / f"_native-{_state()}.so"
    if path.exists():
        return path
    clang = shutil.which("clang")
    if clang is None:
        raise FileNotFoundError("clang is missing: scripts/need-fuzz installs it")
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.mkdir(parents=True)
    made = path.with_suffix(".o")
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run([clang, "-c", KINDS, *FLAGS, include, str(SOURCE), "-o", str(made)], check=True)
    subprocess.run([clang, "-shared", KINDS, str(made), "-o", str(path.with_suffix(".new"))], check=True)
    path.with_suffix(".new").rename(path)
    made.unlink()
    return path


def environment() -> dict[str, str]:
    """For a process that loads it: the runtime of the sanitizer has to be there before Python."""
    runtime = Path(sysconfig.get_path("platlib")) / "asan_with_fuzzer.so"
    return {**os.environ, **OPTIONS, "LD_PRELOAD": str(runtime)}


def load(path: Path) -> None:
    """In place of the module that users have, before anything imports that."""
    name = "zombiescope._native"
    assert name not in sys.modules
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    zombiescope._native = module


def _state() -> str:
    digest = hashlib.blake2b(SOURCE.read_bytes(), digest_size=8)
    digest.update(repr((KINDS, FLAGS, sys.version)).encode())
    return digest.hexdigest()

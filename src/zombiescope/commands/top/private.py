"""A recorder of `top`'s own, for a machine on which none runs: in a temporary directory, small, and gone
afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zombiescope.commands.failure import Failure
from zombiescope.commands.record import configuration, recorder_arguments
from zombiescope.recording import locate

_KEEP_S = 900.0
_MAX_BYTES = 64 * 10**6
_LONGEST_S = 12 * 3600.0
_START_S = 15.0
_STOP_S = 5.0


@contextmanager
def private_recorder() -> Iterator[Path]:
    """The directory that a private recorder writes; it has begun to write when this is entered."""
    home = Path(tempfile.mkdtemp(prefix="zombiescope-top-"))
    try:
        with _recorder(home) as process:
            _wait_for_data(home, process)
            yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _recorder(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    config = configuration(
        dir=str(home), keep_s=_KEEP_S, max_bytes=_MAX_BYTES, for_s=_LONGEST_S, segment_s=60.0, quiet=True
    )
    # Under a runtime directory of its own, nobody mistakes it for the machine's recorder.
    environment = os.environ | {"ZOMBIESCOPE_RUNTIME_DIR": str(home / "run")}
    with (home / "stderr").open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
            recorder_arguments(config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_data(home: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while not any((home / f"node={node}" / "node.json").exists() for node in locate.nodes_in(home)):
        if process.poll() is not None:
            said = (home / "stderr").read_text(errors="replace").strip().splitlines()
            raise Failure(f"the recorder could not start: {said[-1] if said else f'exit {process.returncode}'}")
        if time.monotonic() > deadline:
            raise Failure(f"the recorder wrote nothing in {_START_S:.0f} s", "see 'zombiescope record --for 10s'")
        time.sleep(0.05)

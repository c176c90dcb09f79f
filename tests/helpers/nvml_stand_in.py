"""A stand-in for the GPU driver's library, compiled on demand, and the script that says how its GPUs are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml_stand_in.c")


class StandIn:
    """The compiled library at `place`; `script` says anew what its GPUs do (nvml_stand_in.c lists the lines)."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("needs a C compiler for the stand-in of libnvidia-ml (Debian package gcc)")
        self.place = directory / "libstand-in-nvidia-ml.so"
        self._script = directory / f"{self.place.name}.script"
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(self.place), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, timeout=60)
        self.script()

    def script(self, *lines: str) -> None:
        aside = self._script.with_suffix(".new")
        aside.write_text("".join(f"{line}\n" for line in lines))
        aside.replace(self._script)  # a reader sees the whole of it, or the one before

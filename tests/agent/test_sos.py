"""Debian's real sos with our plug-in: what is in the support archive. `make test-agent` runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recordings import write_recording

pytestmark = [pytest.mark.agent, pytest.mark.timeout(300)]

PLUGIN = Path(__file__).parents[2] / "packaging/sos/zombiescope.py"
# sos looks for plug-ins in its own package only: a package path of ours before it, as an installed file would be.
RUN = """
import sys, sos.report.plugins
sos.report.plugins.__path__.append(sys.argv.pop(1))
from sos import SoS
SoS(["report", *sys.argv[1:]]).execute()
"""


def test_the_archive_has_status_diagnosis_and_a_redacted_recording(tmp_path: Path) -> None:
    needs = Needs()
    needs.root()
    if shutil.which("sos") is None:
        needs.lack("needs sos (Debian package sosreport)")
    for name in ("plugins", "bin", "out"):
        (tmp_path / name).mkdir()
    shutil.copy(PLUGIN, tmp_path / "plugins/zombiescope.py")
    recording = tmp_path / "rec"
    write_recording(recording, seconds=120)
    program = tmp_path / "bin/zombiescope"
    exported = f"export ZOMBIESCOPE_DIR={recording} ZOMBIESCOPE_RUNTIME_DIR={tmp_path}"
    program.write_text(f'#!/bin/sh\n{exported}\nexec {sys.executable} -P -m zombiescope.cli.main "$@"\n')
    program.chmod(0o755)
    # sos runs what is installed only: in a mount namespace of its own, our command is.
    install = f'mount -t overlay none -o lowerdir={tmp_path}/bin:/usr/bin /usr/bin && exec "$@"'
    report = ["--batch", "--only-plugins", "zombiescope", "--build", "-k", "zombiescope.last=2m"]
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        install,
        "sh",
        "/usr/bin/python3",
        "-c",
        RUN,
        str(tmp_path / "plugins"),
    ]
    done = subprocess.run(
        [*command, *report, "--tmp-dir", str(tmp_path / "out")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (place,) = [each for each in (tmp_path / "out").iterdir() if each.is_dir()]
    found = {each.name for each in (place / "sos_commands/zombiescope").iterdir()}
    assert {"zombiescope_status_--json", "zombiescope_diagnose_--json", "last.zscope"} <= found, done.stdout
    diagnosis = (place / "sos_commands/zombiescope/zombiescope_diagnose_--json").read_text()
    assert '"schema": "zombiescope.diagnose/1"' in diagnosis
    packed = place / "sos_commands/zombiescope/last.zscope"
    info = subprocess.run([program, "info", packed, "--json"], capture_output=True, text=True, timeout=60)
    assert info.returncode == 0, info.stderr

"""Children of the recorder give up what they do not need before they read a byte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from zombiescope.base import confinement

SAID = """
import json, os, socket, subprocess, sys
from zombiescope.base.confinement import CAP_SYSLOG, confine
if sys.argv[1] == "whole":
    confine()
elif sys.argv[1] == "page":
    confine(keep=[CAP_SYSLOG], programs=True)
def tried(call):
    try:
        call()
    except PermissionError:
        return "refused"
    return "done"
print(json.dumps({
    "status": dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line),
    "program": tried(lambda: subprocess.run(["true"], check=True)),
    "socket": tried(lambda: socket.socket().close()),
    "file": tried(lambda: open("written", "w").close()),
    "thread": tried(lambda: __import__("threading").Thread(target=int).start()),
}))
"""


def said(kind: str, place: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SAID, kind], cwd=place, capture_output=True, text=True, timeout=60, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_helper_and_the_doctor_keep_nothing(tmp_path: Path) -> None:
    found = said("whole", tmp_path)
    for kind in ("CapEff", "CapPrm", "CapAmb", "CapInh"):
        assert int(found["status"][kind], 16) == 0
    assert (found["status"]["NoNewPrivs"], found["status"]["Seccomp"]) == ("1", "2")
    assert (found["program"], found["socket"]) == ("refused", "refused")
    assert (found["file"], found["thread"]) == ("done", "done")


def test_the_page_keeps_the_kernel_log_and_may_start_a_browser(tmp_path: Path) -> None:
    before, found = said("nothing", tmp_path), said("page", tmp_path)
    allowed = int(before["status"]["CapPrm"], 16) & 1 << confinement.CAP_SYSLOG
    assert int(found["status"]["CapEff"], 16) == allowed
    assert (found["program"], found["socket"]) == ("done", "done")


def test_unconfined_everything_works(tmp_path: Path) -> None:
    found = said("nothing", tmp_path)
    assert (found["program"], found["socket"]) == ("done", "done")


CHILDREN = (
    "store/compact.py", "diagnosis/standby.py", "web/__main__.py", "recorder/python_reader.py",
    "recorder/stack_reader.py",
)  # fmt: skip


@pytest.mark.parametrize("module", CHILDREN)
def test_every_child_of_the_recorder_confines_itself_first(module: str) -> None:
    source = (Path(confinement.__file__).parents[1] / module).read_text()
    main = source.partition("def main(")[2]
    begins = [main.index(word) for word in ("compact(", "look(", "serve(", "run(") if word in main]
    assert main.index("confine(") < min(begins)

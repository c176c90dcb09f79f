"""The container image as it is written down; `make image-steps` runs its steps."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
IMAGE = ROOT / "deploy/image"
LINES = (IMAGE / "Containerfile").read_text().splitlines()
SCRIPTS = sorted(IMAGE.glob("*.sh"))


def stages() -> list[list[str]]:
    found: list[list[str]] = []
    for line in LINES:
        if line.startswith("FROM "):
            found.append([])
        if found:
            found[-1].append(line)
    return found


def test_what_builds_it_is_not_in_it() -> None:
    build, final = stages()
    assert any("gcc" in line for line in build)
    assert not any(re.search(r"gcc|python3-dev|python3-venv", line) for line in final)
    assert "COPY --from=build /opt/zombiescope /opt/zombiescope" in final


def test_it_runs_the_agent_as_a_user_without_rights() -> None:
    final = stages()[-1]
    (user,) = [line.split()[1] for line in final if line.startswith("USER ")]
    assert all(part.isdecimal() and int(part) > 0 for part in user.split(":"))
    assert 'CMD ["agent", "/var/lib/zombiescope"]' in final


def test_it_has_the_capabilities_of_the_unit_and_no_others() -> None:
    unit = (ROOT / "packaging/zombiescope.service").read_text()
    (ours,) = re.findall(r"setcap (\S+)\+ep", (IMAGE / "finish.sh").read_text())
    (theirs,) = re.findall(r"^AmbientCapabilities=(.*)$", unit, re.MULTILINE)
    assert ours.upper().split(",") == theirs.split()


def test_every_script_that_it_runs_is_there() -> None:
    for name in re.findall(r"deploy/image/(\w+\.sh)", "\n".join(LINES)):
        assert os.access(IMAGE / name, os.X_OK)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_shell(script: Path) -> None:
    assert subprocess.run(["sh", "-n", script], capture_output=True, timeout=10).stderr == b""

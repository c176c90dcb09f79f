"""The shipped unit, as systemd itself reads it: no directive is unknown, and little is exposed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from zombiescope.cli import manual

PACKAGING = Path(__file__).parents[2] / "packaging"
TAKEN_AWAY = (
    "SystemCallFilter", "RestrictNamespaces", "ProtectControlGroups", "ProtectKernelModules", "MemoryDenyWriteExecute",
    "IPAddressDeny", "RestrictAddressFamilies", "DevicePolicy", "NoNewPrivileges", "ProtectClock", "LimitCORE",
)  # fmt: skip
EXPOSED = 35
"""Of a hundred; 60 before anything was taken away. What is left are the capabilities and what it has to read."""


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    text = (PACKAGING / "zombiescope.service").read_text()
    made = tmp_path / "zombiescope.service"
    made.write_text(text.replace("/opt/zombiescope/bin/zombiescope", "/bin/true"))
    return made


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze (Debian package systemd)")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_it_takes_away_what_can_be_and_says_what_cannot(unit: Path) -> None:
    text = unit.read_text()
    assert {name for name in TAKEN_AWAY if f"\n{name}=" not in text} == set()
    assert "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are nearly root" in text
    assert "\nStateDirectoryMode=0750\n" in text


def test_it_runs_the_agent_and_systemd_hears_of_it(unit: Path) -> None:
    lines = (PACKAGING / "zombiescope.service").read_text().splitlines()
    assert "ExecStart=/opt/zombiescope/bin/zombiescope agent /var/lib/zombiescope" in lines
    assert {"Type=notify", "NotifyAccess=main", "WatchdogSec=60s", 'ExecReload=/bin/sh -c "kill -HUP $MAINPID"'} <= set(
        lines
    )
    assert "IPAddressAllow=localhost" in lines  # /metrics, and nothing from elsewhere


def test_it_outlives_the_incident_and_no_number_of_deaths_ends_it() -> None:
    lines = (PACKAGING / "zombiescope.service").read_text().splitlines()
    said = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    # A user's processes have at least 0; no size of theirs makes the recorder, bounded by its own limit, go first.
    assert int(said["OOMScoreAdjust"]) <= -500
    assert said["MemoryMax"] == "512M"
    assert said["StartLimitIntervalSec"] == "10min"
    assert int(said["StartLimitBurst"]) > 600 / int(said["RestartSec"].removesuffix("s"))


def test_its_documentation_is_what_the_package_brings() -> None:
    (line,) = [
        line
        for line in (PACKAGING / "zombiescope.service").read_text().splitlines()
        if line.startswith("Documentation=")
    ]
    pages = {word.removeprefix("man:") for word in line.partition("=")[2].split() if word.startswith("man:")}
    assert pages
    assert pages <= {f"{name.removesuffix('.1')}(1)" for name in manual.pages()}
    assert "zombiescope.cli.manual" in (PACKAGING.parent / "scripts/deb").read_text()


def test_systemd_understands_every_line(unit: Path) -> None:
    assert analyze("verify", "--man=no", unit).stderr == ""


def test_little_is_exposed(unit: Path) -> None:
    done = analyze("security", "--offline=true", f"--threshold={EXPOSED}", "--no-pager", unit)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot look at a file (before 250)")
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_group_that_reads_is_made(unit: Path) -> None:
    lines = (PACKAGING / "zombiescope.sysusers").read_text().splitlines()
    assert "g zombiescope -" in lines
    assert any(line.startswith("u zombiescope ") for line in lines)
    assert "\nGroup=zombiescope\n" in unit.read_text()

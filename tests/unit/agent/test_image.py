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


@pytest.mark.parametrize("builder", ["podman", "docker", "buildah"])
def test_it_is_built_with_whatever_builder_is_there_and_has_its_labels(builder: str, tmp_path: Path) -> None:
    """The builder is a stand-in that writes down what it was started with."""
    stand_in = tmp_path / builder
    stand_in.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/said\n')
    stand_in.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "BUILDER": builder,
        "PLATFORM": "linux/arm64",
        "BASE": "b@sha256:1",
    }
    command = ["sh", str(ROOT / "scripts/image"), "registry.example/zombiescope:7"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    said = (tmp_path / "said").read_text().split("\n")
    for option, value in (("--tag", "registry.example/zombiescope:7"), ("--platform", "linux/arm64"),
                          ("--build-arg", "BASE=b@sha256:1"), ("--file", "deploy/image/Containerfile")):  # fmt: skip
        assert said[said.index(option) + 1] == value
    labels = dict(
        one.removeprefix("org.opencontainers.image.").split("=", 1) for one in said if "opencontainers" in one
    )
    assert {"title", "version", "revision", "licenses", "created", "base.name"} <= set(labels)
    assert all(labels.values())


def test_nothing_of_the_clone_is_sent_to_the_builder_but_what_is_copied() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [
        word for line in LINES if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    for word in copied:
        place = word.replace("jso[n]", "json")
        assert any(place == one or place.startswith(f"{one}/") for one in sent), place

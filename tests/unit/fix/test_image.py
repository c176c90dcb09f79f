"""What `fix --root --emit` writes, applied to a copy of an image: `audit --root` no longer complains about a unit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.cli import Cli

from zombiescope.audit import examine
from zombiescope.base.severity import rank
from zombiescope.fix.image import PRESET, Form, emit, offs

ROOTS = Path(__file__).parents[2] / "fixtures" / "roots"
IMAGES = ["debian-12", "ubuntu-20.04-dlami"]


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(ROOTS / request.param, tmp_path / "an image", symlinks=True)


def complaints(image: Path) -> set[str]:
    bad = [one for one in examine(image).findings if rank(one.severity) >= rank("warning")]
    return {one.unit for one in bad if one.unit is not None}


def emitted(image: Path, form: Form, tmp_path: Path) -> Path:
    path = tmp_path / "emitted"
    path.write_text(emit(offs(image), form))
    return path


def test_the_script_ends_every_complaint_about_a_unit(image: Path, tmp_path: Path) -> None:
    assert complaints(image)
    subprocess.run(["sh", str(emitted(image, "shell", tmp_path))], check=True, timeout=30)
    assert complaints(image) == set()


def test_the_script_takes_another_root(image: Path, tmp_path: Path) -> None:
    script = emitted(image, "shell", tmp_path)
    other = shutil.copytree(image, tmp_path / "other", symlinks=True)
    subprocess.run(["sh", str(script), str(other)], check=True, timeout=30)
    assert complaints(other) == set()
    assert complaints(image)


def test_the_preset_ends_every_complaint_about_a_unit_that_is_enabled(
    image: Path, tmp_path: Path, needs: Needs
) -> None:
    needs.tool("systemctl")
    found = offs(image)
    assert any(off.enabled for off in found.units)
    place = Path(f"{image}{PRESET}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(emitted(image, "preset", tmp_path).read_text())
    units = [off.unit for off in found.units]
    subprocess.run(["systemctl", f"--root={image}", "preset", *units], check=True, timeout=30, capture_output=True)
    assert complaints(image) == {off.unit for off in found.units if not off.enabled}


def test_the_step_of_a_build_ends_every_complaint_about_a_unit(image: Path, tmp_path: Path, needs: Needs) -> None:
    needs.root()
    text = emitted(image, "dockerfile", tmp_path).read_text()
    body = text[text.index("RUN ") + 4 :]
    inside = f'mount --bind "$1/etc/systemd" /etc/systemd && {body}'
    subprocess.run(["unshare", "-m", "sh", "-c", inside, "sh", str(image)], check=True, timeout=30)
    assert complaints(image) == set()


def test_a_link_that_leads_out_of_the_image_stops_the_script(tmp_path: Path) -> None:
    image = shutil.copytree(ROOTS / "debian-12", tmp_path / "image", symlinks=True)
    outside = tmp_path / "outside"
    shutil.move(image / "etc/systemd", outside)
    (image / "etc/systemd").symlink_to(outside)
    before = sorted(path.name for path in (outside / "system").iterdir())
    done = subprocess.run(
        ["sh", str(emitted(ROOTS / "debian-12", "shell", tmp_path)), str(image)],
        check=False, timeout=30, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is a link" in done.stderr
    assert sorted(path.name for path in (outside / "system").iterdir()) == before


def test_a_protected_unit_is_named_and_left(tmp_path: Path) -> None:
    image = tmp_path / "image"
    units = image / "etc/systemd/system"
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True)
    (units / "ssh.service").write_text("[Service]\nExecStart=/bin/x\nRestart=always\nRestartSec=10\n")
    (wants / "ssh.service").symlink_to("../ssh.service")
    found = offs(image, "endless-restart:ssh.service")
    assert found.units == ()
    assert "--force-unit ssh.service" in found.left[0]
    forced = offs(image, "endless-restart:ssh.service", ["ssh.service"])
    assert [off.unit for off in forced.units] == ["ssh.service"]


def test_the_command_writes_it_and_audit_then_passes(tmp_path: Path) -> None:
    image = shutil.copytree(ROOTS / "debian-12", tmp_path / "image", symlinks=True)
    zombiescope = Cli(tmp_path)
    assert zombiescope("audit", "--root", str(image)).code == 3
    script = tmp_path / "off.sh"
    done = zombiescope("fix", "--root", str(image), "--emit", "shell", "-o", str(script))
    assert done.code == 0, done.err
    subprocess.run(["sh", str(script)], check=True, timeout=30)
    assert zombiescope("audit", "--root", str(image)).code == 0


LOOP = "[Unit]\nDescription={text}\n[Service]\nExecStart=/bin/x\nRestart=always\nRestartSec=10\n"
HARM = "$(touch pwned)`touch pwned`'; touch pwned; '\\\n touch pwned\nRUN touch pwned\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """An image whose maker chose every name, text and link in it, in a directory with a name to match."""
    made = tmp_path / "im$(touch pwned)age'\n touch pwned"
    units, outside = made / "etc/systemd/system", tmp_path / "outside"
    (units / "multi-user.target.wants").mkdir(parents=True)
    outside.mkdir()
    (made / "etc/machine-id").write_text("1" * 32)
    names = (
        "-rf.service", "a\\x24\\x28touch\\x20pwned\\x29.service", "$(touch pwned).service", "';touch pwned;'.service",
        "x\ntouch pwned\n.service", "*.service", "own@.service", "..service", "led-out.service",
    )  # fmt: skip
    for name in names:
        (units / name).write_text(LOOP.format(text=HARM.replace("\n", " ")))
        (units / "multi-user.target.wants" / name).symlink_to(f"../{name}")
    (outside / "secret.service").write_text(LOOP.format(text="of the machine that the image is built on"))
    (outside / "kept.service").symlink_to("secret.service")
    (units / "led-out.service").unlink()
    (units / "led-out.service").symlink_to(outside / "secret.service")
    (units / "graphical.target.wants").symlink_to(outside)
    (units / "a-folder.service").mkdir()
    return made


@pytest.mark.parametrize("form", ["preset", "shell", "dockerfile"])
def test_an_image_that_was_made_to_hurt_runs_nothing_and_leaves_the_machine_as_it_is(
    hostile: Path, form: Form, tmp_path: Path
) -> None:
    before = {path: path.read_text() for path in (tmp_path / "outside").iterdir()}
    written = emitted(hostile, form, tmp_path)
    lines = written.read_text().splitlines()
    assert any("..service" in line for line in lines if not line.startswith("#")), "there is something to switch off"
    assert not any("-rf.service" in line for line in lines if not line.startswith("#")), "a name that is an option"
    if form == "preset":
        assert all(line.startswith(("#", "disable ")) for line in lines)
        assert not any("pwned" in line for line in lines if line.startswith("disable ") and "\\x20" not in line)
    elif form == "dockerfile":
        assert all(line.startswith(("#", "RUN mkdir -p /etc/systemd/system", " && ")) for line in lines)
        steps = " ".join(line.rstrip("\\") for line in lines if not line.startswith("#")).removeprefix("RUN ")
        assert subprocess.run(["sh", "-n", "-c", steps], check=False).returncode == 0
        assert "touch pwned" not in steps
    else:
        subprocess.run(["sh", str(written), str(hostile)], check=True, timeout=30, cwd=tmp_path)
        subprocess.run(["sh", str(written)], check=True, timeout=30, cwd=tmp_path)  # the root that it names itself
    assert {path: path.read_text() for path in (tmp_path / "outside").iterdir()} == before
    assert not list(tmp_path.rglob("pwned"))

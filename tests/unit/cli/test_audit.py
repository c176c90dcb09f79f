"""`zombiescope audit` as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.helpers.cli import Cli

ROOTS = Path(__file__).parents[2] / "fixtures" / "roots"
UBUNTU = str(ROOTS / "ubuntu-20.04-dlami")
KEYS = {"id", "rule", "unit", "severity", "why", "evidence", "fix"}


def test_text_has_the_worst_first_and_every_fix(cli: Cli) -> None:
    done = cli("audit", "--root", UBUNTU)
    assert (done.code, done.err) == (3, "")
    assert done.out.startswith("critical  ecs.service  foreign-agent\n")
    assert f"  fix     systemctl --root={UBUNTU} disable ecs.service\n" in done.out
    assert "/lib/systemd/system/ecs.service:8  Restart=on-failure" in done.out
    assert "3 critical, 4 warnings, 6 notes" in done.out


def test_the_document(cli: Cli) -> None:
    done = cli("audit", "--root", UBUNTU, "--json")
    document = done.document
    assert done.code == 3
    assert document["schema"] == "zombiescope.audit/1"
    assert document["platform"] == "kubernetes"
    assert document["live"] is False
    assert all(set(finding) == KEYS for finding in document["findings"])
    assert document["findings"][0]["evidence"][0].keys() == {"file", "line", "text"}
    assert document["missing"][0].keys() == {"source", "why", "grant"}


@pytest.mark.parametrize(
    ("root", "fail_on", "code"),
    [
        ("ubuntu-20.04-dlami", "critical", 3),
        ("debian-12", "warning", 3),
        ("debian-12", "critical", 0),
        ("debian-12", "info", 3),
        ("alpine-container", "info", 0),
    ],
)
def test_what_makes_it_fail(cli: Cli, root: str, fail_on: str, code: int) -> None:
    assert cli("audit", "--root", str(ROOTS / root), "--fail-on", fail_on).code == code


def test_a_baseline_lets_only_what_is_new_fail(cli: Cli, tmp_path: Path) -> None:
    root, accepted = tmp_path / "image", tmp_path / "accepted.txt"
    shutil.copytree(ROOTS / "debian-12", root, symlinks=True)
    # GIVEN an image whose findings are accepted
    assert cli("audit", "--root", str(root), "--write-allow", str(accepted)).code == 3
    done = cli("audit", "--root", str(root), "--allow", str(accepted), "--fail-on", "info", "--json")
    assert (done.code, done.document["findings"]) == (0, [])
    assert {item["id"] for item in done.document["allowed"]} == {"endless-restart:app@slow.service", "late-watchdog"}
    assert all(item["reason"] for item in done.document["allowed"])
    # WHEN a new unit comes in, and an accepted finding goes
    system = root / "etc/systemd/system"
    (system / "new.service").write_text("[Service]\nExecStart=/usr/sbin/sshd\nRestart=always\nRestartSec=5\n")
    (system / "multi-user.target.wants/new.service").symlink_to("../new.service")
    (system / "multi-user.target.wants/app@slow.service").unlink()
    # THEN only the new one is told, and the line that can go
    done = cli("audit", "--root", str(root), "--allow", str(accepted), "--json")
    assert done.code == 3
    assert [finding["id"] for finding in done.document["findings"]] == ["endless-restart:new.service"]
    assert [item["id"] for item in done.document["stale"]] == ["endless-restart:app@slow.service"]
    assert "is no longer found" in done.err


def test_sarif_to_a_file_and_to_standard_output(cli: Cli, tmp_path: Path) -> None:
    done = cli("audit", "--root", UBUNTU, "--sarif", str(tmp_path / "audit.sarif"))
    assert done.code == 3
    assert done.out
    written = json.loads((tmp_path / "audit.sarif").read_text())
    done = cli("audit", "--root", UBUNTU, "--sarif", "-")
    assert json.loads(done.out) == written
    assert cli("audit", "--root", UBUNTU, "--sarif", "-", "--json").code == 2


def test_milder_findings_can_be_left_out(cli: Cli) -> None:
    done = cli("audit", "--root", UBUNTU, "--at-least", "critical", "--json")
    assert {finding["severity"] for finding in done.document["findings"]} == {"critical"}
    assert "10 lower-severity findings hidden" in cli("audit", "--root", UBUNTU, "--at-least", "critical").out


def test_own_entries(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'agents = [{ unit = "ssh.service", name = "sshd", belongs_to = "slurm", why = "A test.", source = "us" }]'
    )
    done = cli("audit", "--root", str(ROOTS / "debian-12"), "--catalogue", str(own), "--json")
    assert "foreign-agent:ssh.service" in {finding["id"] for finding in done.document["findings"]}


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--root", "/no/such/place"), 1, "/no/such/place does not exist; unpack or mount"),
        (("--root", "/etc/passwd"), 1, "/etc/passwd is not a directory; unpack or mount the image"),
        (("--root", UBUNTU, "--allow", "/no/such/file"), 1, "/no/such/file: No such file"),
        (("--root", UBUNTU, "--allow", "{bad}"), 1, "line 1: late-watchdog has no reason"),
        (("--root", UBUNTU, "--allow", "{binary}"), 1, "not UTF-8"),
        (("--root", UBUNTU, "--catalogue", "{bad}"), 1, "is not TOML"),
        (("--root", UBUNTU, "--write-allow", "{bad}"), 1, "exists already"),
        (("--root", UBUNTU, "--sarif", "/no/such/file"), 1, "/no/such/file could not be written"),
        (("--fail-on", "terrible"), 2, "unknown severity 'terrible'"),
    ],
)
def test_what_went_wrong_is_one_line(cli: Cli, tmp_path: Path, options: tuple[str, ...], code: int, said: str) -> None:
    (tmp_path / "bad").write_text("late-watchdog\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    filled = [option.format(bad=tmp_path / "bad", binary=tmp_path / "binary") for option in options]
    done = cli("audit", *filled)
    assert done.code == code
    assert said in done.err
    assert done.err.count("\n") == 1


def test_control_characters_of_an_image_do_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    system = tmp_path / "etc/systemd/system"
    (system / "multi-user.target.wants").mkdir(parents=True)
    (system / "x.service").write_text("[Service]\nExecStart=/opt/\x1b[2Jgone\n")
    (system / "multi-user.target.wants/x.service").symlink_to("../x.service")
    done = cli("audit", "--root", str(tmp_path))
    assert "\x1b" not in done.out
    assert "\\x1b[2J" in done.out


def test_this_machine(cli: Cli) -> None:
    done = cli("audit", "--json", DBUS_SYSTEM_BUS_ADDRESS="unix:path=/no/such/bus")
    assert done.code in (0, 3)
    assert done.document["root"] == "/"
    assert done.document["live"] is False
    assert "its files were read instead" in done.document["missing"][0]["why"]

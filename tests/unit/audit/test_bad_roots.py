"""Roots that nobody would build on purpose: nothing hangs, nothing leaves the root, and what was not read is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.unprivileged import unprivileged

from zombiescope.audit import Audit, examine
from zombiescope.audit.catalogue import CatalogueError

LOOP = "[Service]\nExecStart=/bin/x\nRestart=always\nRestartSec=10\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    (made / "etc/systemd/system/multi-user.target.wants").mkdir(parents=True)
    (made / "etc/machine-id").write_text("1" * 32)
    (made / "bin").mkdir()
    (made / "bin/x").touch(0o755)
    return made


def enable(root: Path, name: str, text: str | bytes = LOOP) -> None:
    path = root / "etc/systemd/system" / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (root / "etc/systemd/system/multi-user.target.wants" / name).symlink_to(f"../{name}")


def ids(audit: Audit) -> set[str]:
    return {finding.id for finding in audit.findings}


def missing(audit: Audit) -> dict[str, str]:
    return {item.source: item.why for item in audit.missing}


def test_odd_names(root: Path) -> None:
    for name in ("dev-\\x2dodd.service", "a:b_c.d.service", "x" * 247 + ".service"):
        enable(root, name)
    odd = ["sp ace.service", os.fsdecode(b"caf\xe9.service"), "new\nline.service", "naïve.service", "-rm -rf.service"]
    for name in odd:
        (root / "etc/systemd/system" / name).write_text(LOOP)
    audit = examine(root)
    assert ids(audit) == {
        "endless-restart:dev-\\x2dodd.service",
        "endless-restart:a:b_c.d.service",
        f"endless-restart:{'x' * 247}.service",
    }
    refused = [source for source, why in missing(audit).items() if "does not accept this as the name" in why]
    assert len(refused) == len(odd)
    json.dumps([item.document() for item in audit.missing]).encode()
    for finding in audit.findings:
        for line in finding.fix[1:]:
            checked = subprocess.run(["sh", "-n", "-c", line], capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr


def test_the_fix_of_an_odd_name_is_what_a_shell_would_do(root: Path) -> None:
    enable(root, "dev-\\x2dodd.service")
    (finding,) = examine(root).findings
    for line in finding.fix:
        subprocess.run(["sh", "-c", line], check=True)
    assert (root / "etc/systemd/system/dev-\\x2dodd.service.d/50-start-limit.conf").read_text() == (
        "[Unit]\nStartLimitIntervalSec=120\nStartLimitBurst=5\n"
    )
    assert examine(root).findings == ()


def test_links_that_run_in_a_circle(root: Path) -> None:
    system = root / "etc/systemd/system"
    (system / "a.service").symlink_to("b.service")
    (system / "b.service").symlink_to("a.service")
    (system / "self.service").symlink_to("self.service")
    (system / "loop.service.d").symlink_to("loop.service.d")
    (root / "usr").mkdir()
    (root / "usr/lib").symlink_to("/usr/lib")
    enable(root, "loop.service")
    for name in ("a.service", "self.service"):
        (system / "multi-user.target.wants" / name).symlink_to(f"../{name}")
    audit = examine(root)
    assert ids(audit) == {"endless-restart:loop.service"}
    assert any("Too many levels" in why for why in missing(audit).values())


def test_links_that_lead_out_are_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.service").write_text(LOOP)
    (tmp_path / "outside/10.conf").write_text("[Service]\nRestartSec=99\n")
    system = root / "etc/systemd/system"
    (system / "secret.service").symlink_to(tmp_path / "outside/secret.service")
    (system / "up.service").symlink_to("../../../../outside/secret.service")
    (system / "x.service.d").symlink_to(tmp_path / "outside")
    (root / "lib").symlink_to("/usr/lib")
    enable(root, "x.service")
    for name in ("secret.service", "up.service"):
        (system / "multi-user.target.wants" / name).symlink_to(f"../{name}")
    audit = examine(root)
    assert ids(audit) == {"endless-restart:x.service"}
    assert "99" not in json.dumps([finding.document() for finding in audit.findings])


def test_files_that_are_none(root: Path) -> None:
    enable(root, "binary.service", bytes(range(256)) * 64)
    enable(root, "huge.service", LOOP.encode() + b"# x\n" * (1 << 19))
    enable(
        root, "half.service", b"[Service]\nExecStart=/bin/x\nRestart=always\nRestartSec=10\n[Unit]\nAfter=\xff\xfe\n"
    )
    os.mkfifo(root / "etc/systemd/system/pipe.service")
    (root / "etc/systemd/system/multi-user.target.wants/pipe.service").symlink_to("../pipe.service")
    (root / "etc/systemd/system/folder.service").mkdir()
    audit = examine(root)
    assert ids(audit) == {"endless-restart:huge.service", "endless-restart:half.service"}
    told = missing(audit)
    assert "only its beginning" in told["/etc/systemd/system/huge.service"]
    assert "not a regular file" in told["/etc/systemd/system/pipe.service"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", ["Wants", "Upholds"])
def test_instances_that_pull_in_instances_of_themselves(root: Path, key: str) -> None:
    (root / "etc/systemd/system/a@.service").write_text(f"[Unit]\n{key}=a@%i0.service a@%i1.service\n{LOOP}")
    for name in ("a@x.service", "a@y.service"):
        (root / "etc/systemd/system/multi-user.target.wants" / name).symlink_to("../a@.service")
    audit = examine(root)
    assert {"endless-restart:a@x.service", "endless-restart:a@y.service"} <= ids(audit)
    assert "without an end" in missing(audit)["a@.service"]


@pytest.mark.timeout(60)
def test_a_first_boot_that_enables_without_an_end(root: Path) -> None:
    (root / "etc/machine-id").unlink()
    place = root / "etc/systemd/system"
    (place / "a@.service").write_text(f"{LOOP}[Install]\nAlso=a@%i0.service a@%i1.service\n")
    (place / "b.service").write_text(f"{LOOP}[Install]\nAlso=a@x.service\nWantedBy=multi-user.target\n")
    audit = examine(root)
    assert "endless-restart:b.service" in ids(audit)
    assert "without an end" in missing(audit)["a@.service"]


def test_a_chain_of_units_that_are_enabled_together(root: Path) -> None:
    (root / "etc/machine-id").unlink()
    for number in range(2000):
        also = f"{LOOP}[Install]\nWantedBy=multi-user.target\nAlso=u{number + 1}.service\n"
        (root / f"etc/systemd/system/u{number}.service").write_text(also)
    assert len(ids(examine(root))) == 2000


@pytest.mark.timeout(60)
def test_pam_files_that_include_themselves(root: Path) -> None:
    enable(root, "cron.service", "[Service]\nExecStart=/bin/x\n")
    (root / "etc/pam.d").mkdir()
    (root / "etc/cron.d").mkdir()
    (root / "etc/cron.d/often").write_text("*/5 * * * * root run\n")
    (root / "etc/pam.d/cron").write_text("@include cron\n@include other\n" * 1000)
    (root / "etc/pam.d/other").write_text("session include cron\n" * 1000)
    assert "session-churn:cron.service" not in ids(examine(root))
    (root / "etc/pam.d/other").write_text("session include cron\n" * 1000 + "session optional pam_systemd.so\n")
    assert "session-churn:cron.service" in ids(examine(root))


@pytest.mark.parametrize("text", ["a=" + "[" * 3000, "a=" + "{a=" * 1000, "a." * 30_000 + "b=1", "# x\n" * 50_000])
def test_a_catalogue_inside_the_root_that_was_made_to_hurt(root: Path, text: str) -> None:
    own = root / "etc/zombiescope/agents.d/own.toml"
    own.parent.mkdir(parents=True)
    own.write_text(text)
    with pytest.raises(CatalogueError, match=r"own\.toml"):
        examine(root)


def test_a_catalogue_inside_the_root_is_read_there(root: Path) -> None:
    enable(root, "vendor.service", "[Service]\nExecStart=/bin/x\n")
    own = root / "etc/zombiescope/agents.d/own.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        'agents = [{ unit = "vendor.service", name = "Vendor", belongs_to = "slurm", why = "Ours.", source = "us" }]'
    )
    assert ids(examine(root)) == {"foreign-agent:vendor.service"}


def test_files_that_may_not_be_read(root: Path, needs: Needs) -> None:
    needs.root()
    needs.binary("setpriv", "util-linux")
    enable(root, "open.service")
    enable(root, "closed.service")
    (root / "etc/systemd/system/closed.service").chmod(0)
    for directory in (root, *root.parents):
        if directory.owner() == "root" and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o055)
    source = Path(__file__).parents[3] / "src"
    command = [
        *unprivileged(),
        sys.executable,
        "-m",
        "zombiescope.cli.main",
        "audit",
        "--root",
        str(root),
        "--json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    assert {finding["id"] for finding in document["findings"]} == {"endless-restart:open.service"}
    (told,) = [item for item in document["missing"] if item["source"].endswith("closed.service")]
    assert told["why"] == "could not be read: Permission denied"
    assert told["grant"]

"""Our reading of unit files against systemd's own: the same tree, offline and in a booted container."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers import systemd_tree, unit_packages
from tests.helpers.systemd_tree import BootedSystemd

from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import UnitFiles, exit_status, names
from zombiescope.node.systemd.unit_files.starts import starts
from zombiescope.node.systemd.unit_files.timespan import parse_us

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]  # the first one may have to fetch a Debian

AT_LEAST = 200
PROPERTIES = (
    "Id", "LoadState", "Type", "Restart", "RestartUSec", "StartLimitIntervalUSec", "StartLimitBurst",
    "StartLimitAction", "RestartPreventExitStatus", "RestartForceExitStatus", "SuccessExitStatus", "FragmentPath",
    "DropInPaths",
)  # fmt: skip

MADE = {
    # every way in which a value can be given, overridden, taken back or passed over
    "etc/systemd/system.conf.d/10-first.conf": "[Manager]\nDefaultStartLimitBurst=7\nDefaultRestartSec=700ms\n",
    "usr/lib/systemd/system.conf.d/20-second.conf": (
        "[Manager]\nDefaultRestartSec=150ms\nDefaultStartLimitInterval=9s\n"
    ),
    "etc/systemd/system/zs-defaults.service": "[Service]\nExecStart=/bin/true\nRestart=always\n",
    "etc/systemd/system/zs-old-names.service": (
        "[Service]\nExecStart=/bin/true\nStartLimitInterval=1min 30s\nStartLimitBurst=3\nStartLimitAction=reboot\n"
    ),
    "etc/systemd/system/zs-old-in-unit.service": "[Unit]\nStartLimitInterval=42\n[Service]\nExecStart=/bin/true\n",
    "etc/systemd/system/zs-wrong-section.service": (
        "[Unit]\nRestart=always\n[Service]\nExecStart=/bin/true\nStartLimitIntervalSec=0\nRestartSec=5\n"
    ),
    "etc/systemd/system/zs-syntax.service": (
        "# a comment\n; another\n\n[Unit]\nDescription=goes \\\n# not this\n  on\n[Service]\n"
        "  ExecStart = /bin/true \\\n arg\nRestart=always\nRestart=sometimes\n"
        "RestartSec=1.5s\nRestartSec=soon\nRestartSec=\nno equals sign\n[X-Ours]\nRestart=no\n"
    ),
    "etc/systemd/system/zs-spans.service": (
        "[Unit]\nStartLimitIntervalSec=1h 2min3s 4ms\n[Service]\nExecStart=/bin/true\nRestartSec=infinity\n"
    ),
    "etc/systemd/system/zs-statuses.service": (
        "[Service]\nExecStart=/bin/true\nRestartPreventExitStatus=1 SIGTERM\nRestartPreventExitStatus=\n"
        "RestartPreventExitStatus=5 SIGKILL\nRestartPreventExitStatus=TEMPFAIL 255\nRestartForceExitStatus=133\n"
        "SuccessExitStatus=143 SIGHUP\n"
    ),
    "etc/systemd/system/zs-windows.service": (
        "[Service]\r\nExecStart=/bin/true\r\nRestart=on-failure\r\nRestartSec=3\r\n"
    ),
    "etc/systemd/system/zs-bom.service": "\ufeff[Service]\nExecStart=/bin/true\nRestart=on-abort\n",
    "etc/systemd/system/zs-oneshot.service": "[Service]\nType=oneshot\nExecStart=/bin/true\nRestart=always\n",
    "etc/systemd/system/zs-no-type.service": "[Service]\nExecStop=/bin/true\nRemainAfterExit=yes\n",
    "etc/systemd/system/zs-bus.service": "[Service]\nExecStart=/bin/true\nBusName=org.example.Zs\n",
    "etc/systemd/system/zs-empty.service": "",
    # drop-ins of every kind; the name of the file decides the order, the directory who of two wins
    "usr/lib/systemd/system/zs-a-b-c.service": "[Service]\nExecStart=/bin/true\nRestartSec=1\n",
    "usr/lib/systemd/system/zs-a-b-c.service.d/50-it.conf": "[Service]\nRestartSec=2\n",
    "etc/systemd/system/zs-a-b-c.service.d/40-it.conf": "[Service]\nRestartSec=3\nRestart=always\n",
    "etc/systemd/system/zs-a-.service.d/60-prefix.conf": "[Unit]\nStartLimitBurst=60\n",
    "etc/systemd/system/zs-a-b-.service.d/60-prefix.conf": "[Unit]\nStartLimitBurst=61\n",
    "usr/lib/systemd/system/zs-.service.d/10-all.conf": "[Unit]\nStartLimitAction=none\n",
    "etc/systemd/system/service.d/99-type.conf": "[Unit]\nStartLimitIntervalSec=33s\n",
    "etc/systemd/system/zs-a-b-c.service.d/ignored.txt": "[Service]\nRestartSec=4\n",
    "usr/lib/systemd/system/zs-masked-dropin.service": "[Service]\nExecStart=/bin/true\n",
    "usr/lib/systemd/system/zs-masked-dropin.service.d/10-it.conf": "[Service]\nRestart=always\n",
    "usr/lib/systemd/system/zs-temp-late@.service": "[Service]\nExecStart=/bin/true %i\nRestart=on-failure\n[Install]\n"
    "WantedBy=multi-user.target\nDefaultInstance=one\n",
    "etc/systemd/system/zs-temp-late@.service.d/10-it.conf": "[Service]\nRestartSec=11\n",
    "etc/systemd/system/zs-temp-late@two.service.d/10-it.conf": "[Service]\nRestartSec=12\n",
    "etc/systemd/system/zs-temp-@.service.d/20-it.conf": "[Unit]\nStartLimitBurst=13\n",
    "etc/systemd/system/zs-temp-late@three.service": "[Service]\nExecStart=/bin/true\nRestart=always\n",
    "usr/lib/systemd/system/zs-real.service": "[Service]\nExecStart=/bin/true\n[Install]\nAlias=zs-alias.service\n",
    "etc/systemd/system/zs-alias.service.d/10-of-alias.conf": "[Service]\nRestartSec=21\n",
    "etc/systemd/system/zs-real.service.d/20-of-real.conf": "[Service]\nRestart=always\n",
}  # fmt: skip

_WANTS = "etc/systemd/system/multi-user.target.wants"
LINKS = {
    "etc/systemd/system/zs-masked.service": "/dev/null",
    "etc/systemd/system/zs-masked-dropin.service.d/10-it.conf": "/dev/null",
    "etc/systemd/system/zs-alias.service": "/usr/lib/systemd/system/zs-real.service",
    "etc/systemd/system/zs-alias-2.service": "zs-alias.service",
    "etc/systemd/system/zs-other-type.socket": "/usr/lib/systemd/system/zs-real.service",
    "etc/systemd/system/zs-round.service": "zs-about.service",
    "etc/systemd/system/zs-about.service": "zs-round.service",
    "etc/systemd/system/zs-a-b-c.service": "/usr/lib/systemd/system/zs-a-b-c.service",
    f"{_WANTS}/zs-temp-late@one.service": "/usr/lib/systemd/system/zs-temp-late@.service",
    f"{_WANTS}/zs-defaults.service": "../zs-defaults.service",
    "usr/lib/systemd/system/multi-user.target.wants/zs-masked-dropin.service": "../zs-masked-dropin.service",
}
INSTANCES = ("zs-temp-late@one.service", "zs-temp-late@two.service", "zs-temp-late@three.service", "getty@tty1.service")


def put_in(root: Path) -> None:
    """The packages' units and ours, into a tree or a running machine."""
    packages = unit_packages.unit_files()
    for part in ("usr/lib/systemd", "etc/systemd"):
        source = f"{packages}/{part}/."
        subprocess.run(["cp", "-a", "--no-clobber", "--no-preserve=ownership", source, f"{root}/{part}/"], check=True)
    for name, text in MADE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (name in LINKS and path.is_symlink()):
            path.write_bytes(text.encode())
    for name, target in LINKS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What of a Debian system concerns its units, with a few hundred more of them."""
    lacking = systemd_tree.missing_tool()
    if lacking is not None:
        Needs().lack(f"needs {lacking}")
    base, made = systemd_tree.debian_tree(), tmp_path_factory.mktemp("tree")
    (made / "usr/lib").mkdir(parents=True)
    (made / "etc").mkdir()
    (made / "lib").symlink_to("usr/lib")
    for part in ("usr/lib/systemd", "etc/systemd"):
        shutil.copytree(base / part, made / part, symlinks=True)
    library = next(base.glob("usr/lib/*/systemd/libsystemd-shared-*.so"))
    (made / library.relative_to(base)).parent.mkdir(parents=True)
    (made / library.relative_to(base)).touch()  # its name tells the version
    (made / "dev").mkdir()
    os.mknod(made / "dev/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))  # where links that mask lead
    shutil.copy(base / "etc/machine-id", made / "etc/machine-id")
    put_in(made)
    return made


@pytest.fixture(scope="module")
def machine(tree: Path) -> Iterator[BootedSystemd]:
    with systemd_tree.boot() as booted:
        put_in(booted.root)
        booted.run("systemctl", "daemon-reexec")  # system.conf is read again only then
        booted.run("systemctl", "daemon-reload")
        yield booted


def listed(root: Path) -> dict[str, tuple[str, str]]:
    """Unit -> (state, preset) as systemctl finds them without a running systemd."""
    command = ["systemctl", f"--root={root}", "list-unit-files", "--no-legend", "--no-pager", "--full", "--plain"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {row[0]: (row[1], row[2] if len(row) > 2 else "-") for row in rows}


def differences(root: Path) -> tuple[int, list[str]]:
    theirs, ours = listed(root), unit_files.read(Root(root))
    wrong = [f"only systemd knows {name}" for name in sorted(set(theirs) - set(ours.names))]
    wrong += [f"only we know {name}" for name in sorted(set(ours.names) - set(theirs))]
    for name, (state, preset) in theirs.items():
        if ours.state(name) != state:
            wrong.append(f"{name} is {state}, we say {ours.state(name)}")
        if preset in ("enabled", "disabled") and ours.preset(name) != (preset == "enabled"):
            wrong.append(f"{name} has the preset {preset}, we say {ours.preset(name)}")
    return len(theirs), wrong


def test_the_same_units_are_enabled(tree: Path, tmp_path: Path) -> None:
    compared, wrong = differences(tree)
    assert compared >= AT_LEAST
    assert not wrong, "\n".join(wrong)
    # WHEN everything is set to its preset, some units are taken back and others masked
    changed = tmp_path / "tree"
    subprocess.run(["cp", "-a", tree, changed], check=True)
    (changed / "etc/systemd/system-preset").mkdir(exist_ok=True)
    (changed / "etc/systemd/system-preset/10-ours.preset").write_text(
        "# ours\ndisable nginx.service\ndisable *ssh*\nignore cron.service\nenable zs-temp-late@.service one two\n"
    )
    systemctl = ["systemctl", f"--root={changed}", "--quiet"]
    subprocess.run([*systemctl, "preset-all"], capture_output=True)  # complains of those that are masked
    subprocess.run([*systemctl, "mask", "chrony.service"], check=True)
    for link in (changed / "etc/systemd/system").glob("*.wants/haproxy.service"):
        link.unlink()  # `systemctl disable` gives up at our links that run in a circle
    # THEN we still agree about every one
    compared, wrong = differences(changed)
    assert compared >= AT_LEAST
    assert not wrong, "\n".join(wrong)


def test_a_first_boot_starts_what_preset_all_enables(tree: Path, tmp_path: Path) -> None:
    # GIVEN an image that was never booted, with presets that enable, disable and instantiate
    image = tmp_path / "image"
    subprocess.run(["cp", "-a", tree, image], check=True)
    (image / "etc/systemd/system-preset").mkdir(exist_ok=True)
    (image / "etc/systemd/system-preset/10-ours.preset").write_text(
        "enable zs-temp-late@.service two four\ndisable nginx.service\nenable *\n"
    )
    for name in ("etc/systemd/system/zs-round.service", "etc/systemd/system/zs-about.service"):
        (image / name).unlink()  # systemctl gives up at a circle
    (image / "etc/machine-id").write_text("uninitialized\n")
    ours = starts(unit_files.read(Root(image)))
    # WHEN systemctl does what pid 1 does at that boot
    subprocess.run(["systemctl", f"--root={image}", "preset-all", "--preset-mode=enable-only"], capture_output=True)
    (image / "etc/machine-id").write_text("1" * 32)
    theirs = starts(unit_files.read(Root(image)))
    # THEN that is what we had foreseen
    assert {"zs-temp-late@two.service", "zs-temp-late@four.service", "haproxy.service"} <= set(ours)
    assert sorted(set(ours) ^ set(theirs)) == []
    assert len(ours) >= AT_LEAST


def show(machine: BootedSystemd, units: list[str]) -> dict[str, dict[str, str]]:
    """Unit as asked for -> its properties as the running systemd has them."""
    text = machine.run("systemctl", "show", f"--property={','.join(PROPERTIES)}", "--", *units, timeout_s=120)
    blocks = text.rstrip("\n").split("\n\n")
    assert len(blocks) == len(units)
    parsed = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in blocks]
    return dict(zip(units, parsed, strict=True))


def ours_of(files: UnitFiles, name: str) -> dict[str, object]:
    unit, service = files.unit(name), files.service(name)
    assert unit is not None
    assert service is not None
    return {
        "Id": unit.name,
        "Type": service.type,
        "Restart": service.restart,
        "RestartUSec": service.restart_us,
        "StartLimitIntervalUSec": service.interval_us,
        "StartLimitBurst": service.burst,
        "StartLimitAction": service.start_limit_action,
        "RestartPreventExitStatus": service.prevent,
        "RestartForceExitStatus": service.force,
        "SuccessExitStatus": service.success,
        "FragmentPath": unit.file,
        "DropInPaths": list(unit.dropins),
    }


def theirs_of(shown: dict[str, str]) -> dict[str, object]:
    spans = ("RestartUSec", "StartLimitIntervalUSec")
    found: dict[str, object] = {key: shown[key] for key in PROPERTIES if key in shown}
    found |= {key: parse_us(shown[key]) for key in spans}
    found |= {key: exit_status.parse(shown[key].split()) for key in PROPERTIES if key.endswith("ExitStatus")}
    found |= {"StartLimitBurst": int(shown["StartLimitBurst"]), "DropInPaths": shown["DropInPaths"].split()}
    return found


def test_the_same_settings_count(machine: BootedSystemd) -> None:
    files = unit_files.read(Root(machine.root))
    services = [name for name in files.names if names.kind_of(name) == "service" and not names.is_template(name)]
    templates = [name for name in files.names if names.kind_of(name) == "service" and names.is_template(name)]
    asked = sorted({*services, *INSTANCES, *(names.with_instance(name, "x") for name in templates)})
    shown = show(machine, asked)
    compared = 0
    wrong: list[str] = []
    for name, block in shown.items():
        if block["LoadState"] in ("masked", "not-found"):
            if files.unit(name) is not None:
                wrong.append(f"{name} is {block['LoadState']}, we have read it")
            continue
        theirs, ours = theirs_of(block), ours_of(files, name)
        compared += 1
        if (block["LoadState"] == "bad-setting") != _is_bad(files, name):
            wrong.append(f"{name}: {block['LoadState']}")
        wrong += [f"{name}: {key}={theirs[key]}, we say {ours[key]}" for key in ours if ours[key] != theirs[key]]
    assert not wrong, "\n".join(wrong)
    assert compared >= AT_LEAST


def _is_bad(files: UnitFiles, name: str) -> bool:
    """What of a service systemd does not accept at all."""
    service, unit = files.service(name), files.unit(name)
    assert service is not None
    assert unit is not None
    nothing_to_do = not service.commands and not unit.listed("Service", "ExecStop")
    return service.is_refused or (nothing_to_do and not unit.assigned("Unit", "SuccessAction"))


def test_what_systemd_passes_over_and_where(tree: Path) -> None:
    """systemd-analyze verify names the file and the line of each assignment that does not count."""
    analyze = Needs().binary("systemd-analyze", "systemd")
    files = unit_files.read(Root(tree))
    units = [name for name in MADE if name.startswith("etc/systemd/system/zs-wrong-section")]
    command = [analyze, "verify", f"--root={tree}", "--recursive-errors=no", *(f"/{name}" for name in units)]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    service = files.service("zs-wrong-section.service")
    assert service is not None
    (ours,) = service.passed_over
    assert re.search(rf"{ours.file}:{ours.line}: Unknown key .*StartLimitIntervalSec.* Service", said.replace("[", " "))

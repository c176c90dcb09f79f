"""When systemd gives up, by the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import Service, UnitFiles
from zombiescope.node.systemd.unit_files.specifiers import expand
from zombiescope.node.systemd.unit_files.starts import starts

SYSTEM = "usr/lib/systemd/system"
Make = Callable[[str], Service]


def write(root: Path, **files: str) -> UnitFiles:
    """Keyword names are paths with __ for / and . kept."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return unit_files.read(Root(root))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(text: str) -> Service:
        found = write(tmp_path, **{f"{SYSTEM}/x.service": text}).service("x.service")
        assert found is not None
        return found

    return made


START = "ExecStart=/bin/x\n"


@pytest.mark.parametrize(
    ("settings", "endless"),
    [
        ("[Service]\nRestart=always\n", False),  # 100 ms x 5 is within 10 s
        ("[Service]\nRestart=always\nRestartSec=2\n", True),  # 2 s x 5 reaches it
        ("[Service]\nRestart=always\nRestartSec=1999ms\n", False),
        ("[Service]\nRestartSec=10\n", False),  # never restarted at all
        ("[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\n", True),
        ("[Unit]\nStartLimitBurst=0\n[Service]\nRestart=always\n", True),
        ("[Unit]\nStartLimitIntervalSec=60\n[Service]\nRestart=always\nRestartSec=10\n", False),
        ("[Unit]\nStartLimitIntervalSec=infinity\n[Service]\nRestart=always\nRestartSec=10\n", False),
        ("[Service]\nRestart=always\nRestartSec=infinity\n", False),
        ("[Service]\nRestart=always\nRestartSec=10\nStartLimitIntervalSec=1h\n", True),  # the wrong section
        ("[Service]\nRestart=always\nRestartSec=10\nStartLimitInterval=1h\n", False),  # the old name is taken there
        ("[Service]\nRestartForceExitStatus=1\nRestartSec=10\n", True),
        ("[Service]\nRestart=always\nRestartSec=1s\nRestartSteps=4\nRestartMaxDelaySec=1min\n", True),
        ("[Service]\nRestart=always\nRestartSec=1s\nRestartSteps=100\nRestartMaxDelaySec=2s\n", False),
    ],
)
def test_what_is_endless(make: Make, settings: str, endless: bool) -> None:
    assert make(settings.replace("[Service]\n", f"[Service]\n{START}")).is_endless() == endless


def test_a_status_that_ends_the_loop(make: Make) -> None:
    """The unit of the ECS agent: Debian's package lacks the line that Amazon Linux has."""
    debian = make(f"[Service]\n{START}Restart=on-failure\nRestartSec=10s\n")
    assert debian.is_endless(5)
    amazon = make(f"[Service]\n{START}Restart=on-failure\nRestartSec=10s\nRestartPreventExitStatus=5\n")
    assert not amazon.is_endless(5)
    assert amazon.is_endless(1)
    assert not amazon.is_endless(0)


def test_on_success_loops_after_a_success_only(make: Make) -> None:
    service = make(f"[Service]\n{START}Restart=on-success\nRestartSec=10s\nSuccessExitStatus=3\n")
    assert service.is_endless(0)
    assert service.is_endless(3)
    assert not service.is_endless(1)


def test_delays_grow_as_systemd_lets_them_grow(make: Make) -> None:
    service = make(f"[Service]\n{START}Restart=always\nRestartSec=1s\nRestartSteps=2\nRestartMaxDelaySec=4s\n")
    assert [service.delay_us(n) for n in range(4)] == [1_000_000, 2_000_000, 4_000_000, 4_000_000]


def test_steps_are_not_known_to_an_older_systemd(tmp_path: Path) -> None:
    text = f"[Service]\n{START}Restart=always\nRestartSec=1s\nRestartSteps=4\nRestartMaxDelaySec=1min\n"
    library = "usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so"
    service = write(tmp_path, **{f"{SYSTEM}/x.service": text, library: ""}).service("x.service")
    assert service is not None
    assert not service.is_endless()


def test_each_value_knows_its_file_and_line(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        **{
            f"{SYSTEM}/x.service": f"[Service]\n{START}Restart=always\nRestartSec=1\n",
            "etc/systemd/system/x.service.d/10.conf": "[Service]\n\nRestartSec=7\n",
        },
    )
    service = files.service("x.service")
    assert service is not None
    where = service.where["RestartSec"]
    assert (where.file, where.line, where.value) == ("/etc/systemd/system/x.service.d/10.conf", 3, "7")


def test_what_starts_and_because_of_what(tmp_path: Path) -> None:
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    for name in ("a.service", "t.timer", "i@one.service"):
        (wants / name).symlink_to(f"/usr/lib/systemd/system/{name}")
    plain = f"[Service]\n{START}"
    files = write(
        tmp_path,
        **{
            f"{SYSTEM}/a.service": f"[Unit]\nWants=b.service i@%p.service\n{plain}",
            f"{SYSTEM}/b.service": plain,
            f"{SYSTEM}/t.timer": "[Timer]\nUnit=other.service\n",
            f"{SYSTEM}/other.service": plain,
            f"{SYSTEM}/i@.service": plain,
            f"{SYSTEM}/idle.service": plain,
            "etc/machine-id": "1" * 32,
        },
    )
    found = starts(files)
    assert {name for name in found if name.endswith(".service")} == {
        "a.service", "b.service", "other.service", "i@one.service", "i@a.service",
    }  # fmt: skip
    assert (found["b.service"].by, found["b.service"].line) == ("a.service", 2)
    assert found["other.service"].triggered


def test_specifiers() -> None:
    assert expand("/bin/%p-%i", "foo@a-b.service") == "/bin/foo-a-b"
    assert expand("%I", "foo@a-b.service") == "a/b"
    assert expand("100%%", "foo.service") == "100%"
    assert expand("%H", "foo.service") is None
    assert expand("50%", "foo.service") is None


def test_a_first_boot_enables_what_the_presets_say(tmp_path: Path) -> None:
    text = f"[Service]\n{START}[Install]\nWantedBy=multi-user.target\n"
    preset = {"usr/lib/systemd/system-preset/90.preset": "enable on.service\ndisable *\n"}
    units = {f"{SYSTEM}/on.service": text, f"{SYSTEM}/off.service": text}
    for identity, first in (("uninitialized\n", True), ("", False), ("0" * 32, False)):
        files = write(tmp_path, **units, **preset, **{"etc/machine-id": identity})
        assert ("on.service" in starts(files)) == first
        assert "off.service" not in starts(files)
    (tmp_path / "etc/machine-id").unlink()
    assert "on.service" in starts(unit_files.read(Root(tmp_path)))


def test_a_debian_before_the_merge_of_usr(tmp_path: Path) -> None:
    """/lib and /usr/lib are two directories then, and Debian's systemd looks into /lib first."""
    files = write(
        tmp_path,
        **{
            "lib/systemd/system/x.service": f"[Service]\n{START}RestartSec=1\n",
            "usr/lib/systemd/system/x.service": f"[Service]\n{START}RestartSec=2\n",
            "usr/lib/systemd/system/y.service": f"[Service]\n{START}RestartSec=3\n",
            "usr/local/lib/systemd/system/y.service": f"[Service]\n{START}RestartSec=4\n",
        },
    )
    found = {name: files.service(name) for name in ("x.service", "y.service")}
    assert {name: service.restart_us for name, service in found.items() if service} == {
        "x.service": 1_000_000,
        "y.service": 4_000_000,
    }

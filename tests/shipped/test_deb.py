"""The Debian package on a machine that has never seen us: what it installs and starts, what its recorder sees, and what
is left without it. The list is the one of the pod and of the unit.

It is tried as `make deb` left it in dist/; where there is none, that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Needs
from tests.helpers.booted_node import RECORDING, booted, start_recorder
from tests.shipped import acceptance
from tests.shipped.acceptance import CONFIG, QUIET, Seen
from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).parents[2]
PACKAGE = "/root/zombiescope.deb"


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    packages = sorted((ROOT / "dist").glob("zombiescope_*.deb"))
    if not packages:
        Needs().lack("needs dist/zombiescope_*.deb (make deb)")
    with booted(Plan("v2", product=False)) as made:
        made.put(PACKAGE, packages[-1].read_bytes())
        yield made


@pytest.fixture(scope="module")
def seen(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Installed and started, and what it recorded of the load. Installing starts nothing."""
    told = node.shell(f"dpkg --install {PACKAGE} 2>&1", limit_s=600.0)
    assert "records nothing yet: systemctl enable --now zombiescope" in told
    assert node.run("systemctl", "is-active", "zombiescope").text.strip() == "inactive"
    node.shell("ip link set eth0 up")
    node.put(CONFIG, "" if node.accelerated else QUIET)
    start_recorder(node)
    acceptance.run_load(node)
    assert '"running": true' in node.shell("zombiescope status --json", limit_s=120.0)
    return Seen(node.get(RECORDING, tmp_path_factory.mktemp("deb")))


@pytest.mark.parametrize("question", acceptance.LIST, ids=lambda one: one.__name__)
def test_the_package_sees_what_root_on_the_host_sees(seen: Seen, question: Callable[[Seen], None]) -> None:
    question(seen)


def test_it_brings_its_user_the_one_setting_and_man_pages(node: LabNode, seen: Seen) -> None:
    assert "zombiescope" in node.shell("id zombiescope; getent group zombiescope")
    assert node.shell("cat /proc/sys/kernel/perf_event_paranoid").strip() == "2"
    assert node.shell("zombiescope --version", limit_s=120.0).startswith("zombiescope ")
    pages = node.shell("ls /usr/share/man/man1").split()
    assert {"zombiescope.1.gz", "zombiescope-diagnose.1.gz", "zombiescope-agent.1.gz"} <= set(pages)
    assert node.shell("systemctl show --property User --value zombiescope").strip() == "zombiescope"


def test_removed_and_purged(node: LabNode, seen: Seen) -> None:
    """The last of this machine: each step needs the one before."""
    node.shell("dpkg --remove zombiescope", limit_s=300.0)
    journal = node.shell("journalctl --unit zombiescope --output cat | tail -n 12")
    assert node.run("systemctl", "is-active", "zombiescope").text.strip() == "inactive", journal
    assert node.run("pgrep", "--full", "^/opt/zombiescope/").text == "", journal
    node.shell(f"test ! -e /usr/bin/zombiescope && test ! -e /opt/zombiescope/lib && test -d {RECORDING}/node=lab")

    node.shell("dpkg --purge zombiescope", limit_s=120.0)
    node.shell(f"test ! -e {RECORDING}")

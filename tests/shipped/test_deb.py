"""The Debian package on a machine that has never seen us: what it installs and starts, and what is left without it.

It is tried as `make deb` left it in dist/; where there is none, that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.booted_node import RECORDING, booted, start_recorder, until

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


def test_installed_used_removed_and_purged(node: LabNode) -> None:
    """One machine, one life of the package: each step needs the one before."""
    told = node.shell(f"dpkg --install {PACKAGE} 2>&1", limit_s=600.0)
    assert "records nothing yet: systemctl enable --now zombiescope" in told

    assert "zombiescope" in node.shell("id zombiescope; getent group zombiescope")
    assert node.shell("cat /proc/sys/kernel/perf_event_paranoid").strip() == "2"
    assert node.run("systemctl", "is-active", "zombiescope").text.strip() == "inactive"
    assert node.shell("zombiescope --version", limit_s=120.0).startswith("zombiescope ")
    pages = node.shell("ls /usr/share/man/man1").split()
    if _has_manual():
        assert {"zombiescope.1.gz", "zombiescope-diagnose.1.gz"} <= set(pages)

    start_recorder(node)
    assert node.shell("systemctl show --property User --value zombiescope").strip() == "zombiescope"
    assert '"running": true' in node.shell("zombiescope status --json", limit_s=120.0)
    until(node, f"test -e {RECORDING}/node=lab/node.json")

    node.shell("dpkg --remove zombiescope", limit_s=300.0)
    journal = node.shell("journalctl --unit zombiescope --output cat | tail -n 12")
    assert node.run("systemctl", "is-active", "zombiescope").text.strip() == "inactive", journal
    assert node.run("pgrep", "--full", "^/opt/zombiescope/").text == "", journal
    node.shell(f"test ! -e /usr/bin/zombiescope && test ! -e /opt/zombiescope/lib && test -d {RECORDING}/node=lab")

    node.shell("dpkg --purge zombiescope", limit_s=120.0)
    node.shell(f"test ! -e {RECORDING}")


def _has_manual() -> bool:
    from importlib.util import find_spec

    return find_spec("zombiescope.cli.manual") is not None

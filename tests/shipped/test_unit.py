"""The packaged unit under a real systemd, on nodes with cgroup v2: the same list as for the pod.

The wheel is installed into an environment of its own, as docs/install.md says: on Debian 12 with Python 3.11, and on
Ubuntu 24.04 with its own Python 3.12, kernel and systemd."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.helpers import ubuntu_node
from tests.helpers.booted_node import RECORDING, booted, start_recorder, until
from tests.shipped import acceptance
from tests.shipped.acceptance import CONFIG, QUIET, Seen
from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]

BLOCKED = """
webhook: {url: "http://10.244.0.7:8080/hook"}
shipping: {target: /mnt/archive}
"""


NODES: dict[str, Callable[[], AbstractContextManager[LabNode]]] = {
    "debian": lambda: booted(Plan("v2")),
    "ubuntu": ubuntu_node.booted,
}


@pytest.fixture(scope="module", params=sorted(NODES))
def node(request: pytest.FixtureRequest) -> Iterator[LabNode]:
    with NODES[request.param]() as made:
        made.shell("ip link set eth0 up")
        made.put(CONFIG, ("" if made.accelerated else QUIET) + BLOCKED)
        yield made


@pytest.fixture(scope="module")
def told(node: LabNode) -> dict[str, str]:
    """What --check-config says, and with the drop-in that it prints."""
    check = "zombiescope agent --check-config --json"
    first = node.run("/bin/sh", "-c", check, limit_s=150.0)
    document = json.loads(first.text)
    node.put("/etc/systemd/system/zombiescope.service.d/test.conf", document["drop_in"])
    node.shell("mkdir -p /mnt/archive; systemctl daemon-reload", limit_s=120.0)
    second = node.run("/bin/sh", "-c", check, limit_s=150.0)
    needs = ",".join(sorted(one["needs"] for one in document["unit"]))
    return {"first": str(first.exit), "needs": needs, "second": str(second.exit)}


@pytest.fixture(scope="module")
def seen(node: LabNode, told: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Seen:
    start_recorder(node)
    acceptance.run_load(node)
    node.shell("systemctl stop zombiescope.service", limit_s=120.0)
    return Seen(node.get(RECORDING, tmp_path_factory.mktemp("unit")))


@pytest.mark.parametrize("question", acceptance.LIST, ids=lambda one: one.__name__)
def test_the_unit_sees_what_root_on_the_host_sees(seen: Seen, question: Callable[[Seen], None]) -> None:
    question(seen)


def test_nothing_is_missing(seen: Seen) -> None:
    document = json.loads((Path(seen.recording) / "node=lab/node.json").read_text())
    assert document["missing"] == []


def test_what_the_unit_defeats_is_printed_as_a_drop_in_that_systemd_takes(
    node: LabNode, told: dict[str, str], seen: Seen
) -> None:
    assert told == {
        "first": "3", "second": "0", "needs": "IPAddressAllow=10.244.0.7,ReadWritePaths=/mnt/archive",
    }  # fmt: skip
    assert "10.244.0.7" in node.shell("systemctl show --property IPAddressAllow --value zombiescope")


def test_the_drop_in_for_ray_is_one_that_systemd_takes(node: LabNode, seen: Seen) -> None:
    place = "/etc/systemd/system/zombiescope.service.d"
    script = (
        f"cp /opt/zombiescope/share/zombiescope/drop-ins/*.conf {place}/; mkdir -p /tmp/ray/session_1; "
        "echo here > /tmp/ray/session_1/file; systemctl daemon-reload; systemctl start zombiescope"
    )
    node.shell(script, limit_s=180.0)
    pid = node.shell("systemctl show --property MainPID --value zombiescope").strip()
    assert node.shell(f"cat /proc/{pid}/root/tmp/ray/session_1/file").strip() == "here"
    until(node, "journalctl --unit zombiescope --output cat | grep -q 'recording lab into'")
    node.shell("systemctl stop zombiescope", limit_s=120.0)

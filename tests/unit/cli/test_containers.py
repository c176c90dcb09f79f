"""containers: what ran, what restarts for ever, and who asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.boxes import LOOP_IMAGE, TRAINER, at, box_node, ran, write_boxes
from tests.helpers.cli import Cli
from tests.helpers.made import write_segment

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_boxes(tmp_path_factory.mktemp("rec") / "boxes"))


def test_the_document_has_every_container_and_its_family(cli: Cli, boxes: str) -> None:
    document = cli("containers", boxes, "--json").document
    assert document["schema"] == "zombiescope.containers/1"
    assert (document["total"], document["alive"], document["left_out"]) == (27, 3, 0)
    assert [family["loop"] for family in document["families"]] == ["failing", "in place", "in place", None, None]
    loop = document["families"][0]
    assert (loop["image"], loop["starts"], loop["failed"], loop["last_code"]) == (LOOP_IMAGE, 18, 18, 1)
    assert loop["requester"] == {
        "comm": "agent-loop", "pid": 812, "unit": "ecs.service", "command": "docker run --rm ecs-agent:1.2",
        "container": "eeee" * 16, "how": "command line",
    }  # fmt: skip
    trainer = next(one for one in document["containers"] if one["id"] == TRAINER)
    assert (trainer["pod"], trainer["namespace"], trainer["alive"]) == ("train-0", "ml", True)
    assert trainer["started"] == at(0) / 1e6


def test_a_person_reads_names_and_not_ids(cli: Cli, boxes: str) -> None:
    printed = " ".join(cli("containers", boxes).out.split())
    assert f"18 containers of {LOOP_IMAGE} were started by agent-loop (ecs.service), one every 3.0 s" in printed
    assert "agent of pod kube-system/agent was started 6 times" in printed
    assert "last exit 137 (SIGKILL)" in printed
    assert "aaaaaaaaaaaa" not in printed


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--pod", "ml/train-0"), 1),
        (("--pod", "agent-*"), 6),
        (("--image", "ecs-agent"), 18),
        (("--container", "sidecar"), 1),
        (("--container", "aaaa"), 1),
        (("--from", "+58s"), 3),
        (("--top", "4"), 4),
    ],
)
def test_a_part_of_them(cli: Cli, boxes: str, options: tuple[str, ...], count: int) -> None:
    assert len(cli("containers", boxes, *options, "--json").document["containers"]) == count


def test_five_hundred_pods_are_their_families_on_one_screen(cli: Cli, tmp_path: Path) -> None:
    node = box_node()
    for number in range(500):
        pod = f"service-{number % 40}-7d4b9c6f5-{'bcdfghjklm'[number % 10]}2kqz"
        known: dict[str, Any] = {"name": "main", "image": f"registry.local/service-{number % 40}:1", "namespace": "web"}
        ran(node, f"{number + 4096:064x}", 0, pod=pod, pod_uid=f"uid{number}", **known)
    write_segment(tmp_path / "rec", node.tables)
    printed = cli("containers", str(tmp_path / "rec")).out.splitlines()
    assert len(printed) < 45
    assert max(map(len, printed)) <= 80
    row = next(line for line in printed if line.startswith("web/service-7/main"))
    assert row.split()[1:3] == ["service-7:1", "13"]


def test_a_hostile_name_does_nothing_to_the_terminal(cli: Cli, tmp_path: Path) -> None:
    node = box_node()
    ran(node, "e" * 64, 3, name="evil\x1b[2J" + "x" * 500, image="[red]i\nmg", requester="a\x07b")
    write_segment(tmp_path / "rec", node.tables)
    printed = cli("containers", str(tmp_path / "rec"), "--container", "evil*").out
    assert "\x1b" not in printed
    assert "evil" in printed
    assert "[red]i\\nmg" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_a_recording_without_containers_says_so(cli: Cli, tmp_path: Path) -> None:
    node = box_node()
    del node.tables["containers"]
    write_segment(tmp_path / "rec", node.tables)
    done = cli("containers", str(tmp_path / "rec"))
    assert (done.out, "no container was seen" in done.err) == ("", True)


def test_a_pack_for_strangers_shows_the_loop_without_its_names(cli: Cli, boxes: str, tmp_path: Path) -> None:
    file = tmp_path / "x.zscope"
    assert cli("pack", boxes, "--redact", "-o", str(file), "--json").document["redacted"] is True
    printed = " ".join(cli("containers", str(file)).out.split())
    assert "were started by task-" in printed
    assert "one every 3.0 s, 18 failed" in printed
    assert "ecs" not in printed

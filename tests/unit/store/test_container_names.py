"""Ids of containers and pods are looked up by name, and names are matched as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.store import container_names
from zombiescope.store.container_names import ContainerName, fits_container, fits_image, fits_pod
from zombiescope.store.reader import open_recording

LOOP, MAIN = "3f1c" * 16, "ab12" * 16
UID = "0c7f1e2a-0000-4444-8888-123456789abc"
KNOWN = ContainerName("agent", "registry.local:5000/ops/ecs-agent:1.2", "agent-x2kqz", "kube-system")


@pytest.fixture
def names(tmp_path: Path) -> container_names.ContainerNames:
    node = Node()
    node.container(START_US, LOOP)
    node.container(START_US + 1, LOOP, name="agent", image="ecs-agent:1.2")
    node.container(START_US + 2, MAIN, name="main", pod="train-0", namespace="ml", pod_uid=UID.replace("-", "_"))
    for number in range(100):
        node.container(START_US + 3 + number, f"{number:064x}", name=f"other{number}")
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        return container_names.read(recording, START_US + 60 * SECOND, START_US + 120 * SECOND, {LOOP, "c" * 64})


def test_an_id_is_known_by_its_last_row_from_before_the_window(names: container_names.ContainerNames) -> None:
    assert names.of(LOOP) == ContainerName("agent", "ecs-agent:1.2")
    assert names.of(None) == names.of("f" * 64) == ContainerName()


def test_a_part_that_knows_none_of_the_ids_has_no_names(tmp_path: Path) -> None:
    """A part may have containers and none of those that are asked for."""
    node = Node()
    node.container(START_US, MAIN, name="main")
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        found = container_names.read(recording, START_US, START_US + SECOND, {LOOP})
    assert found.of(LOOP) == found.of(MAIN) == ContainerName()


def test_a_sandbox_without_a_row_is_known_by_its_pod(names: container_names.ContainerNames) -> None:
    assert names.of("c" * 64, UID) == ContainerName(pod="train-0", namespace="ml")
    assert names.of("c" * 64, UID).label == "ml/train-0"


@pytest.mark.parametrize(
    ("unit", "container", "owner"),
    [
        ("kubelet.service", None, ("kubelet.service", "unit")),
        (f"docker-{LOOP}.scope", LOOP, ("agent", "container")),  # a scope is named by the id and by nothing else
        (None, LOOP, ("agent", "container")),
        (None, "f" * 64, ("f" * 64, "container")),
        ("ecs.service", LOOP, ("ecs.service", "unit")),
        (None, None, None),
    ],
)
def test_an_owner_is_named_as_people_know_it(
    names: container_names.ContainerNames, unit: str | None, container: str | None, owner: tuple[str, str] | None
) -> None:
    assert names.owner(unit, container) == owner


@pytest.mark.parametrize("written", ["3f1c3f1c", "agent", "ag*", "ecs-agent", "ecs-agent:1.2"])
def test_a_container_is_meant_by_id_name_or_image(written: str) -> None:
    assert fits_container(LOOP, KNOWN, written)
    assert not fits_container(MAIN, ContainerName("other", "ecs:1"), written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("agent-x2kqz", True),
        ("agent-*", True),
        ("kube-system/agent-x2kqz", True),
        ("ml/agent-x2kqz", False),
        (UID, True),
        (UID.replace("-", "_").upper(), True),
        ("agent", False),
    ],
)
def test_a_pod_is_meant_by_name_namespace_or_uid(written: str, meant: bool) -> None:
    assert fits_pod(UID, KNOWN, written) is meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ecs-agent", True),
        ("ops/ecs-agent", True),
        ("registry.local:5000/ops/ecs-agent", True),
        ("registry.local:5000/ops/ecs-agent:1.2", True),
        ("ecs-agent:1.3", False),
        ("agent", False),
        ("*agent*", True),
    ],
)
def test_an_image_is_meant_by_its_end(written: str, meant: bool) -> None:
    assert fits_image(KNOWN, written) is meant


def test_a_digest_is_no_part_of_the_name() -> None:
    assert fits_image(ContainerName(image="ghcr.io/a/b@sha256:00ff"), "b")


@pytest.mark.parametrize("pattern", ["Deployment/web", "Deployment/*", "*/web"])
def test_an_owner_is_written_in_the_place_of_a_pod(pattern: str) -> None:
    assert fits_pod("u", ContainerName("main", "i", "web-x", "ml", "Deployment/web"), pattern)
    assert not fits_pod("u", ContainerName("main", "i", "api-x", "ml", "Deployment/api"), "Deployment/web")

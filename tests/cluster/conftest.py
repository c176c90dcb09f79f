"""One control plane for all tests of a run; each test has nodes and namespaces of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.conftest import Needs
from tests.helpers.api_server import ControlPlane, control_plane, node

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    needs = Needs()
    needs.binary("etcd", "etcd-server")
    needs.binary("openssl", "openssl")
    with control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture
def own_node(plane: ControlPlane) -> Iterator[str]:
    """A node that no other test knows."""
    name = f"node{next(_numbers)}"
    plane.create("/api/v1/nodes", node(name))
    yield name
    plane.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def namespace(plane: ControlPlane) -> str:
    name = f"space{next(_numbers)}"
    plane.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name

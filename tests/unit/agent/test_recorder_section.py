"""What the agent tells its recorder about names."""

import os

import pytest

from zombiescope.agent.recorder_section import RecorderSection


def test_the_node_is_named_as_kubernetes_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "ip-10-0-0-8")
    section = RecorderSection()
    assert section.node_name == "ip-10-0-0-8"
    assert section.arguments()["node"] == "ip-10-0-0-8"
    assert section.arguments()["keep_earlier_names"] is False
    assert RecorderSection(node="mine").node_name == "mine"


@pytest.mark.parametrize("name", ["", "../etc", "a/b"])
def test_without_a_usable_name_it_is_the_hosts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NODE_NAME", name)
    section = RecorderSection()
    assert section.node_name == os.uname().nodename
    assert section.arguments()["node"] is None
    assert section.arguments()["keep_earlier_names"] is True

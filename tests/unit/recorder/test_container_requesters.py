"""Who asked for a container: the client that lives and fits, and nobody where that is not certain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.helpers.tracked_containers import AGENT, LOOP, OTHER, SECOND, Node, cid, run

from zombiescope.node.containers.description import Description
from zombiescope.node.containers.peers import Peer
from zombiescope.node.containers.requester import Requester
from zombiescope.recorder.clients import Connected
from zombiescope.recorder.container_lookup import (
    ContainerAnswer,
    ContainerQuestion,
    RunningClientsAnswer,
    RunningClientsQuestion,
)
from zombiescope.recorder.tracepoints import TraceRecord


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_client_that_lives_and_fits_is_the_one(node: Node) -> None:
    clients = [node.client(30, run(), LOOP), node.client(31, run("other:1"), OTHER)]
    node.made(1)
    node.second(*clients, *node.answer())
    row = node.last(1)
    assert (row["requester"], row["requester_pid"], row["requester_unit"]) == ("agent-loop", 10, "ecs.service")
    # it asked for one container: the next of the same image is not its
    node.made(2)
    node.second(*node.answer())
    assert node.last(2)["requester"] is None


def test_a_name_beats_an_image(node: Node) -> None:
    clients = [node.client(30, run(name="agent"), LOOP), node.client(31, run(), OTHER)]
    node.made(1)
    node.second(*clients, *node.answer())
    assert node.last(1)["requester"] == "agent-loop"


def test_of_several_that_fit_equally_nobody_is_named_unless_they_are_one(node: Node) -> None:
    clients = [node.client(30, run(), LOOP), node.client(31, run(), OTHER)]
    node.made(1)
    node.second(*clients, *node.answer())
    assert node.last(1)["requester"] is None
    same = [node.client(40, run("x"), LOOP), node.client(41, run("x"), LOOP)]
    node.made(2)
    node.second(*same, *node.answer(Description(name="n", image="x")))
    assert node.last(2)["requester"] == "agent-loop"


def test_one_that_had_ended_before_did_not_ask(node: Node) -> None:
    client = node.client(30, run(), LOOP)
    node.second(client)
    node.ends(30)
    node.second()
    node.second()
    node.made(1)
    node.second(*node.answer())
    assert node.last(1)["requester"] is None


def test_one_that_came_later_did_not_ask(node: Node) -> None:
    node.made(1)
    node.now += SECOND
    client = node.client(30, run(), LOOP)
    node.second(client, *node.answer())
    assert node.last(1)["requester"] is None


def test_a_restart_policy_has_no_client(node: Node) -> None:
    """Somebody else runs the same image just then."""
    client = node.client(30, run(), OTHER)
    node.made(1)
    node.second(client, *node.answer(Description(name="a", image=AGENT.image, restarts=4, restart_policy="always")))
    assert (node.last(1)["requester"], node.last(1)["restart_policy"]) == (None, "always")


def test_a_pods_container_has_no_client(node: Node) -> None:
    client = node.client(30, run(), OTHER)
    node.made(1)
    node.second(client, *node.answer(Description(name="a", image=AGENT.image, pod_uid="u")))
    assert node.last(1)["requester"] is None


def test_a_client_of_before_is_who_asked_for_a_container_of_before_if_it_names_it(node: Node) -> None:
    for number in (1, 2):
        node.tracker.exists(f"/docker/{cid(number)}")
    node.second()
    assert RunningClientsQuestion() in node.asked
    web, other = node.client(30, run("web:1", "web"), LOOP).asking, node.client(31, run("x:1"), OTHER).asking
    assert web is not None
    assert other is not None
    told = RunningClientsAnswer(RunningClientsQuestion(), [(30, web), (31, other)])
    first, second = node.answer()
    assert isinstance(first, ContainerAnswer)
    assert isinstance(second, ContainerAnswer)
    node.second(told, replace(first, description=Description(name="web")), replace(second, description=Description()))
    assert (node.last(1)["requester"], node.last(2)["requester"]) == ("agent-loop", None)
    # AND it is asked once
    node.second()
    assert RunningClientsQuestion() not in node.asked


def test_a_storm_of_clients_is_bounded(node: Node) -> None:
    executed = node.tracker.tracepoints()[0].handle
    for pid in range(1000):
        executed(TraceRecord(1, 0, 0, pid, pid, b""), {}, node.now)
    assert len(node.asked) == 40
    node.second()
    assert "960 clients were not read" in node.rows["gaps"][0]["why"]


def test_only_clients_of_runtimes_are_traced(node: Node) -> None:
    where = node.tracker.tracepoints()[0].where
    assert where is not None
    assert 'filename ~ "*/docker"' in where


# --- clients that ask over the runtime's socket -----------------------------------------------------------------------

INIT = Requester("amazon-ecs-init", 40, "ecs.service", "/usr/libexec/amazon-ecs-init start", how="socket")
MONITOR = Requester("telegraf", 41, "telegraf.service", "telegraf", how="socket")
POLICY = replace(AGENT, restarts=4, restart_policy="always")


def looked(node: Node, *peers: Peer, known: Description = AGENT, blind: str | None = None) -> None:
    """The next second, in which the lookup thread found those connected to the runtime."""
    answers = [replace(one, peers=peers, blind=blind) for one in node.answer(known) if isinstance(one, ContainerAnswer)]
    node.second(*answers)


def rounds(node: Node, *looks: tuple[Peer, ...]) -> list[str | None]:
    """Each creates a container while some are connected; whom the rows name."""
    for number, peers in enumerate(looks, 1):
        node.made(number)
        looked(node, *peers)
    return [node.last(number)["requester_unit"] for number in range(1, len(looks) + 1)]


def test_a_connection_that_came_with_the_container_names_its_client_at_once(node: Node) -> None:
    assert rounds(node, (Peer(INIT, 5, True), Peer(MONITOR, 6, False))) == ["ecs.service"]
    row = node.last(1)
    assert (row["requester"], row["requester_pid"], row["requester_how"]) == ("amazon-ecs-init", 40, "socket")


def test_a_connection_that_lasts_names_its_client_only_after_three_containers(node: Node) -> None:
    alone = (Peer(INIT, 5, False),)
    assert rounds(node, alone, alone, alone) == [None, None, "ecs.service"]


def test_while_two_clients_are_connected_each_time_nobody_is_named(node: Node) -> None:
    both = (Peer(INIT, 5, False), Peer(MONITOR, 6, False))
    assert rounds(node, *[both] * 5) == [None] * 5


def test_one_that_was_not_there_each_time_did_not_ask(node: Node) -> None:
    both = (Peer(INIT, 5, False), Peer(MONITOR, 6, False))
    assert rounds(node, both, both, (Peer(INIT, 5, False),), both)[-1] == "ecs.service"


def test_two_new_connections_at_once_name_nobody(node: Node) -> None:
    both = (Peer(INIT, 5, True), Peer(MONITOR, 6, True))
    assert rounds(node, both, both, both, both) == [None] * 4


def test_a_command_line_beats_a_connection(node: Node) -> None:
    client = node.client(30, run(), LOOP)
    node.made(1)
    node.second(client, *[replace(one, peers=(Peer(MONITOR, 6, True),)) for one in node.answer()])  # type: ignore[arg-type]
    assert (node.last(1)["requester"], node.last(1)["requester_how"]) == ("agent-loop", "command line")


def test_a_container_that_its_policy_restarts_is_asked_for_by_no_client(node: Node) -> None:
    for _ in range(4):
        node.made(1)
        looked(node, Peer(MONITOR, 6, True), known=POLICY)
        node.removed(1)
    assert node.last(1)["requester_unit"] in (None, "telegraf.service")
    node.made(2)
    looked(node, known=POLICY)
    assert node.last(2)["requester_unit"] is None


def test_only_a_container_that_was_just_made_is_looked_at(node: Node) -> None:
    node.tracker.exists(f"/docker/{cid(1)}")
    node.made(2)
    node.second()
    asked = {one.container: one.made_us for one in node.asked if isinstance(one, ContainerQuestion)}
    assert asked[cid(1)] == 0
    assert asked[cid(2)] > 0


def test_the_images_that_are_compared_have_a_bound() -> None:
    connected = Connected()
    for number in range(1000):
        connected.requester(replace(AGENT, image=f"image:{number}"), (Peer(INIT, number, False),))
    assert len(connected._images) == 256
    for number in range(1000):
        who = replace(INIT, unit=f"one-{number}.service")
        connected.requester(AGENT, (Peer(who, number, False),))
    assert max(len(looks.seen) for looks in connected._images.values()) == 64

"""Containers while they come and go: rows, budget, bounds, and those that come back."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.tracked_containers import AGENT, LOOP, SECOND, START, Node, cid, run

from zombiescope.node.containers.description import Description
from zombiescope.recorder import containers as module
from zombiescope.recorder.container_lookup import (
    Answer,
    ContainerQuestion,
)
from zombiescope.recorder.containers import BURST


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_container_is_one_row_when_it_is_known(node: Node) -> None:
    node.made(1)
    assert node.asked == [ContainerQuestion(cid(1), "docker", None, 99, 1, made_us=START)]
    node.second(*node.answer())
    row = node.last(1)
    assert (row["name"], row["image"], row["runs"], row["started"]) == ("agent", AGENT.image, 1, START)
    assert (row["exited"], row["requester"], row["cgroup"]) == (None, None, f"/docker/{cid(1)}")
    # nothing happens: nothing is written
    node.second()
    assert len(node.rows["containers"]) == 1


def test_its_end_has_the_code_that_the_runtime_wrote_after_it(node: Node) -> None:
    node.made(1)
    node.second(*node.answer())
    node.removed(1)
    node.second()
    assert node.last(1)["exited"] == START + SECOND
    asked = [one for one in node.asked if isinstance(one, ContainerQuestion)]
    assert [one.is_over for one in asked] == [True]
    node.second(*node.answer(Description(code=137, restarts=0)))
    assert (node.last(1)["code"], node.last(1)["name"]) == (137, "agent")


def test_the_same_id_again_is_a_run_more(node: Node) -> None:
    for _ in range(3):
        node.made(1)
        node.second(*node.answer())
        node.removed(1)
    node.made(1)
    node.second(*node.answer())
    assert (node.last(1)["runs"], node.last(1)["exited"]) == (4, None)


def test_cgroups_that_are_no_containers_cost_nothing(node: Node) -> None:
    for path in ("/docker", "/lab/z1", f"/docker/{cid(1)}/init.scope", f"/kubepods/pod{cid(1)[:32]}"):
        node.tracker.made(path, 5, node.now)
        node.tracker.removed(path, node.now)
    node.second()
    assert (node.asked, node.rows["containers"]) == ([], [])


def test_over_the_budget_there_is_the_id_and_an_honest_count(node: Node) -> None:
    for number in range(BURST + 50):
        node.made(number)
    assert len(node.asked) == BURST
    for number in range(BURST + 50):
        node.removed(number)
    node.second(*node.answer())
    assert (node.last(BURST + 49)["name"], node.last(BURST + 49)["cgroup"]) == (None, f"/docker/{cid(BURST + 49)}")
    assert node.last(0)["name"] == "agent"
    assert node.rows["gaps"][0]["why"].startswith("50 containers were not identified in time")


def test_those_that_cannot_even_wait_are_counted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LATER", 3)
    for number in range(BURST + 5):
        node.made(number)
    node.second()
    assert node.rows["gaps"][0]["why"].startswith("2 containers were not identified in time")


def test_those_over_the_budget_are_asked_about_while_they_live(node: Node) -> None:
    for number in range(BURST + 3):
        node.made(number)
    node.answer()
    node.second()
    assert len(node.answer()) == 3
    node.second()
    assert node.rows["gaps"] == []


def test_a_lookup_that_refuses_leaves_rows_without_names(node: Node) -> None:
    node.accepts = False
    node.made(1)
    node.second()
    assert node.last(1)["name"] is None
    node.accepts = True
    node.second()
    node.second(*node.answer())
    assert node.last(1)["name"] == "agent"


def test_one_that_nothing_names_is_asked_about_again_and_not_for_ever(node: Node) -> None:
    node.made(1)
    node.second(*node.answer(Description(pod_uid="u")))
    assert len(node.answer()) == 1
    for _ in range(10):
        node.second(*node.answer(Description()))
    assert node.asked == []
    # AND one that is named at the second try
    node.made(2)
    node.second(*node.answer(Description()))
    node.second(*node.answer())
    assert node.last(2)["name"] == "agent"


def test_containers_of_before_are_identified_slowly(node: Node) -> None:
    for number in range(40):
        node.tracker.exists(f"/docker/{cid(number)}")
    node.second()
    assert len(node.answer()) == module.LATER_PER_S
    for _ in range(8):
        node.second(*node.answer())
    assert (node.last(39)["name"], node.last(39)["runs"], node.last(39)["started"]) == ("agent", 0, None)


def test_a_new_segment_says_the_living_and_the_last_that_ended(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAID_AGAIN", 2)
    for number in range(6):
        node.made(number)
    node.second(*node.answer())
    for number in range(4):
        node.removed(number)
    node.second()
    node.rows.all.clear()
    node.tracker.restart()
    node.second()
    assert {row["id"] for row in node.rows["containers"]} == {cid(number) for number in (4, 5, 2, 3)}


def test_memory_is_bounded_and_those_that_ended_go_first(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONTAINERS", 10)
    for number in range(10):
        node.made(number)
    node.removed(3)
    node.made(10)
    node.made(11)
    node.second()
    assert set(node.tracker._known) == {cid(number) for number in range(11)} - {cid(3)}
    assert "1 did not fit" in node.rows["gaps"][0]["why"]


def test_of_those_that_ended_a_bounded_number_is_remembered_and_none_is_lost(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_OVER", 5)
    for number in range(40):
        node.made(number)
        node.second(*node.answer())
        node.removed(number)
        node.second()
    assert list(node.tracker._known) == [cid(number) for number in range(35, 40)]
    assert all(node.last(number)["exited"] is not None for number in range(40))
    # one that is remembered is the same one again
    node.made(39)
    node.second()
    assert node.tracker._known[cid(39)].runs == 2


USER = "/user.slice/user-1000.slice/user@1000.service"
RUNNER = "/system.slice/ci-runner.service"


@pytest.mark.parametrize("place", [USER, RUNNER, f"/docker/{cid(2)}"])
def test_a_neighbour_who_makes_up_containers_has_a_share_of_the_room(node: Node, place: str) -> None:
    for number in range(9000):
        node.tracker.made(f"{place}/docker-{cid(10_000 + number)}.scope", 66, node.now)
    # THEN no file is read for any of them, and another writer has a share, too
    assert node.asked == []
    assert len(node.tracker._known) == module.MAX_CLAIMS_EACH
    node.tracker.made(f"/system.slice/other.service/docker-{cid(30_000)}.scope", 66, node.now)
    assert cid(30_000) in node.tracker._known
    # AND the runtime's own is known as ever
    node.made(1)
    node.second(*node.answer())
    assert node.last(1)["name"] == "agent"
    # AND one that ends makes room
    node.tracker.removed(f"{place}/docker-{cid(10_007)}.scope", node.now)
    node.tracker.made(f"{place}/docker-{cid(20_000)}.scope", 66, node.now)
    assert cid(20_000) in node.tracker._known
    assert cid(10_007) not in node.tracker._known


def test_claims_make_room_for_what_runtimes_make(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONTAINERS", 10)
    for number in range(10):
        node.tracker.made(f"{RUNNER}/docker-{cid(10_000 + number)}.scope", 66, node.now)
    for number in range(10):
        node.made(number)
    node.second()
    assert set(node.tracker._known) == {cid(number) for number in range(10)}
    assert not any("did not fit" in row["why"] and "0 did not fit" not in row["why"] for row in node.rows["gaps"])


def test_the_place_of_the_runtime_goes_before_a_claim(node: Node) -> None:
    # GIVEN a user who claims the id of a container that is stopped now, and for which root's runtime has files
    node.tracker.made(f"{USER}/docker-{cid(1)}.scope", 66, node.now)
    node.second()
    assert (node.last(1)["name"], node.last(1)["cgroup"]) == (None, f"{USER}/docker-{cid(1)}.scope")
    assert node.asked == []
    # WHEN it is started
    node.made(1)
    node.second(*node.answer())
    assert (node.last(1)["name"], node.last(1)["cgroup"]) == ("agent", f"/docker/{cid(1)}")


def test_an_id_at_another_path_is_an_impostor(node: Node) -> None:
    node.made(1)
    node.second(*node.answer())
    node.tracker.made(f"/user.slice/user-1000.slice/docker-{cid(1)}.scope", 66, node.now)
    node.tracker.removed(f"/user.slice/user-1000.slice/docker-{cid(1)}.scope", node.now)
    node.tracker.restart()
    node.second(*node.answer(Description(name="victim")))
    row = node.last(1)
    assert (row["name"], row["runs"], row["exited"], row["cgroup"]) == ("agent", 1, None, f"/docker/{cid(1)}")


# --- those that come back --------------------------------------------------------------------------------------------


def lives(node: Node, number: int, known: Description, *clients: Answer) -> None:
    node.made(number)
    node.second(*clients, *node.answer(known))
    node.removed(number)
    node.second()


def settle(node: Node) -> None:
    for _ in range(3):
        node.second()


def restarts(node: Node) -> list[dict[str, Any]]:
    assert {event.kind for event in node.events} <= {"container_restart"}
    return [event.fields for event in node.events]


def test_a_container_that_a_policy_restarts_for_ever_is_an_event(node: Node) -> None:
    for _ in range(6):
        lives(node, 1, Description(name="crashy", image="x", restart_policy="always"))
    settle(node)
    (event,) = node.events
    fields = event.fields
    assert (fields["same"], fields["id"], fields["runs"], fields["name"]) == ("id", cid(1), 6, "crashy")
    assert event.text == "container crashy (image x) ended 6 times in 10 s, restart policy always"
    assert event.severity == "warning"


def test_a_loop_that_runs_new_containers_is_an_event_of_their_image(node: Node) -> None:
    for number in range(8):
        client = node.client(100 + number, run(), LOOP)
        lives(node, number, AGENT, client)
        node.ends(100 + number)
    settle(node)
    fields = restarts(node)[0]
    assert (fields["same"], fields["image"], fields["requester"]) == ("image", AGENT.image, "agent-loop")
    assert node.events[0].text.endswith("run by agent-loop (ecs.service)")
    assert node.events[0].severity == "info", "it may be a queue of jobs: nobody saw one fail"


def test_new_containers_that_fail_one_after_the_other_are_a_warning(node: Node) -> None:
    for number in range(8):
        lives(node, number, replace(AGENT, code=1))
    settle(node)
    assert {event.severity for event in node.events} == {"warning"}


def test_a_container_that_its_pod_gets_anew_is_an_event_of_the_pod(node: Node) -> None:
    known = Description(name="trainer", image="t", namespace="team-a", pod="trainer-0", pod_uid="u")
    for number in range(6):
        lives(node, number, known)
    settle(node)
    fields = restarts(node)[0]
    assert (fields["same"], fields["pod"], fields["namespace"]) == ("pod", "trainer-0", "team-a")


def test_the_event_has_the_code_that_came_after_the_end(node: Node) -> None:
    for number in range(6):
        node.made(number)
        node.second(*node.answer())
        node.removed(number)
        node.second()
        node.second(*node.answer(Description(code=3)))
    settle(node)
    assert restarts(node)[0]["code"] == 3


def test_a_few_different_containers_are_no_news(node: Node) -> None:
    for number in range(12):
        lives(node, number, Description(name=f"n{number}", image=f"image-{number}"))
    settle(node)
    assert node.events == []


# --- cost ------------------------------------------------------------------------------------------------------------


def idle_second(count: int, root: Path) -> float:
    """The least of what a second costs with so many living containers that do nothing."""
    node = Node(root)
    for number in range(count):
        node.tracker.exists(f"/docker/{cid(number)}")
    while node.tracker._later:
        node.now += 100 * SECOND
        node.second(*node.answer())
    node.second(*node.answer())
    spent = []
    for _ in range(200):
        started = time.perf_counter()
        node.second()
        spent.append(time.perf_counter() - started)
    return min(spent)


def test_a_second_costs_the_same_with_ten_and_with_three_thousand(tmp_path: Path) -> None:
    few, many = idle_second(10, tmp_path), idle_second(3000, tmp_path)
    assert many < 5 * few + 20e-6

"""A real Docker: what the recording says of its containers is what Docker says of them, and who asked is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.conftest import Needs
from tests.helpers.container_node import told_by
from tests.helpers.recorder_process import recording

from zombiescope.lab.docker import PROGRAMS
from zombiescope.query.containers import Container, containers
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.containers

IMAGE = "registry.local/ecs-agent:1.2"
LOOPS = 15
DETACHED = 4
SCRIPT = f"""
image, run = {IMAGE!r}, "docker run --network=host"
def start(name, words):
    subprocess.run([script(name, words)], env=daemon.environment, check=True, stdout=subprocess.DEVNULL)
with docker(place, cgroup_parent=parent + "/docker") as daemon:
    daemon.load(image)
    detached = ("run", "--detach", "--network=host")
    daemon.client(*detached, "--name=steady", image, "sleep", "10000")
    daemon.client(*detached, "--name=crasher", "--restart=always", image, "sh", "-c", "exit 3")
    start("agent-loop", f"for n in $(seq {LOOPS}); do {{run}} --rm --cidfile={{place}}/loop-$n {{image}} true; done")
    start("starter", f"for n in $(seq {DETACHED}); do {{run}} -d --cidfile={{place}}/later-$n {{image}} sleep 2; done")
    time.sleep(8)
    daemon.client("stop", "--time=0", "crasher")
    names = ("steady", "crasher")
    inspected = {{name: json.loads(daemon.client("inspect", name))[0] for name in names}}
    ids = {{kind: [file.read_text() for file in sorted(place.glob(kind + "-[0-9]*"))] for kind in ("loop", "later")}}
    tell({{"inspected": inspected, "ids": ids}})
"""


class Seen(NamedTuple):
    """By the recorder, and by Docker itself."""

    rows: dict[str, Container]
    docker: dict[str, Any]

    def of(self, name: str) -> Container:
        return self.rows[self.docker["inspected"][name]["Id"]]

    def ids(self, kind: str) -> list[str]:
        found: list[str] = self.docker["ids"][kind]
        return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    for program, package in PROGRAMS:
        needs.binary(program, package)
    place = tmp_path_factory.mktemp("docker")
    with recording(place / "r") as recorder:
        with told_by(SCRIPT) as said:
            recorder.wait_for_frames(2)
        recorder.wait_for_frames(2)
        recorder.stop()
    with open_recording(place / "r") as opened:
        yield Seen(containers(opened, None, None), said)


def test_a_container_that_behaves_has_its_name_and_image_and_ran_once(seen: Seen) -> None:
    steady = seen.of("steady")
    assert (steady.name, steady.image, steady.runs) == ("steady", IMAGE, 1)
    assert steady.started_us is not None


def test_a_restart_policy_is_one_id_made_many_times(seen: Seen) -> None:
    crasher, truth = seen.of("crasher"), seen.docker["inspected"]["crasher"]
    assert crasher.name == "crasher"
    assert crasher.image == IMAGE
    assert crasher.restart_policy == "always"
    assert truth["RestartCount"] >= 3, "Docker backs off from a tenth of a second, by doubling"
    # Docker counts a restart when it decides on it; one that was stopped while it still waited never ran.
    assert crasher.runs in (truth["RestartCount"], truth["RestartCount"] + 1)
    assert crasher.restarts is not None
    assert crasher.restarts <= truth["RestartCount"]


def test_every_container_of_a_loop_is_named_though_docker_forgot_it(seen: Seen) -> None:
    rows = [seen.rows[one] for one in seen.ids("loop")]
    assert len(rows) == LOOPS
    assert {row.image for row in rows} == {IMAGE}
    assert {row.runs for row in rows} == {1}
    assert all(row.name for row in rows)


def test_the_script_that_runs_the_client_is_who_asked(seen: Seen) -> None:
    rows = [seen.rows[one] for one in seen.ids("loop")]
    assert {row.requester for row in rows} == {"agent-loop"}
    assert all("agent-loop" in (row.requester_command or "") for row in rows)


def test_a_client_that_detached_and_ended_is_still_known(seen: Seen) -> None:
    rows = [seen.rows[one] for one in seen.ids("later")]
    assert len(rows) == DETACHED
    assert {row.requester for row in rows} == {"starter"}


def test_nobody_who_only_carries_out_is_a_requester(seen: Seen) -> None:
    runtimes = {"runc", "containerd", "containerd-shim", "dockerd", "docker"}
    assert runtimes.isdisjoint({row.requester for row in seen.rows.values()})

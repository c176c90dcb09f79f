"""A container that is started again and again: its policy first, then the container. With a stand-in for docker's
client, a real program that keeps its state in a file: no daemon runs where tests run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.remedies import yes

from zombiescope.fix import guard, log
from zombiescope.fix.actions import container
from zombiescope.fix.actions.container import NoRestart, StopContainer
from zombiescope.fix.apply import apply
from zombiescope.fix.step import Action, ActionFailedError, Step
from zombiescope.fix.undo import undo
from zombiescope.model.plans.plan import Plan

CLIENT = """\
#!/usr/bin/python3 -S
import json, sys
place = {state!r}
known, words = json.load(open(place)), sys.argv[1:]
with open(place + ".calls", "a") as file:
    print(*words, file=file)
if words[0] == "hang" or known.get("hangs"):
    import time; time.sleep(30)
if words[-1] not in (known["Name"][1:], known["Id"]):
    sys.exit("Error: No such object: " + words[-1])
if words[0] == "inspect":
    print(json.dumps([known]))
elif words[0] == "update":
    policy, _, most = words[1].partition("=")[2].partition(":")
    known["HostConfig"]["RestartPolicy"] = {{"Name": policy, "MaximumRetryCount": int(most or 0)}}
elif words[0] in ("stop", "start"):
    known["State"]["Running"] = words[0] == "start"
json.dump(known, open(place, "w"))
"""

ID = "ab" * 32


class Docker:
    def __init__(self, place: Path) -> None:
        self.state = place / "state"
        self.write(policy="on-failure", most=5)
        client = place / "docker"
        client.write_text(CLIENT.format(state=str(self.state)))
        client.chmod(0o755)

    def write(self, *, policy: str = "always", most: int = 0, name: str = "loop", **more: Any) -> None:
        known = {
            "Id": "ab" * 32, "Name": f"/{name}", "Config": {"Image": "acme/agent:3"},
            "State": {"Running": False, "Restarting": True},
            "HostConfig": {"RestartPolicy": {"Name": policy, "MaximumRetryCount": most}, "AutoRemove": False},
        }  # fmt: skip
        self.state.write_text(json.dumps({**known, **more}))

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.state.read_text())
        return found

    def changes(self) -> list[str]:
        calls = Path(f"{self.state}.calls").read_text().splitlines()
        return [call for call in calls if not call.startswith("inspect")]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    monkeypatch.setenv("PATH", str(tmp_path))
    return Docker(tmp_path)


def plan() -> Plan:
    actions: tuple[Action, ...] = (NoRestart("docker", "loop", ID), StopContainer("docker", "loop", ID))
    return Plan("test:loop", "", tuple(Step(one.kind, "change", one.kind, action=one) for one in actions))


def test_the_policy_goes_first_and_both_come_back(docker: Docker, tmp_path: Path) -> None:
    docker.write(policy="on-failure", most=5, State={"Running": True})
    with log.opened(tmp_path / "log") as held:
        assert [step.state for step in apply(plan(), held, yes).steps] == ["applied", "applied"]
        assert [step.state for step in apply(plan(), held, yes).steps] == ["applied", "applied"]
        assert docker.changes() == [f"update --restart=no {ID}", f"stop {ID}"]
        assert all(one.ok for one in undo(held, "test:loop", yes))
    assert docker.changes()[2:] == [f"start {ID}", f"update --restart=on-failure:5 {ID}"]
    assert docker.read()["HostConfig"]["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 5}


def test_a_container_that_is_gone_is_ended_already(docker: Docker) -> None:
    docker.write(name="another")
    assert StopContainer("docker", "loop").is_applied()
    with pytest.raises(ActionFailedError, match="knows no container"):
        StopContainer("docker", "loop").touches()


def test_another_container_of_that_name_is_left_alone(docker: Docker) -> None:
    before = StopContainer("docker", "loop").before()
    docker.write(Id="cd" * 32)
    with pytest.raises(ActionFailedError, match="a different container"):
        StopContainer("docker", "loop").undo(before)


@pytest.mark.parametrize("kind", [NoRestart, StopContainer])
def test_a_container_that_was_made_anew_since_the_plan_is_not_touched(
    docker: Docker, tmp_path: Path, kind: type[NoRestart | StopContainer]
) -> None:
    docker.write(State={"Running": True})
    action = kind("docker", "loop", "ab" * 32)
    made = Plan("test:loop", "", (Step(action.kind, "change", action.kind, action=action),))
    docker.write(State={"Running": True}, Id="cd" * 32)
    with log.opened(tmp_path / "log") as held:
        (step,) = apply(made, held, yes).steps
    assert step.state == "failed"
    assert "is another one by now" in step.why
    assert docker.changes() == []


@pytest.mark.parametrize("kind", [NoRestart, StopContainer])
def test_the_container_that_was_recorded_is_meant_whatever_has_its_name(
    docker: Docker, kind: type[NoRestart | StopContainer]
) -> None:
    # GIVEN a recording in which another id had taken the name of this container
    docker.write(State={"Running": True})
    action = kind("docker", "loop", "cd" * 32)
    with pytest.raises(ActionFailedError, match="another one"):
        action.apply()
    with pytest.raises(ActionFailedError, match="knows no container"):
        action.touches()
    assert docker.changes() == []


def test_a_daemon_that_hangs_is_a_clear_line(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    docker.write(hangs=True)
    monkeypatch.setattr(container, "_CALL_S", 0.5)
    monkeypatch.setattr(container._run, "__kwdefaults__", {"may_fail": False, "limit_s": 0.5})
    with pytest.raises(ActionFailedError, match="did not end within"):
        StopContainer("docker", "loop").is_applied()


def test_no_client_is_a_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ActionFailedError, match="no podman"):
        StopContainer("podman", "loop").is_applied()


def test_one_that_is_removed_when_it_stops_says_so(docker: Docker) -> None:
    docker.write(HostConfig={"RestartPolicy": {"Name": ""}, "AutoRemove": True})
    assert any("--rm" in line for line in StopContainer("docker", "loop").touches())


@pytest.mark.parametrize("name", ["", "-f", "a b", "a;b", "../x", "a\n", "é", "x" * 300])
def test_a_name_that_no_runtime_gives_makes_no_action(name: str) -> None:
    with pytest.raises(ValueError, match="has no container"):
        StopContainer("docker", name)


@pytest.mark.parametrize("name", ["k8s_agent_pod-1_default_0", "kubelet", "containerd", "sshd"])
def test_what_others_need_is_protected(name: str) -> None:
    assert guard.protected_container(name)
    assert guard.protected_container("loop") is None

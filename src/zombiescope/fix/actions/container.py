"""A container loses its restart policy, and is stopped: `docker update --restart=no` and `docker stop`, or podman's.

Through the client's own command line, which knows where its daemon is; each call has a deadline. Never the runtime: it
would take everybody's containers away. A container is known by the id that was recorded, and every call names that id:
another one that has or got its name is touched neither when this is applied nor when it is undone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from zombiescope.base import json as _json
from zombiescope.fix.step import ActionFailedError, bounded

CLIENTS = ("docker", "podman")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_ID = re.compile(r"[0-9a-f]{64}")
_CALL_S = 30.0
_STOP_S = 60.0
_GONE = ("no such object", "no such container", "no container with name", "no such image")


@dataclass(frozen=True, slots=True)
class _Container:
    id: str
    name: str
    image: str
    is_running: bool
    policy: str
    """As --restart takes it: "always", "on-failure:5"."""
    goes_when_stopped: bool


@dataclass(frozen=True, slots=True)
class _OfContainer:
    """What both actions share."""

    client: str
    name: str
    id: str | None = None
    """Of the one that was recorded; None in logs of older versions: the one that has the name."""

    def __post_init__(self) -> None:
        if self.client not in CLIENTS or not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise ValueError(f"{self.client!r} has no container {self.name!r}")
        if self.id is not None and (not isinstance(self.id, str) or _ID.fullmatch(self.id) is None):
            raise ValueError(f"{self.id!r} is not the id of a container")

    @property
    def subject(self) -> str:
        """What the client is called with."""
        return self.name if self.id is None else self.id

    def arguments(self) -> dict[str, Any]:
        return {"client": self.client, "name": self.name} | ({} if self.id is None else {"id": self.id})

    def touches(self) -> tuple[str, ...]:
        known = self._known()
        if known is None:
            raise ActionFailedError(f"{self.client} knows no container {self.name} (any more)")
        lines = [f"container {known.name} (image {known.image}): {'runs' if known.is_running else 'does not run'}"]
        lines.append(f"its restart policy is {known.policy}")
        if known.goes_when_stopped:
            lines.append("it is removed as soon as it stops (--rm): then it cannot be started again")
        return bounded(lines)

    def before(self) -> dict[str, Any]:
        known = self._known()
        if known is None:
            return {"exists": False}
        return {"exists": True, "id": known.id, "is_running": known.is_running, "policy": known.policy}

    def _the_one(self) -> _Container | None:
        """None: there is none. Raises ActionFailedError, also where another one has its name by now."""
        known = self._known()
        if known is None and self.id is not None and (other := replace(self, id=None)._known()) is not None:
            raise ActionFailedError(
                f"container {self.id[:12]} is gone, and {self.name} is another one by now: {other.id[:12]}",
                "plan again",
            )
        return known

    def _known(self) -> _Container | None:
        """None: there is none. Raises ActionFailedError."""
        done = _run(self.client, "inspect", "--type", "container", self.subject, may_fail=True)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or ["it gave no reason"]
            if any(word in said[0].lower() for word in _GONE):
                return None
            raise ActionFailedError(f"{self.client} inspect {self.name}: {said[0]}")
        try:
            found = _parsed(_json.loads(done.stdout)[0])
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ActionFailedError(f"{self.client} inspect {self.name} could not be understood: {error}") from None
        if self.id is not None and found.id != self.id:
            raise ActionFailedError(f"{self.client} inspect {self.id} answers with container {found.id}", "plan again")
        return found

    def _same(self, before: Mapping[str, Any]) -> _Container | None:
        """The container that was there before; None where there was none."""
        if not before.get("exists"):
            return None
        known = self._known()
        if known is None:
            raise ActionFailedError(f"container {self.name} does not exist any more")
        if known.id != before.get("id"):
            raise ActionFailedError(f"{self.name} is a different container now: it was recreated")
        return known


@dataclass(frozen=True, slots=True)
class NoRestart(_OfContainer):
    kind: ClassVar[str] = "container.no-restart"

    def command(self) -> tuple[str, ...] | None:
        return (self.client, "update", "--restart=no", self.subject)

    def is_applied(self) -> bool:
        known = self._the_one()
        return known is None or known.policy == "no"

    def apply(self) -> None:
        self._the_one()
        _run(self.client, "update", "--restart=no", self.subject)

    def undo(self, before: Mapping[str, Any]) -> None:
        known = self._same(before)
        policy = str(before.get("policy") or "no")
        if known is not None and known.policy != policy:
            _run(self.client, "update", f"--restart={policy}", known.id)


@dataclass(frozen=True, slots=True)
class StopContainer(_OfContainer):
    kind: ClassVar[str] = "container.stop"

    def command(self) -> tuple[str, ...] | None:
        return (self.client, "stop", self.subject)

    def is_applied(self) -> bool:
        known = self._the_one()
        return known is None or not known.is_running

    def apply(self) -> None:
        self._the_one()
        _run(self.client, "stop", self.subject, limit_s=_STOP_S)

    def undo(self, before: Mapping[str, Any]) -> None:
        known = self._same(before)
        if known is not None and before.get("is_running") and not known.is_running:
            _run(self.client, "start", known.id, limit_s=_STOP_S)


def _parsed(said: dict[str, Any]) -> _Container:
    state, host = said["State"], said["HostConfig"]
    policy = host["RestartPolicy"]["Name"] or "no"
    most = host["RestartPolicy"].get("MaximumRetryCount") or 0
    return _Container(
        id=str(said["Id"]),
        name=str(said["Name"]).lstrip("/"),
        image=str(said.get("Config", {}).get("Image") or said.get("ImageName") or "unknown"),
        is_running=bool(state.get("Running") or state.get("Restarting")),
        policy=f"{policy}:{most}" if policy == "on-failure" and most else str(policy),
        goes_when_stopped=bool(host.get("AutoRemove")),
    )


def _run(*words: str, may_fail: bool = False, limit_s: float = _CALL_S) -> subprocess.CompletedProcess[str]:
    """Raises ActionFailedError."""
    try:
        done = subprocess.run(  # noqa: S603  the client is one of two, and names are checked when an action is made
            words, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except FileNotFoundError:
        raise ActionFailedError(f"there is no {words[0]} on this node's PATH", f"install {words[0]}") from None
    except subprocess.TimeoutExpired:
        raise ActionFailedError(
            f"{words[0]} {words[1]} did not end within {limit_s:g} s: does its daemon hang?"
        ) from None
    except OSError as error:
        raise ActionFailedError(f"{words[0]}: {error.strerror}") from None
    if done.returncode != 0 and not may_fail:
        said = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise ActionFailedError(f"{words[0]} {words[1]}: {said[0]}")
    return done


ACTIONS = (NoRestart, StopContainer)

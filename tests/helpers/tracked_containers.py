"""A tracker of containers whose lookup thread is played by the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zombiescope.node.containers.client import Client
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.requester import Asking, Requester
from zombiescope.recorder.container_lookup import (
    Answer,
    ClientAnswer,
    ClientQuestion,
    ContainerAnswer,
    ContainerQuestion,
    Question,
)
from zombiescope.recorder.containers import ContainerTracker
from zombiescope.store import schema

SECOND = 1_000_000
START = 1_000 * SECOND
LOOP = Requester("agent-loop", 10, "ecs.service", "/bin/sh /opt/agent-loop")
OTHER = Requester("ci", 20, "ci.service", "ci")
AGENT = Description(name="agent", image="registry.local/ecs-agent:1.2", runtime="docker", restart_policy="no")


def cid(number: int) -> str:
    return f"{number:064x}"


class Rows:
    """In the place of a batch."""

    def __init__(self) -> None:
        self.all: dict[str, list[dict[str, Any]]] = {}

    def add(self, table: schema.Table, row: tuple[Any, ...]) -> None:
        names = [column.name for column in table.columns]
        self.all.setdefault(table.name, []).append(dict(zip(names, row, strict=True)))

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        return self.all.get(name, [])


class Node:
    """A tracker, with a lookup thread that is played."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows = Rows()
        self.asked: list[Question] = []
        self.accepts = True
        self.tracker = ContainerTracker(self.rows, self._ask, str(root))  # type: ignore[arg-type]
        self.now = START
        self.events: list[Any] = []

    def _ask(self, question: Question) -> bool:
        if self.accepts:
            self.asked.append(question)
        return self.accepts

    def second(self, *answers: Answer) -> None:
        self.now += SECOND
        self.events += self.tracker.second(self.now, answers)

    def answer(self, known: Description = AGENT) -> list[Answer]:
        taken, self.asked = self.asked, []
        return [ContainerAnswer(one, known) for one in taken if isinstance(one, ContainerQuestion)]

    def made(self, number: int, pid: int = 99) -> None:
        self.tracker.made(f"/docker/{cid(number)}", pid, self.now)

    def removed(self, number: int) -> None:
        self.tracker.removed(f"/docker/{cid(number)}", self.now)

    def client(self, pid: int, asks: Client, who: Requester | None) -> ClientAnswer:
        """A client that was executed now, and lives until it `ends`."""
        place = self.root / "proc" / str(pid)
        place.mkdir(parents=True)
        (place / "stat").write_text(f"{pid} (docker) S 1 1 1 0 -1 0 {'0 ' * 12}5 {'0 ' * 25}\n")
        return ClientAnswer(ClientQuestion(pid, self.now), Asking(asks, 5, who))

    def ends(self, pid: int) -> None:
        (self.root / "proc" / str(pid) / "stat").unlink()

    def last(self, number: int) -> dict[str, Any]:
        return [row for row in self.rows["containers"] if row["id"] == cid(number)][-1]


def run(image: str = "registry.local/ecs-agent:1.2", name: str | None = None) -> Client:
    return Client("docker", "run", name, image)

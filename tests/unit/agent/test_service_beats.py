"""Each service says by when it beats again, and one whose loop hangs is reported within ten seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.agent_process import free_port

from zombiescope.agent import parts
from zombiescope.agent.config.setting import Duration
from zombiescope.agent.health import MARGIN_S, Health
from zombiescope.agent.incident_log import IncidentLogSection
from zombiescope.agent.kubernetes import KubernetesSection
from zombiescope.agent.metrics.part import MetricsSection
from zombiescope.agent.profiles.part import ProfilesSection
from zombiescope.agent.ray.part import RaySection
from zombiescope.agent.service import Context, Service
from zombiescope.agent.shipping.part import ShippingSection
from zombiescope.agent.tally import Tally
from zombiescope.agent.threads import START_S, ServiceThread
from zombiescope.agent.webhook.part import WebhookSection
from zombiescope.store import health

PEER = "http://127.0.0.1:1"
SECTIONS: dict[str, Callable[[Path], Any]] = {
    "metrics": lambda _: MetricsSection(listen=f"127.0.0.1:{free_port()}"),
    "webhook": lambda _: WebhookSection(url=PEER, every=Duration(1.0)),
    "incident_log": lambda _: IncidentLogSection(enabled=True),
    "kubernetes": lambda place: KubernetesSection(enabled=True, kubeconfig=str(place / "none"), node="lab"),
    "profiles": lambda _: ProfilesSection(url=PEER),
    "ray": lambda _: RaySection(),
    "shipping": lambda place: ShippingSection(target=str(place / "target")),
}
HANGS = (
    ("account", "zombiescope.agent.metrics.account.Tail.poll"),
    ("webhook", "zombiescope.agent.webhook.part.IncidentWatch.poll"),
    ("incident_log", "zombiescope.agent.incident_log.IncidentWatch.poll"),
    ("kubernetes", "zombiescope.base.feed.Feed.flush"),
    ("ray", "zombiescope.agent.ray.part.Watch.look"),
    ("shipping", "zombiescope.agent.shipping.part._changed"),
)
"""Service, and what in its loop hangs. The others wait for a process or a request, in other tests."""


@dataclass
class Clock:
    ahead_s: float = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_s


@contextmanager
def running(service: Service, place: Path, clock: Clock) -> Iterator[Health]:
    own = Health(lambda _: None, clock)
    context = Context(service.name, place / "node=lab", "lab", "lab", Tally(parts.families()), own)
    thread = ServiceThread(service, context)
    thread.start()
    try:
        yield own
    finally:
        thread.tell_to_stop()
        assert thread.join(time.monotonic() + 30)


def services(place: Path) -> dict[str, Service]:
    made = [one for part in parts.PARTS for one in part.services(SECTIONS[part.name](place))]
    return {one.name: one for one in made}


def until(true: Callable[[], bool]) -> None:
    ended = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ended
        time.sleep(0.01)


def test_every_part_of_the_configuration_is_tried_here() -> None:
    assert set(SECTIONS) == {part.name for part in parts.PARTS}


@pytest.mark.parametrize(
    "name", ["account", "metrics", "webhook", "incident_log", "kubernetes", "profiles", "ray", "shipping"]
)
def test_a_service_that_works_says_by_when_it_beats_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "target").mkdir()
    made = services(tmp_path)
    assert len(made) == len(parts.PARTS) + 1, "metrics are two"
    with running(made[name], tmp_path, Clock()) as own:

        def has_beaten() -> bool:
            """Not only the thread, before the service began."""
            known = own.conditions()[name]
            assert known.state != "failed", known
            return known.due_s is not None and known.due_s - known.beat_s != START_S

        until(has_beaten)
        assert [part.state for part in own.parts()] == ["ok"]


@pytest.mark.parametrize(("name", "what"), HANGS)
def test_a_service_that_hangs_is_reported_within_ten_seconds(
    name: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "target").mkdir()
    (tmp_path / "node=lab").mkdir()
    entered, released = threading.Event(), threading.Event()

    def hang(*_: object) -> Any:
        entered.set()
        released.wait(60)
        return []

    clock = Clock()
    monkeypatch.setattr(what, hang)
    with running(services(tmp_path)[name], tmp_path, clock) as own:
        until(entered.is_set)
        known = own.conditions()[name]
        promised_s = (known.due_s or 0) - known.beat_s
        assert promised_s + MARGIN_S + health.EVERY_S <= 10.0
        assert [part.state for part in own.parts()] == ["ok"]
        clock.ahead_s = promised_s + MARGIN_S
        assert [(part.state, part.name) for part in own.parts()] == [("hung", name)]
        monkeypatch.undo()
        released.set()

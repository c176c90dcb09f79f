"""The agent's side: a process when there is something to send, one line when the target is away, and it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import SECOND, START_US, write_recording

from zombiescope.agent import parts, worker
from zombiescope.agent.health import Health
from zombiescope.agent.service import Context
from zombiescope.agent.shipping import part
from zombiescope.agent.shipping.part import FAILURES, SENT, ShippingSection, ShippingService
from zombiescope.agent.tally import Tally
from zombiescope.store.freeze import freeze
from zombiescope.store.shipping.policy import ShippingPolicy, backoff_s


def _wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_frozen_window_leaves_by_itself_and_a_target_that_was_away_gets_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "backoff_s", lambda _: 0.1)
    made = write_recording(tmp_path / "here", segment_s=20)
    said: list[str] = []
    context = Context("shipping", made.node_dir, "lab", "lab", Tally(parts.families()), Health(said.append))
    (tmp_path / "there").write_text("in the way")
    policy = ShippingPolicy(target=str(tmp_path / "there"), every_s=0.05, linger_s=0.2)
    service, stop = ShippingService(policy, look_s=0.05), threading.Event()
    freeze(made.node_dir, START_US + 25 * SECOND, START_US + 35 * SECOND, "incident 1")
    thread = threading.Thread(target=service.run, args=(context, stop), daemon=True)
    thread.start()
    try:
        _wait_for(lambda: context.tally.values(FAILURES).get((), 0) >= 1)
        (tmp_path / "there").unlink()
        _wait_for(lambda: context.tally.values(SENT).get((), 0) > 0)
        _wait_for(lambda: context.health.conditions()["shipping"].state == "ok")
    finally:
        stop.set()
        thread.join(20)
    assert (tmp_path / "there/node=lab/log" / made.segments[1].name).read_bytes() == made.segments[1].read_bytes()
    failures = [line for line in said if "works again" not in line]
    assert len(failures) == 1  # however often it was tried
    assert "there" in failures[0]


def test_without_a_target_there_is_no_service() -> None:
    assert part.services(ShippingSection()) == ()


@pytest.mark.parametrize("target", ["ftp://x/y", "http://x"])
def test_a_target_that_cannot_be_is_named_with_its_key(target: str) -> None:
    assert [key for key, _, _ in ShippingSection(target=target).problems()] == ["shipping.target"]


def test_waits_double_and_are_bounded() -> None:
    assert [backoff_s(number, lambda: 1.0) for number in (1, 2, 3, 20)] == [1, 2, 4, 300]
    assert backoff_s(20, lambda: 0.0) == 150


def test_a_process_that_says_nothing_is_ended(tmp_path: Path) -> None:
    (tmp_path / "mute.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with pytest.raises(worker.WorkerError, match=r"mute said nothing for 0\.6 s"):
            worker.run("mute", [], {}, _nothing, threading.Event(), 0.6)


def test_a_process_that_is_stopped_is_ended_long_before_its_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "still.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    monkeypatch.setattr(worker, "STOPPED_S", 0.2)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(worker.WorkerError, match=r"still \(process \d+\) is stopped and was ended"):
        worker.run("still", [], {}, _nothing, threading.Event(), 200)


def test_a_process_that_fails_says_so(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import sys\nprint('[1]')\nprint('{\"a\": 1}')\nprint('junk')\nsys.exit(3)\n")
    heard: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with pytest.raises(worker.WorkerError, match="bad ended with 3"):
            worker.run("bad", [], {}, heard.append, threading.Event(), 30)
    assert heard == [{"a": 1}]


def test_secrets_of_a_target_are_not_shown() -> None:
    policy = ShippingPolicy(target="s3://AKIAX:geheim@bucket/p?region=us-east-1&secret_key=geheim")
    assert "geheim" not in policy.shown
    assert policy.shown.startswith("s3://bucket/p?region=us-east-1")


def _nothing(_: dict[str, Any]) -> None: ...

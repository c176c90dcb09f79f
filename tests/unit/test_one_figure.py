"""One figure, one function: what can be read in several places says the same in all of them, and can be true."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.page_server import page_server
from tests.helpers.scenes import Scene

from zombiescope.cli.main import run
from zombiescope.cli.top.feed import LiveFeed, PastFeed
from zombiescope.query.cgroups import cgroups
from zombiescope.query.core_shares import ORDER, fitted
from zombiescope.query.trend import growth, per_hour
from zombiescope.store import incident_file
from zombiescope.store.reader import open_recording

MODES = tuple(mode for group in ORDER for mode in group)
SHARES = st.fixed_dictionaries({mode: st.floats(0, 3) for mode in MODES})


# --- parts of a core's time ------------------------------------------------------------------------------------------


@given(SHARES)
def test_the_modes_of_a_core_never_add_up_to_more_than_its_time(shares: dict[str, float]) -> None:
    made = fitted(shares)
    assert sum(made.values()) <= 1 + 1e-9
    kernel = sum(shares[mode] for mode in ORDER[0])
    busy = kernel + sum(shares[mode] for mode in ORDER[1])
    assert sum(made[mode] for mode in ORDER[0]) == pytest.approx(min(1, kernel))
    assert sum(made[mode] for group in ORDER[:2] for mode in group) == pytest.approx(min(1, busy))


@given(SHARES)
def test_what_fits_is_left_as_it_is_and_arrays_are_as_numbers(shares: dict[str, float]) -> None:
    total = sum(shares.values())
    if total <= 1:
        assert fitted(shares) == pytest.approx(shares)
    arrays = fitted({mode: np.array([share]) for mode, share in shares.items()}, lower=np.minimum)
    assert {mode: float(array[0]) for mode, array in arrays.items()} == pytest.approx(fitted(shares))


@pytest.fixture
def overfull(tmp_path: Path) -> Path:
    """A core that is given the ticks it missed: a second of 1.0 s of system and 0.16 s of user time."""
    node = Node()
    for second in range(1, 5):
        for cpu, (system, user) in enumerate(((1000, 160), (100, 100))):
            rest = dict.fromkeys(("nice_ms", "irq_ms", "softirq_ms", "steal_ms", "iowait_ms", "idle_ms"), 0)
            took = {"interval_us": SECOND, "system_ms": system, "user_ms": user, "samples": 10}
            node.add("cores", time=START_US + second * SECOND, cpu=cpu, **took, **rest)
    write_segment(tmp_path / "rec", node.take())
    return tmp_path / "rec"


def test_no_view_says_that_a_core_had_more_than_its_time(overfull: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cores", str(overfull), "--json"]) == 0
    core = json.loads(capsys.readouterr().out)["cores"][0]
    assert (core["system"], core["user"], core["busy"]) == (1, 0, 1)
    with page_server(str(overfull), home=_made(overfull.parent / "home")) as served:
        second = served.api("worst").document["second"]
        _, strip = served.api("strip").columns
    assert (second["modes"]["system"], second["modes"]["user"]) == (1, 0)
    total = np.sum([strip[mode][0::2].astype(int) for mode in ("user", "system", "irq", "softirq", "steal")], axis=0)
    assert set(total.tolist()) == {254}
    with open_recording(overfull) as recording:
        tick = PastFeed(recording).recent.ticks[-1].cores[0]
    assert (tick.system, tick.user) == (1, 0)


# --- growth ----------------------------------------------------------------------------------------------------------


def census(values: list[int], hierarchy: str = "v2") -> list[dict[str, Any]]:
    return [
        {"time": START_US + place * 10 * SECOND, "hierarchy": hierarchy, "total": 100 + value, "live": 100,
         "dying": value, "created": 1_000 + place}
        for place, value in enumerate(values)
    ]  # fmt: skip


def grown(place: Path, *rows: dict[str, Any]) -> Path:
    node = Node()
    for row in sorted(rows, key=lambda row: int(row["time"])):
        node.add("census", **row)
    write_segment(place, node.take())
    return place


NOISY = [1_000 + 16 * step + (90 if step % 7 == 3 else 0) for step in range(90)]
"""Sixteen more every ten seconds; now and then some that are released at once, the last of them at the end."""
NOISY[-1] -= 70


def test_growth_is_one_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = grown(tmp_path / "rec", *census(NOISY), *census([40] * 90, "v1"))
    assert run(["cgroups", str(place), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["growth_per_hour"]
    with page_server(str(place), home=_made(tmp_path / "home")) as served:
        page = served.api("cgroups").document["growth_per_hour"]
    live = LiveFeed(place / "node=lab")
    with open_recording(place) as recording:
        past = PastFeed(recording).recent.dying_per_hour()
    live.close()
    assert told == page == live.recent.dying_per_hour() == past
    assert told == pytest.approx(5_760, rel=0.02)


def test_growth_is_not_what_came_and_went_at_the_ends() -> None:
    times = [START_US + step * SECOND for step in range(120)]
    values = [500 + step for step in range(120)]
    values[-1] -= 60
    assert per_hour(times, values) == pytest.approx(3_600, rel=0.05)
    assert growth(times, values, [None] * 120) == per_hour(times, values)


# --- zombies and the incident that they caused -----------------------------------------------------------------------


def test_what_an_incident_calls_the_cause_is_not_merely_watched(tmp_path: Path) -> None:
    place = Scene(kernel="5.4.0").vmstat().census(240, 68_440).hog("", "trainer").write(tmp_path / "rec")
    with open_recording(place) as recording:
        before, node_dir = cgroups(recording), place / f"node={recording.name}"
        at = recording.start_us / 1e6 + 1
    cause = {"pattern": "zombie-memcg", "summary": "core 39 was lost for 6 s"}
    known = {"id": "a", "state": "closed", "severity": "critical", "from": at, "to": at + 6, "causes": [cause]}
    incident_file.write(node_dir, [known], round((at + 7) * 1e6))
    with open_recording(place) as recording:
        after, top = cgroups(recording), PastFeed(recording).zombies
    live = LiveFeed(node_dir)
    for frame in _frames(node_dir):
        live._take([frame])
    assert before.verdict != "costly"
    assert (after, top, live.zombies) == (replace(before, verdict="costly", why=cause["summary"]), "costly", "costly")
    live.close()


def _frames(node_dir: Path) -> list[Any]:
    from zombiescope.store.log import SegmentReader

    (segment,) = (node_dir / "log").glob("*.seg")
    with segment.open("rb") as file:
        return list(SegmentReader(file).frames())


def _made(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory

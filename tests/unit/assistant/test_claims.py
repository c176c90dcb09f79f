"""True claims are never refused; the same claims with one word or number changed are refuted; blind is neither."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.assistant.test_tools import keys

from zombiescope.assistant.tools import Asked
from zombiescope.web.recordings import Recordings

FEW, MANY = 400, 2_000
"""Mutated claims; the many take half a minute."""


def at(us: int) -> str:
    return f"{us / 1e6:.6f}"


def true_claims(recordings: Recordings, node: str) -> Iterator[dict[str, Any]]:
    """Read off the recording's tables by other ways than `check` takes."""
    with recordings.named(node).reading() as recording:
        end, start = recording.end_us, max(recording.start_us, recording.end_us - 600_000_000)
        window = {"node": node, "from": at(start), "to": at(end)}
        hz = recording.node.get("hz")
        samples = recording.table("samples", start, end, ("time", "cpu", "task")).to_pylist()
        tasks = {row["task"]: row for row in recording.table("tasks", start, end).to_pylist()}
        counts: dict[tuple[int, str, int], int] = {}
        for row in samples:
            task = tasks.get(row["task"])
            if task is not None and row["cpu"] is not None and task["comm"]:
                key = (row["cpu"], task["comm"], task["pid"])
                counts[key] = counts.get(key, 0) + 1
        by_comm: dict[tuple[int, str], int] = {}
        for (cpu, comm, _), count in counts.items():
            by_comm[cpu, comm] = by_comm.get((cpu, comm), 0) + count
        for (cpu, comm), count in sorted(by_comm.items(), key=lambda one: -one[1])[:60]:
            if count >= 50 and hz:
                yield {**window, "core": cpu, "process": comm, "measure": "cpu_seconds", "value": count / hz}
                yield {
                    **window,
                    "core": cpu,
                    "process": comm,
                    "measure": "samples",
                    "value": count,
                    "comparison": "at_least",
                }
        kinds: dict[str, int] = {}
        for row in recording.table("events", start, end).to_pylist():
            kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
        for kind, count in kinds.items():
            yield {**window, "event": kind, "measure": "events", "value": count}
        last = recording.table("census", start, end).to_pylist()[-1:]
        for name, column in (("memory_cgroups", "total"), ("dying_cgroups", "dying"), ("live_cgroups", "live")):
            if last and last[0].get(column):
                yield {**window, "measure": name, "value": last[0][column]}


def incident_claims(asked: Asked, node: str) -> Iterator[dict[str, Any]]:
    for fact in asked.answer("incidents", {"node": node})["facts"]:
        found = asked.answer("incident", {"node": node, "id": fact["id"]})
        if found["cause"]:
            yield {"node": node, "incident": fact["id"], "pattern": found["cause"]}
        for role in ("hog", "culprit"):
            if found.get(role):
                yield {"node": node, "incident": fact["id"], role: found[role].split(" (")[0]}


def mutated(claim: dict[str, Any], others: dict[str, list[Any]], chance: random.Random) -> dict[str, Any] | None:
    """With one part changed so that it is certainly false: a number by more than what counts as about the same."""
    ways = []
    if "value" in claim:
        factor = chance.choice([0.0, 0.5, 0.8, 1.3, 2.0, 10.0])
        if claim.get("comparison") == "at_least":
            ways.append({"value": claim["value"] * 1.5 + 20})
            ways.append({"comparison": "at_most", "value": claim["value"] * 0.5 - 10})
        elif abs(claim["value"] * (factor - 1)) > 3:
            ways.append({"value": claim["value"] * factor})
    if "process" in claim:
        ways.append({"process": "no-such-program"})
    if "core" in claim:
        ways.append({"core": 100_000})
    if "pattern" in claim:
        ways.append({"pattern": chance.choice([one for one in others["pattern"] if one != claim["pattern"]])})
    for role in ("hog", "culprit"):
        if role in claim:
            ways.append({role: chance.choice(["somebody-else.service", "unknownd", "trainer"])})
    return {**claim, **chance.choice(ways)} if ways else None


@pytest.fixture(scope="module")
def claims(asked: Asked, recordings: Recordings) -> list[dict[str, Any]]:
    nodes = keys(recordings)
    return [claim for node in nodes for claim in (*true_claims(recordings, node), *incident_claims(asked, node))]


def test_no_true_claim_is_refused(asked: Asked, claims: list[dict[str, Any]]) -> None:
    assert len(claims) > 200
    refused = [(claim, found) for claim in claims if (found := asked.answer("check", claim))["verdict"] != "supported"]
    assert refused == []


@pytest.mark.parametrize("wanted", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_claim_with_one_part_changed_is_refuted(asked: Asked, claims: list[dict[str, Any]], wanted: int) -> None:
    chance = random.Random(7)
    others = {"pattern": ["fork-storm", "rt-hog", "zombie-memcg", "steal"]}
    made: list[dict[str, Any]] = []
    distinct: set[str] = set()
    for _ in range(20 * wanted):
        claim = mutated(chance.choice(claims), others, chance)
        if claim is not None and str(claim) not in distinct:
            distinct.add(str(claim))
            made.append(claim)
        if len(made) == wanted:
            break
    verdicts = [asked.answer("check", claim)["verdict"] for claim in made]
    assert len(made) >= 0.5 * wanted
    assert verdicts.count("refuted") >= 0.99 * len(made)
    assert verdicts.count("supported") == 0


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"core": 39, "process": "kubelet", "from": "2001-01-01", "to": "2001-01-02"}, "not_measured"),
        ({"process": "kubelet", "unit": "kubelet.service", "container": "0123456789ab"}, "not_measured"),
        ({"process": "kubelet", "function": "mem_cgroup_nr_lru_pages"}, "supported"),
        ({"process": "kubelet", "function": "mem_cgroup_nr_lru"}, "refuted"),
        ({"process": "kube*"}, "refuted"),
        ({"core": 70_000, "measure": "busy", "value": 0.5}, "refuted"),
        ({"event": "nic_reset"}, "supported"),
        ({"event": "oom_kill"}, "refuted"),
        ({"culprit": "kubelet"}, "refuted"),
    ],
)
def test_what_a_claim_is_compared_with(asked: Asked, claim: dict[str, Any], verdict: str) -> None:
    found = asked.answer("check", claim)
    assert found["verdict"] == verdict, found
    assert found["because"]

"""What `docker events` printed becomes rows of containers; what is no event of a container is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zombiescope.imports import docker_events, inputs
from zombiescope.imports.rows import ImportReport
from zombiescope.store import schema

IDENTITY = "ab" * 32


def event(action: str, at_s: float, identity: str = IDENTITY, **attributes: str) -> str:
    actor = {
        "ID": identity,
        "Attributes": {"image": "amazon/amazon-ecs-agent:latest", "name": "ecs-agent", **attributes},
    }
    return json.dumps({"Type": "container", "Action": action, "Actor": actor, "timeNano": round(at_s * 1e9)})


def rows(*lines: str) -> tuple[list[dict[str, Any]], ImportReport]:
    report = ImportReport()
    found = docker_events.read("\n".join(lines), report)
    return [dict(zip(schema.CONTAINERS.names, row, strict=True)) for row in found], report


def test_a_start_and_an_end_are_rows_with_name_image_and_code() -> None:
    found, report = rows(event("create", 1), event("start", 2), event("die", 12, exitCode="5"), event("destroy", 13))
    assert [(row["time"], row["started"], row["exited"], row["code"]) for row in found] == [
        (2_000_000, 2_000_000, None, None), (12_000_000, 2_000_000, 12_000_000, 5),
    ]  # fmt: skip
    assert {(row["name"], row["image"], row["runs"], row["requester"]) for row in found} == {
        ("ecs-agent", "amazon/amazon-ecs-agent:latest", 1, None)
    }
    assert not +report.skipped


@pytest.mark.parametrize(
    "line",
    [
        '{"Type": "network", "Action": "connect", "Actor": {"ID": "x"}}', '{"Type": "container"', "[]", "null",
        event("start", 1, "../../etc"), event("start", 1e300 / 1e290), event("start", -1),
    ],
)  # fmt: skip
def test_what_is_no_event_of_a_container_is_counted_and_left_out(line: str) -> None:
    found, report = rows(line)
    assert found == []
    assert sum(report.skipped.values()) == 1


def test_a_code_or_a_name_that_is_none_is_left_out() -> None:
    found, _ = rows(event("start", 1, name="a\x1bb"), event("die", 2, name="a\x1bb", exitCode="x" * 99))
    assert {(row["name"], row["code"]) for row in found} == {(None, None)}


def test_the_file_is_recognised() -> None:
    assert inputs.detect("\n".join(event("start", at) for at in range(1, 9)).encode()) == "docker-events"

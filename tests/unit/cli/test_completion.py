"""What the Tab key offers, asked as bash asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import write_recording


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("completed")
    write_recording(made / "rec", seconds=5)
    (node,) = (made / "rec").iterdir()
    (node / "incidents.json").write_text(json.dumps({"incidents": [{"id": "457ef009e0", "from": 1.0, "to": 2.0}]}))
    return made


def offered(home: Path, *words: str) -> list[str]:
    done = Cli(home).process(
        _ZOMBIESCOPE_COMPLETE="complete_bash", COMP_WORDS=" ".join(("zombiescope", *words)), COMP_CWORD=str(len(words))
    )
    return done.out.split()


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("lab", "run", "zombie-"), {"zombie-tmpfs", "zombie-unit"}),
        (("diagnose", "--fail-on", ""), {"info", "warning", "critical"}),
        (("events", "--at-least", ""), {"info", "warning", "critical"}),
        (("events", "--kind", "nic_"), {"nic_reset", "nic_tx_timeout"}),
        (("export", "--format", "p"), {"pprof", "perf-script"}),
        (("flam",), {"flamegraph"}),
    ],
)
def test_what_is_known_is_offered(words: tuple[str, ...], some: set[str], home: Path) -> None:
    found = offered(home, *words)
    assert some <= set(found)
    assert all(one.startswith(words[-1]) for one in found)


@pytest.mark.parametrize("option", ["--comm", "--unit"])
def test_names_come_from_the_recording(option: str, home: Path) -> None:
    from zombiescope.store.reader import open_recording

    column = option.removeprefix("--")
    with open_recording(home / "rec") as recording:
        names = {name for name in recording.table("tasks").column(column).to_pylist() if name and " " not in name}
    assert names
    assert set(offered(home, "flamegraph", "rec", option, "")) == names


def test_nodes_of_a_recording_are_offered(home: Path) -> None:
    (node,) = (home / "rec").iterdir()
    assert offered(home, "info", "rec", "--node", "") == [node.name.removeprefix("node=")]


def test_where_there_is_nothing_it_offers_nothing_and_says_nothing(home: Path) -> None:
    assert offered(home, "flamegraph", "nowhere", "--unit", "") == []

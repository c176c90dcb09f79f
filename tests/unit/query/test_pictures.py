"""Pictures as files and as text: well formed, self-contained, within the width."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.helpers.made import Sample, opened
from tests.helpers.recordings import SECOND, START_US, write_recording

from zombiescope.query import colours, flame, heatmap, svg, terminal
from zombiescope.query.flame import Tree
from zombiescope.query.heatmap import Heatmap
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Function
from zombiescope.store.reader import open_recording

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tree, Tree, Heatmap, Heatmap]:
    """A flame graph, a difference, and both heat maps of twenty seconds of four cores."""
    written = write_recording(tmp_path_factory.mktemp("rec"), cpus=4, seconds=20)
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        counts = selection.counts()
        tree = flame.fold(selection.stacks, counts)
        half = Selection(recording, START_US, START_US + 10 * SECOND, known=selection.stacks).counts()
        difference = flame.fold(selection.stacks, counts - half, half)
        return tree, difference, heatmap.subsecond(selection), heatmap.by_core(selection)


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert "href" not in text
    assert text.count("http") == 1, "the name of the SVG namespace, and no other address"
    return root


def test_a_flame_graph_names_every_frame_that_it_draws(drawn: tuple[Tree, Tree, Heatmap, Heatmap]) -> None:
    tree = drawn[0]
    root = parsed(svg.flamegraph(tree, "lab & <node>"))
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert len(titles) == len(list(root.iter(f"{SVG}rect"))) == len(tree.value)
    assert any(title.startswith("mem_cgroup_nr_lru_pages ([kernel])\n") for title in titles)
    assert svg.says_pruned(tree) in "".join(root.itertext())


def test_the_widest_frame_fills_the_picture_and_none_leaves_it(drawn: tuple[Tree, Tree, Heatmap, Heatmap]) -> None:
    for tree in drawn[:2]:
        for rect in parsed(svg.flamegraph(tree, "lab")).iter(f"{SVG}rect"):
            assert float(rect.attrib["x"]) >= 10
            assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= svg.WIDTH - 9.6


def test_a_difference_says_its_colours(drawn: tuple[Tree, Tree, Heatmap, Heatmap]) -> None:
    text = svg.flamegraph(drawn[1], "lab")
    assert "red grew" in text
    assert ", vanished" in text


def test_a_heat_map_is_one_path_for_each_colour(drawn: tuple[Tree, Tree, Heatmap, Heatmap]) -> None:
    for map_ in drawn[2:]:
        paths = list(parsed(svg.heatmap(map_, "lab", UTC)).iter(f"{SVG}path"))
        assert 1 < len(paths) <= len(colours.HEAT)
        boxes = [box for path in paths for box in re.findall(r"M\d+ \d+h(\d+)v(\d+)h-\d+", path.attrib["d"])]
        assert sum(int(wide) * int(tall) for wide, tall in boxes) == int((map_.shades > 0).sum())


def test_text_keeps_to_its_width(drawn: tuple[Tree, Tree, Heatmap, Heatmap]) -> None:
    tree, difference, seconds, cores = drawn
    for width in (40, 80, 131):
        for lines in (
            terminal.flamegraph(tree, width),
            terminal.flamegraph(difference, width),
            terminal.heatmap(seconds, width, UTC),
            terminal.heatmap(cores, width, UTC),
        ):
            assert lines
            assert max(len(line) for line in terminal.plain(lines).splitlines()) <= width


def test_the_flame_graph_in_text(tmp_path: Path) -> None:
    with opened(tmp_path, *(Sample(at, "main;left" if at < 3 else "main;right") for at in range(4))) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        lines = terminal.flamegraph(flame.fold(selection.stacks, selection.counts()), 20)
    assert terminal.plain(lines).splitlines() == ["▏all", "▏main", "▏left          ▏rig…"]


def test_the_second_goes_upwards_in_text(tmp_path: Path) -> None:
    samples = [Sample(0, "a"), Sample(1, "a"), Sample(SECOND + 990_000, "a")]
    with opened(tmp_path, *samples) as recording:
        map_ = heatmap.subsecond(Selection(recording, START_US, START_US + 2 * SECOND), rows=2)
    assert terminal.plain(terminal.heatmap(map_, 80, UTC)).splitlines() == [" 0.5s  ░", "   0s █", "      08:53:20"]


def test_a_control_character_in_a_name_does_not_reach_the_terminal(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, "ma\x1b[2Jin")) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        lines = terminal.flamegraph(flame.fold(selection.stacks, selection.counts()), 40)
    assert "\x1b" not in terminal.plain(lines)


def test_a_colour_follows_from_the_name_alone() -> None:
    read = Function("vfs_read", "[kernel]", "kernel")
    assert colours.of(read) == colours.of(Function("vfs_read", "[kernel]", "kernel"))
    kinds = [colours.of(Function("f", "m", kind)) for kind in ("kernel", "module", "bpf", "user", "jit", "unknown")]
    assert len(set(kinds)) == len(kinds)

"""What the interface answers is what the command line prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.cli import Cli
from tests.helpers.page_server import PageServer
from tests.helpers.recordings import BOOT, SECOND, START_US, Written, write_recording

from zombiescope.store.reader import open_recording
from zombiescope.web.endpoints.node import _elsewhere
from zombiescope.web.page import FOLDER

START = START_US / 1e6
BAD = {"from_": START + 25, "to": START + 40}
BAD_OPTIONS = ("--from", str(START + 25), "--to", str(START + 40))
ADDED = {"live", "zone_offset_s", "hz", "interval_s", "version", "note"}


@pytest.fixture
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("cli"))


@pytest.mark.parametrize(
    ("endpoint", "parameters", "arguments"),
    [
        ("cores", {}, ("cores",)),
        ("cores", BAD | {"hottest": 2}, ("cores", *BAD_OPTIONS, "--hottest", "2")),
        ("cores", {"last": "10s"}, ("cores", "--last", "10s")),
        ("events", {"at_least": "warning"}, ("events", "--at-least", "warning")),
        ("events", {"kind": ["mark", "nic_reset"]}, ("events", "--kind", "mark", "--kind", "nic_reset")),
        ("cgroups", {}, ("cgroups",)),
        ("containers", {"top": 5, "image": "a"}, ("containers", "--top", "5", "--image", "a")),
        ("history", {"days": 30}, ("history", "--last", "30d")),
        ("functions", {"top": 7, "comm": "kubelet"}, ("stacks", "--top", "7", "--comm", "kubelet")),
        ("functions", {"cpu": ["0", "2-3"], "mode": "kernel"}, ("stacks", "--cpu", "0", "--cpu", "2-3", "--kernel")),
        ("functions", {"match": "memcg|fault", "last": "20s"}, ("stacks", "--match", "memcg|fault", "--last", "20s")),
        ("incidents", {}, ("diagnose",)),
        ("status", {}, ("status",)),
    ],
)  # fmt: skip
def test_a_document_is_the_one_that_the_command_prints(
    server: PageServer,
    written: Written,
    cli: Cli,
    endpoint: str,
    parameters: dict[str, Any],
    arguments: tuple[str, ...],
) -> None:
    name, *options = arguments
    directory = [] if name == "status" else [str(written.dir)]
    assert server.api(endpoint, **parameters).document == cli(name, *directory, *options, "--json").document


def test_info_is_that_of_the_command_and_what_the_page_needs(server: PageServer, written: Written, cli: Cli) -> None:
    found = server.api("info").document
    assert {key: value for key, value in found.items() if key not in ADDED} == cli(
        "info", str(written.dir), "--json"
    ).document
    assert (found["live"], found["hz"], found["interval_s"]) == (False, 99, 1.0)


@pytest.mark.parametrize("by", ["subsecond", "core"])
def test_the_heat_map_has_the_values_of_the_command(server: PageServer, written: Written, cli: Cli, by: str) -> None:
    header, arrays = server.api("heatmap", by=by, rows=20, comm="kubelet").columns
    printed = cli("heatmap", str(written.dir), "--by", by, "--rows", "20", "--comm", "kubelet", "--json").document
    for key in ("start", "column_s", "columns", "rows", "cores", "total", "max"):
        assert header[key] == printed[key]
    assert arrays["values"].reshape(header["columns"], header["rows"]).tolist() == printed["values"]


def test_painted_cells_count_the_samples_with_a_matching_frame(server: PageServer) -> None:
    header, arrays = server.api("heatmap", paint="numa_stat", comm="kubelet").columns
    _, only = server.api("heatmap", match="numa_stat", comm="kubelet").columns
    assert arrays["painted"].tolist() == only["values"].tolist()
    assert 0 < arrays["painted"].sum() < arrays["values"].sum() == header["total"]
    assert (arrays["painted"] <= arrays["values"]).all()


def test_paint_and_match_are_both_needed(server: PageServer) -> None:
    _, arrays = server.api("heatmap", match="vfs_read", paint="numa_stat", by="core").columns
    _, whole = server.api("heatmap", match="vfs_read", by="core").columns
    assert arrays["values"].tolist() == whole["values"].tolist()
    assert 0 < arrays["painted"].sum() < whole["values"].sum()


def nested(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """The tree as `flamegraph --json` prints it."""
    nodes: list[dict[str, Any]] = []
    for node, parent in enumerate(arrays["parent"].tolist()):
        module = int(arrays["module"][node])
        nodes.append(
            {
                "name": header["names"][arrays["name"][node]],
                "module": None if module == 0xFFFFFFFF else header["modules"][module],
                "kind": header["kinds"][arrays["kind"][node]],
                "value": int(arrays["value"][node]),
                "self": int(arrays["self"][node]),
                "children": [],
            }
        )
        if parent >= 0:
            assert parent < node
            assert arrays["depth"][node] == arrays["depth"][parent] + 1
            nodes[parent]["children"].append(nodes[node])
    return nodes[0]


@pytest.mark.parametrize("invert", [False, True])
def test_the_flame_graph_is_the_tree_of_the_command(
    server: PageServer, written: Written, cli: Cli, invert: bool
) -> None:
    header, arrays = server.api("flamegraph", invert=int(invert), last="20s").columns
    flags = ["--invert"] if invert else []
    printed = cli("flamegraph", str(written.dir), "--last", "20s", "--prune", "0", "--json", *flags).document
    assert header["total"] == printed["total"]
    assert nested(header, arrays) == printed["root"]


def test_fewer_nodes_say_what_is_left_out(server: PageServer) -> None:
    whole, everything = server.api("flamegraph").columns
    header, arrays = server.api("flamegraph", nodes=50).columns
    assert len(everything["value"]) > len(arrays["value"]) == 50
    assert header["pruned"]["branches"] > 0
    assert header["pruned"]["samples"] + arrays["self"].sum() == header["total"] == whole["total"]


def test_a_difference_has_both_windows(server: PageServer, written: Written, cli: Cli) -> None:
    other = f"{START + 5}..{START + 15}"
    header, arrays = server.api("flamegraph", against=other, **BAD).columns
    options = (*BAD_OPTIONS, "--against", other, "--prune", "0", "--json")
    printed = cli("flamegraph", str(written.dir), *options).document
    assert header["base_total"] == printed["against"]["total"]
    assert arrays["base"][0] == header["base_total"]
    assert header["scale"] == pytest.approx(header["total"] / header["base_total"])
    assert arrays["base_self"].sum() == header["base_total"]
    root = printed["root"]
    below = {(child["name"], child["base"], child["value"]) for child in root["children"]}
    mine = np.flatnonzero(arrays["parent"] == 0)
    assert below == {
        (header["names"][arrays["name"][at]], int(arrays["base"][at]), int(arrays["value"][at])) for at in mine
    }


def test_a_window_of_another_recording_is_compared(server: PageServer, written: Written) -> None:
    case = server.api("info", rec="founding-case").document
    against = f"{case['to'] - 20}..{case['to']}"
    header, arrays = server.api("flamegraph", against=against, against_rec="founding-case").columns
    assert header["base_total"] > 0
    vanished = (arrays["value"] == 0) & (arrays["base"] > 0)
    assert "ray::raylet::NodeManager::Run" in {header["names"][at] for at in arrays["name"][vanished]}
    assert server.api("diff", against=against, against_rec="founding-case").document["a"]["node"] != "lab"


def test_diff_is_the_document_of_the_command(server: PageServer, written: Written, cli: Cli) -> None:
    first, second = f"{START + 5}..{START + 15}", f"{START + 25}..{START + 40}"
    printed = cli("diff", first, second, "--in", str(written.dir), "--json").document
    assert server.api("diff", against=first, **BAD).document == printed


@pytest.mark.parametrize("format_", ["collapsed", "pprof", "speedscope", "firefox", "perf-script"])
def test_a_download_is_the_file_of_the_command(server: PageServer, written: Written, cli: Cli, format_: str) -> None:
    got = server.api("export", format=format_, last="5s", comm="kubelet")
    assert (
        cli("export", str(written.dir), "--format", format_, "--last", "5s", "--comm", "kubelet", "-o", "file").code
        == 0
    )
    assert got.body == (cli.home / "file").read_bytes()
    assert got.headers["content-disposition"].startswith('attachment; filename="lab.')


def test_a_selection_is_kept_as_a_page_of_its_own(server: PageServer) -> None:
    got = server.api("page", **BAD, opens="view=top&q=<script>")
    assert got.status == 200
    assert got.headers["content-disposition"].endswith('.html"')
    text = got.body.decode()
    assert 'id="frozen"' in text
    assert "<script>&" not in text
    assert len(got.body) < 1_000_000


def test_the_guilty_second_and_what_the_average_hid(server: PageServer, written: Written) -> None:
    found = server.api("worst").document
    assert written.incident is not None
    second, hidden = found["second"], found["hidden"]
    assert (second["cpu"], second["comm"], second["unit"]) == (written.incident.cpu, "kubelet", "kubelet.service")
    assert written.incident.from_us / 1e6 <= second["at"] < written.incident.to_us / 1e6
    assert "memcg_numa_stat_show" in second["path"]
    assert second["modes"]["system"] > 0.9
    assert hidden["core"] == written.incident.cpu
    assert hidden["seconds"] >= 5
    assert hidden["average_kernel"] < 0.5 < 0.9 < hidden["core_kernel"]


def test_an_incident_has_its_page_and_its_reports(server: PageServer) -> None:
    first = server.api("incidents").document["incidents"][0]
    one = server.api(f"incidents/{first['id']}").document
    assert one["id"] == first["id"]
    assert one["causes"] == first["causes"]
    html = server.api(f"incidents/{first['id']}/report")
    if (FOLDER / "index.html").exists():
        assert html.body.lower().startswith(b"<!doctype html>")
        assert first["id"].encode() in html.body
    else:
        assert (html.status, html.error["fix"]) == (503, "make setup builds it; Markdown needs no page")
    text = server.api(f"incidents/{first['id']}/report", format="md")
    assert text.headers["content-disposition"] == 'attachment; filename="incident.md"'
    assert first["causes"][0]["summary"].encode() in text.body
    assert server.api("incidents/nobody").status == 404


def test_another_machine_is_not_audited(server: PageServer) -> None:
    found = server.api("audit").document
    assert found["available"] is False
    assert "another machine" in found["why"]


@pytest.mark.parametrize(
    ("name", "boot", "why"),
    [
        ("this", "this", None),
        ("another", "this", None),
        ("this", "another", "may be of another machine with the same name"),
        ("this", "", "may be of another machine with the same name"),
        ("another", "another", "is another machine than the one that this server runs on"),
    ],
)
def test_an_audit_belongs_to_a_boot_and_not_to_a_name(tmp_path: Path, name: str, boot: str, why: str | None) -> None:
    """Cloud images and containers share names: vm, localhost, ip-10-0-0-1."""
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    node = os.uname().nodename if name == "this" else "somewhere-else"
    write_recording(tmp_path, seconds=2, node=node, boot=here if boot == "this" else boot and BOOT)
    with open_recording(tmp_path) as recording:
        found = _elsewhere(recording)
    assert found is None if why is None else why in (found or "")


def test_a_recording_that_reaches_over_a_reboot_is_of_this_machine(tmp_path: Path) -> None:
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    made = write_recording(tmp_path, seconds=2, boot=here)
    write_recording(tmp_path, seconds=2, start_us=made.end_us + 60 * SECOND, boot=BOOT, first_seq=5)
    with open_recording(tmp_path) as recording:
        assert recording.node["boot"] == BOOT
        assert _elsewhere(recording) is None


@pytest.mark.parametrize(("start", "end"), [("1.000", "2.000"), ("-5.500", "-1.000"), ("@1", "@2")])
def test_a_window_outside_of_the_recording_is_empty_and_no_mistake(server: PageServer, start: str, end: str) -> None:
    for endpoint in ("lanes", "who"):
        assert server.api(endpoint, from_=start, to=end).status == 200
    header, _ = server.api("flamegraph", from_=start, to=end).columns
    assert header["total"] == 0


def test_a_number_that_may_be_a_day_says_how_to_write_a_second(server: PageServer) -> None:
    refused = server.api("lanes", from_="1", to="2")
    assert (refused.status, refused.error["what"]) == (400, "to: '2' is not a time")
    assert "@1775038996" in refused.error["fix"]


def test_the_founding_case_is_a_recording_of_its_own(server: PageServer) -> None:
    listed = server.api("recordings").document["recordings"]
    assert [one["key"] for one in listed] == ["here", "founding-case"]
    assert listed[0]["node"] == "lab"
    assert "replay" in listed[1]["note"]
    info = server.api("info", rec="founding-case").document
    found = server.api("incidents", rec="founding-case", from_=info["to"] - 30, to=info["to"]).document
    assert found["incidents"][0]["causes"][0]["culprit"]["unit"] == "ecs.service"


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/nodes", "/favicon.ico"])
def test_what_is_not_here_is_not_the_page(server: PageServer, path: str) -> None:
    """A scraper or a probe that is pointed at the page must see that it is wrong; a person reads why."""
    got = server.ask(path)
    assert got.status == 404
    assert (path in got.error["fix"] and "9321" in got.error["fix"]) == (path in ("/metrics", "/healthz", "/readyz"))
    read = server.ask(path, Accept="text/html,*/*")
    assert (read.status, read.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert f"no {path}".encode() in read.body
    assert b"<a href=/>" in read.body


def test_a_path_cannot_write_into_the_answer(server: PageServer) -> None:
    read = server.ask("/%3Cscript%3Ealert(1)%3C/script%3E", Accept="text/html")
    assert read.status == 404
    assert b"<script" not in read.body

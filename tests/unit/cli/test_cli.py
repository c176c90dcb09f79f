"""The command line as a person or a script meets it: documents, exit codes, one line for an error."""

from __future__ import annotations

import importlib
import keyword
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import START_US, Written, write_recording

from zombiescope.cli import main
from zombiescope.store import locate

COMMANDS = (
    "up", "record", "status", "mark", "serve", "check", "top", "cores", "heatmap", "flamegraph", "stacks", "python",
    "diff",
    "events", "cgroups", "containers", "history", "info", "diagnose", "audit", "demo", "import", "freeze", "pack",
    "compact", "lab", "export", "push", "selftest",
)  # fmt: skip
READERS = (
    "cores",
    "heatmap",
    "flamegraph",
    "stacks",
    "python",
    "events",
    "cgroups",
    "containers",
    "history",
    "info",
    "freeze",
    "compact",
    "top",
)
START = START_US / 1e6


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A minute of four cores, the last of them lost for six seconds; nobody may change it."""
    return write_recording(tmp_path_factory.mktemp("rec") / "flight", cpus=4, seconds=60, rollup_days=1)


Shape = Mapping[str, Any]
"""What a document must hold: a type, None for "may be null", a list of one shape, or a shape."""
NUMBER = (int, float)
MODES = dict.fromkeys(("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle", "busy"), NUMBER)


def check(value: object, shape: object, where: str = "document") -> None:
    """Fails with the place where a value does not have its shape."""
    if isinstance(shape, Mapping):
        assert isinstance(value, dict), where
        for key, below in shape.items():
            assert key in value, f"{where}.{key} is missing"
            check(value[key], below, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            check(item, shape[0], f"{where}[{number}]")
    else:
        assert isinstance(value, shape), f"{where} is {value!r}"  # type: ignore[arg-type]  # a type or a tuple of types
        assert not (isinstance(value, bool) and shape is not bool), f"{where} is {value!r}"


GAP = {"from": float, "to": float, "source": str}
CREATOR = {name: (str, int, type(None)) for name in ("comm", "pid", "unit", "container")}
FRAME = {"name": str, "module": (str, type(None)), "kind": str, "value": int, "self": int, "children": list}
SHAPES: dict[str, Shape] = {
    "info": {
        "node": str, "kernel": str, "cpus": int, "from": float, "to": float, "samples": int, "tables": dict,
        "bytes": int, "gaps": [GAP], "missing": [{"source": str, "why": str, "grant": str}],
    },
    "cores": {
        "interval_s": NUMBER,
        "aggregate": MODES,
        "cores": [
            {"cpu": int, **MODES, "longest_saturation_s": NUMBER, "busiest": {"at": float, "busy": NUMBER}}
        ],
    },
    "heatmap": {"start": float, "columns": int, "rows": int, "values": [[int]], "max": int},
    "flamegraph": {"total": int, "root": {**FRAME, "children": [{**FRAME, "children": [FRAME]}]}},
    "stacks": {
        "functions": [
            {"name": str, "module": str, "self": int, "total": int, "self_ratio": float, "total_ratio": float}
        ],
    },
    "events": {
        "events": [{"at": float, "kind": str, "source": str, "severity": str, "text": str, "fields": dict}],
    },
    "cgroups": {
        "memory": {"hierarchy": str, "total": int, "live": int, "dying": int},
        "growth_per_hour": (int, float, type(None)),
        "verdict": str,
        "leaks": [{"path": str, "dying": int, "created": int, "released": int, "creator": CREATOR}],
        "forecast": {name: (float, type(None)) for name in ("read_cost_now_s", "costs_1s_at", "costs_5s_at")},
    },
    "history": {
        "points": [
            {
                "at": float, "boot": str, "cores_saturated_s": NUMBER, "memory_cgroups": int, "dying": int,
                "restarts": int,
            }
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_document_holds_what_is_promised(cli: Cli, written: Written, name: str) -> None:
    done = cli(name, str(written.dir), "--json")
    assert (done.code, done.err) == (0, "")
    assert done.document["schema"] == f"zombiescope.{name}/1"
    check(done.document, SHAPES[name])
    lists = [value for value in done.document.values() if isinstance(value, list | dict)]
    assert name == "info" or any(lists), "an empty document proves nothing"


def test_cores_shows_the_core_that_the_mean_hides(cli: Cli, written: Written) -> None:
    document = cli("cores", str(written.dir), "--json").document
    lost = document["cores"][3]
    assert [core["cpu"] for core in document["cores"]] == [0, 1, 2, 3]
    assert lost["longest_saturation_s"] == 6.0
    assert lost["busiest"]["busy"] == 1.0
    assert all(core["longest_saturation_s"] == 0 for core in document["cores"][:3])
    assert document["aggregate"]["busy"] < 0.5


@pytest.mark.parametrize(
    "moment",
    ["10:53:52", f"{START + 32}", f"@{START + 32}", "+32s", "2025-10-09T10:53:52", "2025-10-09T08:53:52Z"],
)
def test_at_is_that_second_in_every_way_to_say_it(cli: Cli, written: Written, moment: str) -> None:
    # GIVEN a recording of Berlin whose last core is lost from 10:53:50 to 10:53:56
    document = cli("cores", str(written.dir), "--at", moment, "--json").document
    # THEN the second at 10:53:52 shows it
    assert document["from"] == START + 32
    assert document["cores"][3]["system"] == 1.0
    assert document["cores"][3]["longest_saturation_s"] == 1.0


def test_hottest_cores_come_first(cli: Cli, written: Written) -> None:
    document = cli("cores", str(written.dir), "--hottest", "1", "--json").document
    assert [core["cpu"] for core in document["cores"]] == [3]


def test_events_of_a_window_by_kind_and_severity(cli: Cli, written: Written) -> None:
    def kinds(*options: str) -> set[str]:
        events = cli("events", str(written.dir), "--json", *options).document["events"]
        return {event["kind"] for event in events}

    assert kinds() == {"unit_restart", "mark", "nic_reset"}
    assert kinds("--at-least", "warning") == {"unit_restart", "nic_reset"}
    assert kinds("--kind", "mark", "--kind", "nic_reset") == {"mark", "nic_reset"}
    assert kinds("--to", "+10s") == {"unit_restart", "mark"}


def test_cgroups_names_the_leaker_and_the_cost(cli: Cli, written: Written) -> None:
    document = cli("cgroups", str(written.dir), "--json").document
    assert document["verdict"] == "costly"
    assert document["memory"]["dying"] == 68_446
    assert document["leaks"][0]["path"] == "/ecs/*"
    assert document["leaks"][0]["creator"]["unit"] == "ecs.service"


def test_no_zombies_on_a_kernel_that_makes_none_is_not_called_health(cli: Cli, tmp_path: Path) -> None:
    # GIVEN a node whose kernel lets page cache go with its cgroup, so that a leak does not show
    found = write_recording(tmp_path / "r", seconds=5, kernel="7.1.2", dying=0, leak_per_hour=0.0, incident=False)
    # THEN a script and a person are both told why there are none
    wanted = "page cache should no longer keep removed cgroups"
    assert wanted in cli("cgroups", str(found.dir), "--json").document["why"]
    assert wanted in " ".join(cli("cgroups", str(found.dir)).out.split())


@pytest.mark.parametrize("name", SHAPES)
def test_text_is_plain_and_fits_eighty_columns(cli: Cli, written: Written, name: str) -> None:
    done = cli(name, str(written.dir))
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert done.out.strip()
    assert max(len(line) for line in done.out.splitlines()) <= 80


def test_top_prints_one_frame_without_a_terminal(cli: Cli, written: Written) -> None:
    done = cli("top", str(written.dir))
    assert done.code == 0
    assert len(done.out.splitlines()) == 24
    assert "● ended" in done.out
    assert "kubelet (pid 1201, kubelet.service)" in done.out
    assert "mem_cgroup_nr_lru_pages" in done.out


def test_a_pack_is_read_in_place_of_a_directory(cli: Cli, written: Written, tmp_path: Path) -> None:
    # GIVEN a pack of the ten seconds around the incident
    packed = tmp_path / "incident.zscope"
    done = cli("pack", str(written.dir), "--from", "+28s", "--to", "+38s", "-o", str(packed), "--json")
    assert done.code == 0
    assert done.document["bytes"] == packed.stat().st_size
    # THEN every command reads it
    for name in ("cores", "events", "info", "cgroups"):
        assert cli(name, str(packed), "--json").code == 0, name
    cores = cli("cores", str(packed), "--json").document
    assert cores["cores"][3]["longest_saturation_s"] == 6.0
    assert "kubelet" in cli("top", str(packed)).out
    # AND it is not overwritten by accident
    again = cli("pack", str(written.dir), "-o", str(packed))
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "--force" in again.err


def test_freeze_keeps_the_last_ten_minutes_or_the_window_named(cli: Cli, tmp_path: Path) -> None:
    written = write_recording(tmp_path / "rec", seconds=20)
    first = cli("freeze", str(written.dir), "--json").document
    assert first["to"] - first["from"] == pytest.approx(600)
    second = cli("freeze", str(written.dir), "--from", "+5s", "--to", "+9s", "--why", "nic reset", "--json").document
    assert (second["from"], second["to"]) == (START + 5, START + 9)
    assert {path.stem for path in written.node_dir.glob("frozen/*.json")} == {first["id"], second["id"]}


def test_compact_makes_parquet_and_changes_no_answer(cli: Cli, tmp_path: Path) -> None:
    written = write_recording(tmp_path / "rec", seconds=40)
    before = cli("cores", str(written.dir), "--json").document
    done = cli("compact", str(written.dir), "--json").document
    assert done["segments"] == 2
    assert list(written.node_dir.glob("date=*/samples-*.parquet"))
    assert cli("cores", str(written.dir), "--json").document == before
    assert cli("compact", str(written.dir), "--json").document["segments"] == 0


@pytest.mark.long
def test_a_command_that_read_parquet_ends_well(cli: Cli, tmp_path: Path) -> None:
    # GIVEN Parquet, whose reader may still hold a file while the process ends (one abort in ten runs before)
    written = write_recording(tmp_path / "rec", seconds=40)
    assert cli("compact", str(written.dir)).code == 0
    # THEN every run ends with its own exit code
    assert {cli.process("events", str(written.dir), "--last", "10s", "--json").code for _ in range(40)} == {0}


def test_a_full_disk_behind_stdout_is_one_line(written: Written, cli: Cli) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "zombiescope.cli.main", "cores", str(written.dir)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=cli.environment(),
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_status_without_a_recorder_is_an_answer_and_no_error(cli: Cli) -> None:
    done = cli("status", "--json")
    assert done.code == 0
    shape = {"running": bool, "gaps": list, "incidents": list, "pid": type(None), "recording": type(None)}
    check(done.document, shape | {"since": type(None), "cost": type(None)})
    assert done.document["running"] is False
    assert "zombiescope up" in cli("status").out


def test_a_mark_without_a_recorder_says_how_to_start_one(cli: Cli) -> None:
    done = cli("mark", "epoch 12")
    assert (done.code, done.out) == (1, "")
    assert done.err == "zombiescope: no recorder on this machine took the mark; start one with 'zombiescope up'\n"


@pytest.mark.parametrize(
    ("name", "place"),
    [*((name, "nowhere") for name in READERS), ("cores", "empty"), ("cores", "text"), ("compact", "text")],
)
def test_what_is_no_recording_is_one_line_and_exit_1(cli: Cli, name: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("not a recording")
    done = cli(name, str(tmp_path / place))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("zombiescope: ")
    assert done.err.count("\n") == 1
    assert place in done.err


def test_an_empty_window_is_not_packed(cli: Cli, written: Written, tmp_path: Path) -> None:
    done = cli("pack", str(written.dir), "--from", "+2h", "--to", "+3h", "-o", str(tmp_path / "x.zscope"))
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "nothing was recorded in this window" in done.err
    assert not list(tmp_path.glob("*.zscope"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["cores", "--nonsense"],
        ["cores", "DIR", "--last", "5"],
        ["cores", "DIR", "--at", "noon"],
        ["cores", "DIR", "--at", "+1s", "--last", "5s"],
        ["cores", "DIR", "--hottest", "0"],
        ["heatmap", "DIR", "--by", "week"],
        ["heatmap", "DIR", "--rows", "0"],
        ["heatmap", "DIR", "--cpu", "3-1"],
        ["heatmap", "DIR", "--cpu", "all"],
        ["heatmap", "DIR", "-o", "picture.png"],
        ["flamegraph", "DIR", "--match", "("],
        ["flamegraph", "DIR", "--against", "+5s"],
        ["flamegraph", "DIR", "--against", "+9s..+5s"],
        ["flamegraph", "DIR", "--prune", "2"],
        ["stacks", "DIR", "--top", "0"],
        ["stacks", "DIR", "--pid", "kubelet"],
        ["events", "DIR", "--at-least", "terrible"],
        ["events", "DIR", "--follow", "--to", "+5s"],
        ["record", "--hz", "1000"],
        ["record", "--interval", "50ms"],
        ["record", "--interval", "2m"],
        ["record", "--for", "soon"],
        ["record", "--max-bytes", "lots"],
        ["record", "--label", "zone"],
        ["record", "--event", "page-faults"],
        ["record", "--node", "../x"],
        ["mark"],
        ["mark", " "],
        ["pack", "DIR"],
        ["export", "DIR"],
        ["export", "DIR", "--format", "svg"],
        ["export", "DIR", "--format", "collapsed", "--json"],
        ["push", "DIR", "http://127.0.0.1:1"],
        ["push", "DIR", "--as", "jaeger", "http://127.0.0.1:1"],
        ["push", "DIR", "--as", "otlp"],
        ["push", "DIR", "--as", "otlp", "--to", "noon", "http://127.0.0.1:1"],
        ["push", "DIR", "--as", "otlp", "--as", "parca", "http://127.0.0.1:1"],
        ["push", "DIR", "DIR", "--as", "otlp", "http://127.0.0.1:1"],
        ["push", "DIR", "--as", "otlp", "--label", "team", "http://127.0.0.1:1"],
        ["push", "DIR", "--as", "otlp", "--header", "a b=c", "http://127.0.0.1:1"],
        ["push", "DIR", "--as", "otlp", "--every", "10ms", "http://127.0.0.1:1"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(cli: Cli, written: Written, arguments: Sequence[str]) -> None:
    done = cli(*(str(written.dir) if argument == "DIR" else argument for argument in arguments))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "--help" in done.err


def test_several_nodes_are_named_when_none_was_chosen(cli: Cli, tmp_path: Path) -> None:
    for node in ("gpu-1", "gpu-2"):
        write_recording(tmp_path / "fleet", node=node, seconds=5)
    done = cli("cores", str(tmp_path / "fleet"))
    assert done.code == 1
    assert "gpu-1, gpu-2" in done.err
    chosen = cli("cores", str(tmp_path / "fleet"), "--node", "gpu-2", "--json")
    assert chosen.document["node"] == "gpu-2"


def test_the_environment_names_the_recording(cli: Cli, written: Written) -> None:
    assert cli("cores", "--json", ZOMBIESCOPE_DIR=str(written.dir)).document["node"] == "lab"


def test_damage_is_said_and_the_rest_is_shown(cli: Cli, tmp_path: Path) -> None:
    written = write_recording(tmp_path / "rec", seconds=40)
    damaged = written.segments[0]
    damaged.write_bytes(damaged.read_bytes()[:-400] + bytes(400))
    done = cli("cores", str(written.dir), "--json")
    assert done.code == 0
    assert damaged.name in done.err
    assert done.document["cores"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_and_a_page(cli: Cli, name: str) -> None:
    done = cli(name, "--help")
    assert done.code == 0
    assert "Examples" in done.out
    assert not {"<bool>", "<str>", "<list[str]>", "<int range>"} & set(done.out.split()), "no types of Python"
    assert done.out.index("Examples:") < done.out.index("Options:")
    assert f"\n  zombiescope {name}" in done.out
    page = Path(__file__).parents[3] / "docs" / "commands" / f"{name}.md"
    options = {word.strip("│,;. ") for word in done.out.split() if word.startswith("--") and len(word) > 2}
    missing = [option for option in options - {"--help"} if option not in page.read_text()]
    assert not missing, f"{page.name} does not tell of {missing}"


def test_help_and_version(cli: Cli) -> None:
    assert all(name in cli("--help").out for name in COMMANDS)
    assert cli.process().out == cli("--help").out
    assert "<bool>" not in cli("--help").out + cli("lab", "node", "--help").out + cli("fleet", "report", "--help").out
    assert cli("--version").code == 0


def test_help_loads_nothing_heavy(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "zombiescope.cli.main", "--help"],
        capture_output=True, text=True, check=True, env=cli.environment(),
    )  # fmt: skip
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    heavy = {
        "numpy",
        "pyarrow",
        "pandas",
        "zstandard",
        "zombiescope._native",
        "zombiescope.store.reader",
        "asyncio",
    }
    assert not heavy & loaded


def test_a_reader_that_goes_away_is_no_error(cli: Cli, written: Written) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "zombiescope.cli.main", "events", str(written.dir)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.environment(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_defect_is_one_line_that_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(locate, "running_recorders", broken)
    assert main.run(["status"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "two lines (RuntimeError; this is a defect" in said


def test_colour_only_where_it_is_wanted(cli: Cli, written: Written) -> None:
    forced = cli("cores", str(written.dir), FORCE_COLOR="1")
    assert "\x1b[" in forced.out
    plain = cli("cores", str(written.dir), FORCE_COLOR="1", NO_COLOR="1")
    assert "31m" not in plain.out


def test_help_breaks_no_example_and_no_sentence_at_80_columns(cli: Cli) -> None:
    for name in COMMANDS:
        module = importlib.import_module(f"zombiescope.cli.{name}{'_' * keyword.iskeyword(name)}")
        lines = module.EXAMPLES.split("\n\n")[1:]
        assert [line for line in lines if len(line) > 80] == [], name
    words = {name: cli(name, "--help", COLUMNS="80").out for name in COMMANDS}
    assert [line for text in words.values() for line in text.splitlines() if len(line) > 80] == []
    whole = " ".join(words["diagnose"].split())
    assert "names the cause, the process and the culprit. Each fact has its number, time and source" in whole


def test_finding_something_is_no_failure_of_diagnose_unless_asked(cli: Cli, tmp_path: Path) -> None:
    place = str(tmp_path / "case")
    assert cli("demo", "--output", place, "--json").code == 0
    recording = f"{place}/recording"
    assert cli("diagnose", recording, "--last", "30s").code == 0
    assert cli("diagnose", recording, "--last", "30s", "--fail-on", "critical").code == 3
    since = cli("cores", recording, "--since", "+10s", "--until", "+12s", "--json")
    assert since.document == cli("cores", recording, "--from", "+10s", "--to", "+12s", "--json").document


def test_an_option_works_under_its_old_name_and_says_the_new_one(cli: Cli, tmp_path: Path) -> None:
    done = cli("demo", "--keep", str(tmp_path / "case"), "--json")
    assert done.code == 0
    assert "--keep is now --output" in done.err
    wrong = cli("push", "DIR", "--to", "otlp", "http://127.0.0.1:1")
    assert "--to is now --as" in wrong.err
    assert "--as is now" not in cli("push", "DIR", "--to", "noon", "--as", "otlp", "http://127.0.0.1:1").err


def test_a_command_loads_no_other_command(cli: Cli) -> None:
    loaded = "import sys; from zombiescope.cli import main; code = main.run({}); print(*sys.modules, file=sys.stderr)"
    found = {
        name: set(subprocess.run([sys.executable, "-c", loaded.format(words)], capture_output=True, text=True,
                                 env=cli.environment(), check=True).stderr.split())
        for name, words in {"status": ["status"], "all": ["no-such-command"]}.items()
    }  # fmt: skip
    assert "zombiescope.cli.status" in found["status"] & found["all"]
    assert "zombiescope.cli.audit" in found["all"] - found["status"]
    assert not {"pyarrow", "numpy"} & found["status"]

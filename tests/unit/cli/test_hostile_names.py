"""Names that attack whoever shows them go through every command that prints and every format that is written.

A command that is new is here by itself: one that is neither run below nor named with a reason fails the first test.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.helpers import stand_in
from tests.helpers.hostile import EVIL, FORGED, NODE, SCRIPT, TITLE, write
from typer.main import get_command

from zombiescope.cli.main import application, run
from zombiescope.query.exports.formats import BINARY, Format

RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "cores": (("cores", "REC"),),
    "heatmap": (("heatmap", "REC"), ("heatmap", "REC", "--by", "core")),
    "flamegraph": (("flamegraph", "REC"), ("flamegraph", "REC", "--invert"), ("flamegraph", "REC", "--user")),
    "stacks": (("stacks", "REC"), ("stacks", "REC", "--user")),
    "python": (("python", "REC"), ("python", "REC", "--tid", "4711")),
    "diff": (("diff", "REC@+0s..+5s", "REC@+5s..+11s"),),
    "events": (("events", "REC"),),
    "cgroups": (("cgroups", "REC"),),
    "containers": (("containers", "REC"), ("containers", "REC", "--top", "3")),
    "delays": (("delays", "REC"),),
    "gpu": tuple(("gpu", "REC", "--by", each) for each in ("job", "process", "gpu")),
    "history": (("history", "REC"),),
    "info": (("info", "REC"),),
    "diagnose": (("diagnose", "REC", "--verbose"),),
    "top": (("top", "REC", "--once"),),
    "status": (("status",),),
    "freeze": (("freeze", "REC", "--last", "5s"),),
    "pack": (("pack", "REC", "-o", "OUT.zscope"), ("pack", "REC", "-o", "OUT.zscope", "--redact")),
    "compact": (("compact", "REC"),),
    "export": tuple(("export", "REC", "--format", each.value) for each in Format if each not in BINARY),
    "audit": (("audit", "--root", "ROOT"),),
    "import": (("import", "NAMES", "OUT"),),
    "fleet": (("fleet", "report", "REC", "--results", "OUT"), ("fleet", "digest", "REC", "--results", "OUT")),
    "ship": (("ship", "REC", "OUT"),),
    "push": (("push", "REC", "--as", "pyroscope", "PEER"),),
}
"""REC is a hostile recording, ROOT a root with hostile units, NAMES a hostile file, PEER a hostile server."""

ELSEWHERE = {
    "mark": "sends a text and prints nothing",
    "record": "prints what the recorder says: recorder/announce, escaped in its own process",
    "up": "as record",
    "serve": "prints addresses of its own",
    "check": "looks at this machine; its screen is composed in test_a_screen_is_made_of_visible_characters",
    "selftest": "prints the founding case, which nobody else wrote",
    "demo": "prints the founding case, which nobody else wrote",
    "mcp": "answers on its standard output: test_an_assistant_reads_visible_characters",
    "lab": "prints faults of its own",
    "fix": "needs the id of an incident: test_a_plan_can_be_seen",
    "agent": "as record; its own lines are escaped in agent/supervisor.py and agent/services.py",
}

_INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def invisible(text: str) -> set[str]:
    """Characters that are not there to be seen, other than line breaks."""
    return {each for each in text if each != "\n" and unicodedata.category(each) in _INVISIBLE}


def check(text: str) -> None:
    assert invisible(text) == set()
    assert not [line for line in text.splitlines() if line.lstrip().startswith(FORGED)], text


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("hostile") / "rec")


@pytest.fixture
def places(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path)
    own = shutil.copytree(recording, tmp_path / "rec")
    units = tmp_path / "root/etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True)
    unit = f"x{TITLE}[a](javascript:b).service"
    (units / unit).write_text(f"[Service]\nExecStart=/nowhere/{TITLE}\nRestart=always\nRestartSec=0\n")
    (units / "multi-user.target.wants" / unit).symlink_to(f"../{unit}")
    names = tmp_path / f"names{TITLE}.collapsed"
    names.write_text("main;work 5\n" * 20 + f"py{TITLE};fu\u202en\x9bc 5\nbroken {TITLE}\n")
    return {
        "REC": str(own),
        "ROOT": str(tmp_path / "root"),
        "NAMES": str(names),
        "OUT": str(tmp_path / "out"),
    }


def test_every_command_is_run_or_has_a_reason() -> None:
    known = set(get_command(application()).commands)  # type: ignore[attr-defined]
    assert known == RUNS.keys() | ELSEWHERE.keys()


def test_the_names_reach_what_is_printed(places: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    """Else the tests below would see nothing."""
    for name in ("delays", "gpu", "events", "containers", "cgroups", "info", "diagnose", "stacks"):
        run([name, places["REC"], *(["--user"] if name == "stacks" else [])])
        assert r"\x1b]0;pwned\x07" in re.sub(r"\s+", "", capfd.readouterr().out), name


@pytest.mark.parametrize("arguments", [each for runs in RUNS.values() for each in runs], ids=" ".join)
def test_what_is_printed_can_be_seen(
    arguments: tuple[str, ...], places: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    with stand_in.running() as peer:
        peer.answers = [(400, {}, f"no{TITLE}\r\n{FORGED}\x9b".encode())]
        known = places | {"PEER": peer.url}
        filled = [re.sub("REC|ROOT|NAMES|OUT|PEER", lambda found: known[found[0]], each) for each in arguments]
        assert run(filled) in (0, 1, 3)
    said = capfd.readouterr()
    assert said.out or said.err
    check(said.out.replace("\t", "") if "perf-script" in arguments else said.out)  # its frames are set in with a tab
    check(said.err)


def test_the_state_of_a_recorder_can_be_seen(capfd: pytest.CaptureFixture[str]) -> None:
    from zombiescope.cli import status

    document: dict[str, Any] = {
        "running": True, "node": NODE, "recording": f"/x{EVIL}", "pid": 1, "since": 1.0, "until": 2.0, "bytes": 5,
        "cost": None,
        "gaps": [{"from": 1.0, "to": 2.0, "source": f"a{EVIL}", "why": f"b{EVIL}"}],
        "missing": [{"source": f"a{EVIL}", "why": f"b{EVIL}", "grant": f"c{EVIL}"}],
        "left_out": [1, 2],
        "parts": [{"name": f"e{EVIL}", "state": "failed", "since": 1.0, "last_success": None, "why": f"f{EVIL}",
                   "fix": f"g{EVIL}"}],
        "incidents": [{"id": "x", "severity": "critical", "from": 1.0, "to": 2.0, "state": "open",
                       "symptoms": [{"text": f"d{EVIL}"}]}],
    }  # fmt: skip
    status._print(document)
    text = capfd.readouterr().out
    assert "pwned" in text
    check(text)


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"export", "import", "push", "heatmap", "audit", "compact"}))
def test_json_is_of_visible_characters(name: str, places: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    filled = [re.sub("REC|OUT", lambda found: places[found[0]], each) for each in RUNS[name][0]]
    filled = [each for each in filled if each not in ("--once", "--verbose")]
    assert run([*filled, "--json"]) in (0, 1, 2, 3)
    said = capfd.readouterr()
    check(said.out)
    check(said.err)


def test_an_assistant_reads_visible_characters(places: dict[str, str]) -> None:
    """Every tool of `mcp`: the text that is sent, and each string in it, for an assistant decodes them."""
    from zombiescope.assistant.fact import written
    from zombiescope.assistant.tools import TOOLS, Asked
    from zombiescope.web.recordings import Place, Recordings

    recordings = Recordings([Place(Path(places["REC"]))])
    try:
        asked = Asked(recordings)
        first = asked.answer("incidents", {})["facts"][0]["id"]
        for tool in TOOLS:
            if tool.name in ("check", "fleet"):
                continue
            text = written(asked.answer(tool.name, {"id": first} if tool.name == "incident" else {}))
            check(text)
            for each in strings(json.loads(text)):
                check(each)
    finally:
        recordings.close()


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def test_errors_can_be_seen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["info", str(tmp_path / f"no{TITLE}\n{FORGED}")]) == 1
    assert run(["info", f"--no{TITLE}"]) == 2
    check(capfd.readouterr().err)


# --- files -----------------------------------------------------------------------------------------------------------


class _Elements(HTMLParser):
    """Elements and the targets of links, and the text of those that hold text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [value for _, value in attrs if value and "javascript:" in value]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("command", ["flamegraph", "heatmap", "diagnose"])
def test_a_page_holds_no_element_that_a_name_wrote(command: str, places: dict[str, str]) -> None:
    out = Path(places["OUT"]).with_suffix(".html")
    assert run([command, places["REC"], "-o", str(out)]) in (0, 3)
    text = out.read_text()
    assert SCRIPT not in text
    # the style sheet and our own script may hold what they like
    assert invisible(re.sub(r"<style>.*?</style>", "", text, flags=re.S)) == set()
    found = _Elements()
    found.feed(text)
    assert found.tags.count("script") == 4
    assert not set(found.tags) - {
        "html", "head", "meta", "title", "link", "style", "body", "div", "noscript", "p", "pre", "script"
    }  # fmt: skip


@pytest.mark.parametrize("command", ["flamegraph", "heatmap"])
def test_a_picture_is_xml_whatever_the_names_are(command: str, places: dict[str, str]) -> None:
    out = Path(places["OUT"]).with_suffix(".svg")
    assert run([command, places["REC"], "-o", str(out)]) == 0
    tree = ElementTree.parse(out)
    kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert not kinds & {"script", "a", "foreignObject", "image"}
    assert invisible(out.read_text()) == set()


def test_a_ticket_has_no_link_no_element_and_no_line_that_a_name_wrote(places: dict[str, str]) -> None:
    from markdown_it import MarkdownIt

    out = Path(places["OUT"]).with_suffix(".md")
    assert run(["diagnose", places["REC"], "-o", str(out), "--fail-on", "info"]) == 3
    text = out.read_text()
    assert "pwned" in text
    check(text)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    inner = [child for token in tokens for child in (token.children or [])]
    kinds = {token.type for token in (*tokens, *inner)}
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}, kinds
    rows = [token for token in tokens if token.type == "tr_open"]
    cells = [token for token in tokens if token.type in ("td_open", "th_open")]
    assert len(cells) == 5 * len(rows)


def test_code_hosts_get_no_link_that_a_name_wrote(places: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--root", places["ROOT"], "--sarif", "-"]) in (0, 3)
    text = capfd.readouterr().out
    check(text)
    assert "pwned" in text
    assert not re.search(r"(?<!\\)\[a(?<!\\)\](?!\\)\(javascript", text.replace("\\\\", "\\"))


def test_a_screen_is_made_of_visible_characters() -> None:
    """`check` and `top`: whatever their panels are given."""
    from rich.text import Text

    from zombiescope.cli.terminal import one_line

    made = one_line(Text.assemble((NODE, "bold"), " 4 cores"))
    assert "\n" not in made.plain
    check(made.plain)


@pytest.mark.parametrize("module", ["zombiescope.cli.check.screen", "zombiescope.cli.top.screen"])
def test_both_screens_go_through_it(module: str) -> None:
    source = Path(__file__).parents[3] / "src" / (module.replace(".", "/") + ".py")
    compose = source.read_text().partition("def compose(")[2].partition("\n\n\ndef ")[0]
    assert "one_line(" in compose


# --- nothing goes round it -------------------------------------------------------------------------------------------


def test_a_plan_can_be_seen(places: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    run(["diagnose", places["REC"], "--json"])
    found = [one["id"] for one in json.loads(capfd.readouterr().out)["incidents"]]
    assert found
    for incident in found:
        run(["fix", places["REC"], "--incident", incident])
        said = capfd.readouterr()
        check(said.out)
        check(said.err)


_ROUND = re.compile(r"\bConsole\(|(?<!\.)\bprint\(|std(?:out|err)\.write(?:lines)?\(|\btyper\.echo\(")
_ALLOWED = {
    "cli/terminal.py": "the console itself",
    "cli/output.py": "JSON and notes, both escaped there",
    "cli/main.py": "the version, and what could not be written",
    "cli/start.py": "escaped beside it: typer is not loaded there",
    "cli/import_run.py": "escaped beside it: typer is not loaded there; its bar shows no names",
    "cli/check/screen.py": "measures, and prints nothing",
    "cli/progress.py": "escaped beside it: it moves within its line",
    "cli/manual.py": "how it is called",
    "cli/lab/calibration.py": "figures of our own",
    "cli/lab/score.py": "a bar of our own scenarios",
    "cli/lab/node.py": "passes a guest's output on as it is, as ssh does",
    "recorder/__main__.py": "escaped beside it",
    "store/compact.py": "escaped beside it",
    "diagnosis/live.py": "escaped beside it",
    "diagnosis/standby.py": "JSON for the recorder, in a pipe",
    "recorder/piped_process.py": "what its children say to people, made printable",
    "recorder/wait_helper.py": "JSON for the recorder, in a pipe",
    "web/__main__.py": "a text of its own",
    "agent/config/json_schema.py": "a schema of our own",
    "agent/incident_log.py": "JSON, of texts that are made printable in agent/webhook/alert.py",
    "cli/diagnose.py": "JSON, escaped in assistant/fact.py",
    "cli/status.py": "one line, escaped beside it",
    "agent/metrics/reference.py": "a page of our own",
    "agent/services.py": "escaped beside it",
    "agent/supervisor.py": "escaped beside it",
    "cli/fix_image.py": "a script or preset; its names are quoted and escaped in fix/image.py",
    "cli/fleet/asking.py": "a bar that shows no names",
    "cli/fleet/digest.py": "Markdown, escaped in fleet/digest.py",
    "query/exports/continuous.py": "JSON for the agent, in a pipe, and a text of its own",
    "fix/reclaim_worker.py": "JSON for fix, in a pipe, and why it failed, escaped beside it",
    "store/shipping/worker.py": "JSON for the agent, in a pipe, and errors, escaped beside it",
}


def test_nothing_prints_in_another_way() -> None:
    source = Path(__file__).parents[3] / "src" / "zombiescope"
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if any(_ROUND.search(line) for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    }
    assert {name for name in found if not name.startswith("lab/")} <= _ALLOWED.keys()

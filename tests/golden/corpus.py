"""The golden corpus: what every command answers about recordings that do not change.

A case is a command line and its JSON document, normalised: paths of this run, versions and the present moment are
replaced, and floats are rounded to nine significant digits. The cases of one recording are one compressed file, so a
change of behaviour is one small binary difference; `make golden` shows it as text.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
import zstandard

from tests.helpers.pattern_rows import ROWS
from tests.helpers.scenes import Scene
from zombiescope.cli import main
from zombiescope.diagnosis.report import document

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FIXTURES = HERE.parent / "fixtures"
LEVEL = 19

Documents = dict[str, Any]
"""A command line, without the recording -> what it answered."""

VARIANTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "events": ((), ("--last", "10s")),
    "flamegraph": ((), ("--invert",), ("--kernel",)),
    "heatmap": (("--by", "subsecond"), ("--by", "core")),
    "stacks": ((), ("--top", "50")),
}
"""With which options a command is asked; without any where it is not listed."""

LEFT_OUT = {
    "agent": "runs until it is stopped",
    "audit": "reads this node, not a recording",
    "check": "reads this node, not a recording",
    "compact": "changes the recording",
    "demo": "makes a recording of its own, which is a case here",
    "diff": "needs two windows; tests/unit/cli/test_diff.py has them",
    "export": "writes formats of others; tests/unit/query/exports compares those",
    "fix": "plans depend on what lives on this node",
    "freeze": "changes the recording",
    "import": "makes a recording",
    "mark": "speaks to a running recorder",
    "mcp": "speaks a protocol; tests/unit/assistant asks it",
    "pack": "makes a recording",
    "push": "speaks to a server",
    "record": "records",
    "selftest": "reads no recording",
    "ship": "speaks to an object store",
    "status": "speaks of running recorders",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that is asked, and how: `documents` is called with a directory of its own."""

    name: str
    documents: Callable[[Path], Documents]

    @property
    def path(self) -> Path:
        return CORPUS / f"{self.name}.json.zst"

    def accepted(self) -> Documents:
        if not self.path.exists():
            return {}
        found = json.loads(zstandard.ZstdDecompressor().decompress(self.path.read_bytes()))
        assert isinstance(found, dict)
        return found

    def accept(self, documents: Documents) -> None:
        CORPUS.mkdir(exist_ok=True)
        data = json.dumps(documents, sort_keys=True, separators=(",", ":")).encode()
        self.path.write_bytes(zstandard.ZstdCompressor(level=LEVEL).compress(data))


def subjects() -> list[Subject]:
    packs = sorted([*FIXTURES.glob("recordings/*.zscope"), *FIXTURES.glob("backgrounds/*.zscope")])
    of_packs = [Subject(f"{pack.parent.name}-{pack.stem}", _asker(pack)) for pack in packs]
    return [*of_packs, Subject("demo", _of_the_demo), Subject("scenes", _of_the_scenes)]


# --- commands ---------------------------------------------------------------------------------------------------------


def command_lines() -> Iterator[tuple[str, ...]]:
    """Every command that answers about one recording in JSON."""
    for name, command in sorted(commands().items()):
        if name not in LEFT_OUT and "--json" in {option for one in command.params for option in one.opts}:
            yield from ((name, *options) for options in VARIANTS.get(name, ((),)))


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(main.application())
    return {name: command for name, command in group.commands.items() if not hasattr(command, "commands")}


def _asker(pack: Path) -> Callable[[Path], Documents]:
    def ask(place: Path) -> Documents:
        here = place / "recording.zscope"
        shutil.copyfile(pack, here)
        return asked(here)

    return ask


def asked(recording: Path) -> Documents:
    return {" ".join(line): _answer(line, recording) for line in command_lines()}


def _answer(line: tuple[str, ...], recording: Path) -> Any:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main.run([line[0], str(recording), *line[1:], "--json"])
    printed = out.getvalue()
    found = json.loads(printed) if printed.strip() else None
    return normalised({"exit code": code, "stderr": err.getvalue(), "document": found}, recording.parent)


def _of_the_demo(place: Path) -> Documents:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = main.run(["demo", "--output", str(place / "case"), "--json"])
    assert code in (0, 3), f"the demo ended with {code}"
    return asked(place / "case" / "recording")


def _of_the_scenes(place: Path) -> Documents:
    """`diagnose` of each pattern's scene: with the number that confirms it, and with the one that refutes it."""
    found: Documents = {}
    for row in ROWS:
        for name, change in (("confirms", row.confirms), ("refutes", row.refutes)):
            directory = place / f"{row.pattern}-{name}"
            directory.mkdir()
            incidents = change(row.base(Scene())).diagnose(directory).incidents
            written = [document.incident(each) for each in incidents]
            found[f"{row.pattern} {name}"] = normalised(normalised(written, directory), place)
    return found


# --- what differs from run to run -------------------------------------------------------------------------------------


def normalised(value: Any, place: Path) -> Any:
    if isinstance(value, dict):
        return {_text(key, place): normalised(entry, place) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [normalised(entry, place) for entry in value]
    if isinstance(value, str):
        return _text(value, place)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _text(value: str, place: Path) -> str:
    return value.replace(str(place), "PLACE").replace(version("zombiescope"), "VERSION")

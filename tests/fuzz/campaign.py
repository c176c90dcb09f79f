"""A campaign: every target gets so many executions, in as many runs as it takes; what was done is kept below build/."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz import sanitizer

PLACE = sanitizer.HERE / "build" / "fuzz"
_ROW = re.compile(r"^\| ([a-z0-9-]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (yes)? +\| (\d+)? +\|$", re.MULTILINE)


@dataclass(slots=True)
class Progress:
    """One target, over all runs."""

    name: str
    executions: int = 0
    seconds: float = 0.0
    coverage: int = 0
    sanitized: bool = False
    crashes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, result: dict[str, object], *, sanitized: bool) -> None:
        self.executions += int(str(result["executions"]))
        self.seconds += float(str(result["seconds"]))
        self.coverage = max(self.coverage, int(str(result["coverage"])))
        self.sanitized |= sanitized
        if result["status"]:
            self.faults.append(str(result["fault"]))
            found = result["crashes"]
            self.crashes += map(str, found if isinstance(found, list) else [])


class Book:
    """What each target has had so far: a run that is interrupted goes on where it was."""

    def __init__(self, place: Path, *, before: str = "") -> None:
        """`before`: a page with the table of earlier runs, which is where a checkout that has had none goes on."""
        self._path = place / "progress.json"
        self._before = dict(_told(before))
        self.of: dict[str, Progress] = {}
        self._read()

    def _read(self) -> None:
        known = json.loads(self._path.read_bytes()) if self._path.exists() else {}
        self.of = {**self._before, **{name: Progress(**one) for name, one in known.items()}}

    def executions(self, name: str) -> int:
        return self.of[name].executions if name in self.of else 0

    def note(self, result: dict[str, object], *, sanitized: bool) -> Progress:
        self._read()  # another run may fuzz other targets meanwhile
        name = str(result["name"])
        known = self.of.setdefault(name, Progress(name))
        known.add(result, sanitized=sanitized)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({each: asdict(one) for each, one in self.of.items()}, indent=1))
        return known


def _told(page: str) -> Iterator[tuple[str, Progress]]:
    """The rows of `table`, as far as they say it: what a defect was is not in it."""
    for found in _ROW.finditer(page):
        executions, seconds, branches = (int(found[each].replace(",", "")) for each in (2, 3, 4))
        faults = ["found by an earlier run"] * int(found[6] or 0)
        yield found[1], Progress(found[1], executions, float(seconds), branches, bool(found[5]), [], faults)


def results(
    executions: Mapping[str, int],
    place: Path,
    *,
    seconds: int,
    seed: int = 0,
    module: Path | None = None,
    most_s: float = 1e9,
) -> Iterator[dict[str, object]]:
    """One result for each target, as the worker gives them, with so many executions at most; `module` is the sanitized
    one. Ends itself after most_s."""
    words = [f"{name}:{count}" for name, count in executions.items()]
    command = [sys.executable, "-m", "tests.fuzz.worker", *words, "--place", str(place), "--seed", str(seed)]
    command += ["--seconds", str(seconds)]
    command += ["--sanitized", str(module)] if module else []
    place.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + most_s
    environment = sanitizer.environment() if module else None
    with (
        (place / "worker.log").open("wb") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment, cwd=sanitizer.HERE, text=True
        ) as worker,
    ):
        assert worker.stdout is not None
        try:
            for line in worker.stdout:
                yield json.loads(line)
                if time.monotonic() > until:
                    return
        finally:
            worker.terminate()


def table(book: Book) -> str:
    """As Markdown, and readable as it is."""
    lines = ["| parser | executions | seconds | branches | sanitizers | defects |", "|---|---:|---:|---:|---|---:|"]
    for one in book.of.values():
        lines.append(
            f"| {one.name} | {one.executions:,} | {one.seconds:,.0f} | {one.coverage:,} |"
            f" {'yes' if one.sanitized else ''} | {len(one.faults) or ''} |"
        )
    executions, seconds = (sum(getattr(one, what) for one in book.of.values()) for what in ("executions", "seconds"))
    lines.append(f"| **{len(book.of)}** | **{executions:,}** | **{seconds:,.0f}** | | | |")
    return "\n".join(lines)

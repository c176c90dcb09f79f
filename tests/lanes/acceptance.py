#!/usr/bin/env python3
"""The acceptance list: does an installed zombiescope do what the README promises?

    acceptance.py [--steps NAME,...] [--core] [--docs PAGE] COMMAND

COMMAND is the installed `zombiescope`. Each step has a time limit. A table at the end shows each step with its result;
the exit code is 1 if a step failed. A step that cannot run in this installation says why: an extra is not installed, or
an earlier step failed. This file needs Python 3.9 and nothing else, so it can be copied into a pod or a chroot.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

COMMAND_S = 60.0
"""How long one command may take; a step may run several."""
READY_S = 45.0
"""How long a server may take until it answers."""
FOUND = (0, 3)
"""Exit codes of a command that could run: nothing found, something found."""
PATTERN, CULPRIT, HOT_FUNCTION = "zombie-memcg", "ecs.service", "mem_cgroup_nr_lru_pages"
"""What the demo's recording holds."""


class StepFailed(Exception):  # noqa: N818  a result, not a defect of this program
    """The installation does not do what the step expects."""


class NotRun(Exception):  # noqa: N818  likewise
    """The step cannot run in this installation; the text says why."""


def fail(what: str) -> NoReturn:
    raise StepFailed(what)


def expect(holds: object, what: str) -> None:
    if not holds:
        fail(what)


@dataclass(frozen=True)
class Installation:
    """The command under test, the Python that it runs on, and a scratch directory."""

    command: str
    python: str
    place: Path
    docs: Path | None

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ZOMBIESCOPE_", "PYTHON"))}
        return {
            **kept, "HOME": str(self.place), "LANG": "C.UTF-8", "COLUMNS": "80",
            "ZOMBIESCOPE_RUNTIME_DIR": str(self.place / "run"),
        }  # fmt: skip

    @property
    def demo(self) -> str:
        recording = self.place / "case" / "recording"
        if not recording.is_dir():
            raise NotRun("there is no demo recording")
        return str(recording)

    def run(self, *arguments: str) -> str:
        return self._output([self.command, *arguments], f"zombiescope {' '.join(arguments)}", FOUND)

    def document(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def script(self, code: str, what: str) -> str:
        return self._output([self.python, "-c", code], what)

    def has(self, module: str) -> bool:
        probe = [self.python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"]
        return subprocess.run(probe, env=self.environment, cwd=self.place, timeout=COMMAND_S).returncode == 0

    def need(self, module: str, extra: str) -> None:
        if not self.has(module):
            raise NotRun(f"the extra {extra} is not installed")

    def _output(self, argv: list[str], what: str, accepted: tuple[int, ...] = (0,)) -> str:
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, env=self.environment, cwd=self.place, timeout=COMMAND_S,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            fail(f"{what}: not done after {COMMAND_S:.0f} s")
        if done.returncode not in accepted:
            fail(f"{what}: exit {ended(done.returncode)}: {last_lines(done.stderr)}")
        return done.stdout

    @contextmanager
    def running(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """A command that runs until it is stopped, and the file with what it printed."""
        log = self.place / f"{arguments[0]}.log"
        with log.open("wb") as output, subprocess.Popen(
            [self.command, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.environment,
            cwd=self.place,
        ) as process:  # fmt: skip
            try:
                yield process, log
            finally:
                stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def ended(code: int) -> str:
    return str(code) if code >= 0 else f"by {signal.Signals(-code).name}"


def last_lines(text: str) -> str:
    return " | ".join(text.strip().splitlines()[-3:])[-400:] or "no message"


def until(what: str, ready: Callable[[], Any], process: subprocess.Popen[bytes], log: Path) -> Any:
    """What `ready` answers, as soon as that is true."""
    end = time.monotonic() + READY_S
    while not (answer := ready()):
        if process.poll() is not None:
            fail(f"{what}: it exited {ended(process.returncode)}: {last_lines(log.read_text(errors='replace'))}")
        if time.monotonic() > end:
            fail(f"{what}: not within {READY_S:.0f} s: {last_lines(log.read_text(errors='replace'))}")
        time.sleep(0.1)
    return answer


def get(address: str) -> tuple[int, str]:
    """Status and text (bytes of a binary answer are replaced); (0, why) if nothing answers."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)


def expect_founding_case(document: dict[str, Any], what: str) -> None:
    expect(document["incidents"], f"{what}: no incident")
    cause = document["incidents"][0]["causes"][0]
    found = (cause["pattern"], cause["culprit"]["unit"])
    expect(found == (PATTERN, CULPRIT), f"{what}: the cause is {found}, not {(PATTERN, CULPRIT)}")


# --- the steps: each returns what it saw -----------------------------------------------------------------------------


def version(here: Installation) -> str:
    shown = here.run("--version").split()[-1]
    expect(re.fullmatch(r"\d+\.\d+\.\d+\S*", shown), f"not a version: {shown}")
    return shown


def demo(here: Installation) -> str:
    expect_founding_case(here.document("demo", "--output", str(here.place / "case")), "demo")
    return f"{PATTERN}, {CULPRIT}"


def diagnose(here: Installation) -> str:
    expect_founding_case(here.document("diagnose", here.demo), "diagnose")
    report = here.place / "report.html"
    here.run("diagnose", here.demo, "-o", str(report))
    expect(CULPRIT in report.read_text(), "the HTML report does not name the culprit")
    return "the same cause; HTML report"


def flamegraph(here: Installation) -> str:
    for suffix in ("html", "svg", "txt"):
        picture = here.place / f"flames.{suffix}"
        here.run("flamegraph", here.demo, "-o", str(picture))
        shown = frozen_answers(picture) if suffix == "html" else picture.read_bytes()
        expect(HOT_FUNCTION.encode() in shown, f"{picture.name} does not show {HOT_FUNCTION}")
    return "html, svg, txt"


def frozen_answers(page: Path) -> bytes:
    """What a page that was written to a file holds: the answers of the server, compressed."""
    frozen = re.search(r'<script [^>]*id="frozen"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    if frozen is None:
        fail(f"{page.name} holds no answers")
    return b"".join(gzip.decompress(base64.b64decode(answer)) for answer in json.loads(frozen[1])["answers"].values())


def heatmap(here: Installation) -> str:
    shown = here.document("heatmap", here.demo)
    expect(shown["total"] > 0, "the heat map holds no sample")
    for suffix in ("html", "svg"):
        picture = here.place / f"heat.{suffix}"
        here.run("heatmap", here.demo, "-o", str(picture))
        expect(picture.stat().st_size > 1000, f"{picture.name} has {picture.stat().st_size} bytes")
    return f"{shown['total']:,} samples; html, svg"


def views(here: Installation) -> str:
    names = {"cores": "cores", "events": "events", "stacks": "who", "info": "tables"}
    for command, rows in names.items():
        expect(here.document(command, here.demo)[rows], f"{command}: no rows")
    return ", ".join(names)


def export(here: Installation) -> str:
    formats = ("collapsed", "speedscope", "pprof")
    for format_ in formats:
        file = here.place / f"exported.{format_}"
        here.run("export", here.demo, "--format", format_, "-o", str(file))
        expect(file.stat().st_size > 100, f"{format_}: {file.stat().st_size} bytes")
    return ", ".join(formats)


def pack(here: Installation) -> str:
    packed = here.place / "case.zscope"
    here.run("pack", here.demo, "-o", str(packed))
    expect_founding_case(here.document("diagnose", str(packed)), "diagnose of the pack")
    return "the same cause in the pack"


def compact(here: Installation) -> str:
    copy = here.place / "rec"
    shutil.copytree(here.demo, copy)
    here.run("compact", str(copy))
    expect(list(copy.rglob("*.parquet")), "compact wrote no Parquet file")
    expect_founding_case(here.document("diagnose", str(copy)), "diagnose of the Parquet files")
    return "the same cause in the Parquet files"


def python_api(here: Installation) -> str:
    code = f"""
        import zombiescope
        recording = zombiescope.open({here.demo!r})
        cause = recording.diagnose().incidents[0]["causes"][0]
        print(recording.table("cores").num_rows > 0, cause["pattern"], cause["culprit"]["unit"])
    """
    shown = here.script(textwrap.dedent(code), "the Python interface").split()
    expect(shown == ["True", PATTERN, CULPRIT], f"the Python interface shows {shown}")
    return "table, diagnosis"


SNIPPETS = {"Python": ("pandas",), "Notebook": (), "pandas": ("pandas",), "DuckDB": ("duckdb",)}
"""Heading of docs/python.md -> the packages that its code needs. Polars and Spark: make test-engines."""


def python_page(here: Installation) -> str:
    if here.docs is None:
        raise NotRun("no docs page: --docs docs/python.md")
    if not (here.place / "rec").is_dir():
        raise NotRun("the compacted recording is missing")
    done, left = [], []
    for heading, packages in SNIPPETS.items():
        if missing := [name for name in packages if not here.has(name)]:
            left.append(f"{heading} (no {missing[0]})")
            continue
        here.script(snippet(here.docs, heading), f"{here.docs.name}, {heading}")
        done.append(heading)
    if not done:
        raise NotRun(", ".join(left))
    return ", ".join(done) + (f"; not run: {', '.join(left)}" if left else "")


def snippet(page: Path, heading: str) -> str:
    """All indented blocks below a heading of the second level, as one program."""
    section = page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    code = "\n".join(line for line in section.splitlines() if line.startswith("    ") or not line.strip())
    expect(code.strip(), f"{page} has no code below {heading}")
    return textwrap.dedent(code)


def serve(here: Installation) -> str:
    with here.running("serve", here.demo, "--listen", "127.0.0.1:0", "--no-token") as (server, log):
        printed = until("serve prints its address", lambda: re.search(r"http://[0-9.:]+", log.read_text()), server, log)
        base = printed[0]
        status, page = get(base + "/")
        expect(status == 200 and '<div id="app">' in page, f"/ answers {status}")
        parts = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page)
        expect(parts, "the page names no script")
        for name in parts:
            expect(len(get(f"{base}/{name}")[1]) > 1000, f"/{name} is missing")
        for path in ("/api/v1/incidents", "/api/v1/flamegraph"):
            status, text = get(base + path)
            expect(status == 200, f"{path} answers {status}: {text[:200]}; {last_lines(log.read_text())}")
            expect((CULPRIT if "incidents" in path else HOT_FUNCTION) in text, f"{path} lacks the founding case")
        expect(server.poll() is None and get(base + "/")[0] == 200, "the server ended after it was asked")
    return f"page, {len(parts)} assets, /api/v1/incidents, /api/v1/flamegraph"


def record(here: Installation) -> str:
    """Records, takes a mark from the command and one from Python, and reads both back."""
    recording, texts = str(here.place / "recorded"), ("by the command", "by Python")
    with here.running("record", recording, "--for", "12s", "--json") as (recorder, log):
        until("the recorder takes a mark", lambda: _marked(here, texts[0]), recorder, log)
        code = f"import zombiescope; print(zombiescope.mark({texts[1]!r}))"
        expect(here.script(code, "zombiescope.mark").strip() == "True", "zombiescope.mark: no recorder took the mark")
        recorder.wait(45)
        expect(recorder.returncode == 0, f"record exits {ended(recorder.returncode)}: {last_lines(log.read_text())}")
    document = next(json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    expect(document["ticks"] >= 1, "no tick was recorded")
    expect(here.document("info", recording)["cpus"], "the recording has no cores")
    shown = json.dumps(here.document("events", recording))
    for text in texts:
        expect(text in shown, f"the mark {text!r} is not among the events")
    here.document("diagnose", recording)
    return f"{document['ticks']} ticks, two marks, diagnosed"


def _marked(here: Installation, text: str) -> bool:
    argv = [here.command, "mark", text]
    return (
        subprocess.run(argv, env=here.environment, cwd=here.place, capture_output=True, timeout=COMMAND_S).returncode
        == 0
    )


def check(here: Installation) -> str:
    shown = here.document("check", "--for", "3s")
    expect(shown["verdict"]["text"], "check has no verdict")
    expect(shown["seconds"] >= 2, f"check observed {shown['seconds']} s")
    return f"{shown['seconds']:.1f} s observed: {shown['verdict']['severity']}"


def agent(here: Installation) -> str:
    here.need("yaml", "agent")
    here.need("prometheus_client", "agent")
    port = free_port()
    config = here.place / "agent.yaml"
    config.write_text(
        f"recorder: {{dir: {here.place / 'agent-rec'}, node: here}}\nmetrics: {{listen: '127.0.0.1:{port}'}}\n"
    )
    here.run("agent", "--config", str(config), "--check-config")
    with here.running("agent", "--config", str(config)) as (process, log):
        base = f"http://127.0.0.1:{port}"
        until("/healthz answers 200", lambda: get(base + "/healthz")[0] == 200, process, log)
        until("/readyz answers 200", lambda: get(base + "/readyz")[0] == 200, process, log)
        metrics = get(base + "/metrics")[1]
        names = {line.split("{")[0].split()[0] for line in metrics.splitlines() if line.startswith("zombiescope_")}
        expect("zombiescope_agent_recorder_starts" in names, f"/metrics has {len(names)} metrics and not ours")
    expect(
        process.returncode == 0, f"SIGTERM: the agent exits {ended(process.returncode)}: {last_lines(log.read_text())}"
    )
    return f"/healthz, /readyz, {len(names)} metrics"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def fleet(here: Installation) -> str:
    here.need("duckdb", "fleet")
    shown = here.document("fleet", "report", here.demo, "--last", "all", "--results", str(here.place / "results"))
    expect(len(shown["nodes"]) == 1, f"the fleet has {len(shown['nodes'])} nodes")
    return "report of one node"


@dataclass(frozen=True)
class Step:
    run: Callable[[Installation], str]
    limit_s: float
    core: bool = False
    """Whether `--core` runs it."""

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", "-")


STEPS = (
    Step(version, 30, core=True), Step(demo, 90, core=True), Step(diagnose, 90, core=True),
    Step(flamegraph, 90, core=True), Step(heatmap, 90), Step(views, 90), Step(export, 90), Step(pack, 90),
    Step(compact, 90), Step(python_api, 60, core=True), Step(python_page, 180), Step(serve, 120, core=True),
    Step(record, 120), Step(check, 60, core=True), Step(agent, 150), Step(fleet, 90),
)  # fmt: skip


OUTCOMES = ("ok", "not run", "FAILED")


@dataclass(frozen=True)
class Result:
    step: str
    outcome: str
    seconds: float
    note: str


def perform(step: Step, here: Installation) -> Result:
    """Runs one step; whatever happens in it is its result."""
    began = time.monotonic()
    try:
        with limited(step.limit_s):
            outcome, note = "ok", step.run(here)
    except NotRun as why:
        outcome, note = "not run", str(why)
    except StepFailed as why:
        outcome, note = "FAILED", str(why)
    except Exception as error:  # noqa: BLE001  an answer of an unexpected shape is a failure of this step only
        outcome, note = "FAILED", f"{type(error).__name__}: {error}"
    return Result(step.name, outcome, time.monotonic() - began, " ".join(note.split()))


@contextmanager
def limited(limit_s: float) -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise StepFailed(f"not done after {limit_s:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def table(results: list[Result]) -> str:
    width = max(len(result.step) for result in results)
    return "\n".join(
        f"  {one.step:<{width}}  {one.outcome:<7}  {one.seconds:5.1f} s  {one.note}".rstrip() for one in results
    )


def summary(results: list[Result]) -> str:
    """ "acceptance: 12 ok, 2 not run, 2 failed (demo, serve)"."""
    by_outcome = {name: [one.step for one in results if one.outcome == name] for name in OUTCOMES}
    counts = [f"{len(steps)} {name.lower()}" for name, steps in by_outcome.items() if steps]
    failed = by_outcome["FAILED"]
    return f"acceptance: {', '.join(counts)}" + (f" ({', '.join(failed)})" if failed else "")


def chosen(names: str | None, core: bool) -> list[Step]:
    wanted = names.split(",") if names else [step.name for step in STEPS if step.core or not core]
    if unknown := set(wanted) - {step.name for step in STEPS}:
        sys.exit(
            f"acceptance: no step {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in STEPS)}"
        )
    return [step for step in STEPS if step.name in wanted]


def interpreter(command: str) -> str:
    """The Python next to the command."""
    for name in ("python3", "python"):
        if (Path(command).parent / name).exists():
            return str(Path(command).parent / name)
    real = Path(command).resolve().parent / "python3"
    return str(real) if real.exists() else sys.executable


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="acceptance.py", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("command", metavar="COMMAND", help="the installed zombiescope")
    parser.add_argument("--python", help="the Python that it runs on (default: the one next to COMMAND)")
    parser.add_argument("--steps", metavar="NAME,...", help="run only these steps")
    parser.add_argument(
        "--core", action="store_true", help="run the short list: " + ", ".join(s.name for s in STEPS if s.core)
    )
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="run the code of this copy of docs/python.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    given = parser.parse_args(arguments)
    command = os.path.abspath(given.command)  # noqa: PTH100  a link in bin/ is not resolved: the Python is next to it
    with tempfile.TemporaryDirectory(prefix="zombiescope-acceptance-") as place:
        docs = given.docs.resolve() if given.docs else None
        here = Installation(command, given.python or interpreter(command), Path(place), docs)
        results = []
        for step in chosen(given.steps, given.core):
            print(f"{step.name} ...", file=sys.stderr, flush=True)
            results.append(perform(step, here))
    print(table(results))
    if given.json:
        given.json.write_text(json.dumps([vars(result) for result in results]))
    print(summary(results))
    return int(any(result.outcome == "FAILED" for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

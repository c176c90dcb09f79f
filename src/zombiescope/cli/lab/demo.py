"""`zombiescope lab demo`: the story in two minutes, on this machine and for real.

Zombies leak, somebody makes the kernel walk them and holds a core, the doctor names who leaks them, `fix` suspends that
and lets the zombies go, and verifies it; and the core is free again. Every number is read from this machine when it is
printed.
"""

from __future__ import annotations

import os
import shutil
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.lab.repair import census, incident_of, repair
from zombiescope.cli.lab.scenarios import Yes, allowed, ask, end_in_order, named
from zombiescope.cli.output import console, examples
from zombiescope.cli.serve import has_display, may_show

if TYPE_CHECKING:
    from zombiescope.cli.private_recorder import PrivateRecorder
    from zombiescope.diagnosis.diagnose import Diagnosis
    from zombiescope.lab.scenario_run import ScenarioRun
    from zombiescope.lab.verdict import Found

EXAMPLES = examples("lab demo     # says what it will do, and asks", "lab demo --yes")

SCENARIO = "zombie-supervisor"
NAMED_S = 40.0
HURTS_S = 8.0
REPAIRED_S = 60.0
"""At most, with the verification."""
Say = Callable[[str], None]


def command(
    yes: Yes = False,
    open_: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Show it in a browser while it runs. Default: if there is a display.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Cause a real zombie leak, diagnose it, repair it and verify it. Under two minutes, as root.

    Runs the scenario zombie-supervisor in its own cgroups and removes it again. The recording and a report stay in
    ~/.local/state/zombiescope/lab-demo.
    """
    scenario = named(SCENARIO)
    allowed(scenario)
    ask([scenario], yes)
    end_in_order()
    _tell_it(has_display() if open_ is None else open_)


def _tell_it(open_: bool) -> None:
    from zombiescope.cli import page_process
    from zombiescope.cli.private_recorder import private_recorder
    from zombiescope.lab.scenario_run import stage

    out = console()

    def say(text: str) -> None:
        out.print(f"{time.strftime('%H:%M:%S')}  {text}", soft_wrap=True)

    before = census()
    with private_recorder("lab", diagnose=True) as recorder:
        if open_:
            page_process.start(str(recorder.home), open_=True)
        say(f"recording; {before} memory cgroups are tracked; the kernel has {_kernel()} of a core at most")
        say("a supervisor starts and ends containers; each leaves a page in /dev/shm ...")
        with stage(named(SCENARIO), NAMED_S + HURTS_S + REPAIRED_S) as running:
            say(f"{census() - before:,} more memory cgroups are tracked, and no directory of theirs is left: zombies")
            running.go()
            say("a process drops slab caches, for which the kernel walks every one of them")
            say(f"the kernel has {_kernel()} of one core")
            found, incident = _until_named(recorder, running, say)
            _repair(recorder, incident, say)
            left = max(0, census() - before)
        say(f"{left:,} of the zombies are left; the kernel has {_kernel()} of a core at most")
        place = _keep(recorder)
    _report(place, running.began_us, found, say)
    if open_ and may_show(str(place / "report.html")):
        webbrowser.open((place / "report.html").as_uri())  # the page went with the recorder; this one stays


def _until_named(recorder: PrivateRecorder, running: ScenarioRun, say: Say) -> tuple[Found, str | None]:
    """What was found, and the id of the incident that says so."""
    from zombiescope.lab import verdict

    scenario = named(SCENARIO)
    while True:
        past_s = time.time() - running.began_us / 1e6
        known = incidents_of(recorder)
        found = verdict.best_match(scenario, known, running.began_us / 1e6, time.time() + 60)
        right = verdict.right_pattern(scenario, found) and verdict.right_culprit(scenario, found)
        if right or past_s > NAMED_S:
            say(f"named after {past_s:.1f} s: {found.summary}" if right else "the live diagnosis did not name it")
            if plan := _plan(known, found):
                say(f"its plan: {plan}")
            time.sleep(max(0.0, HURTS_S - past_s))
            return found, incident_of(known, found) if right else None
        time.sleep(0.2)


def _repair(recorder: PrivateRecorder, incident: str | None, say: Say) -> None:
    """By the very command that a person would type."""
    if incident is None:
        say("repair: nothing was named, so what was started is only ended")
        return
    _tell_verdict(repair(recorder, SCENARIO, incident, say), say)


def _tell_verdict(said: dict[str, Any], say: Say) -> None:
    checked = said.get("verification") or {}
    say(str(checked.get("verdict", "can't tell")))
    for check in checked.get("checks", ()):
        say(f"  {check['text']}")


def incidents_of(recorder: PrivateRecorder) -> list[dict[str, Any]]:
    from zombiescope.diagnosis.order import worst_first
    from zombiescope.store import incident_file

    return worst_first(incident_file.read(recorder.node_dir))


def _plan(known: list[dict[str, Any]], found: Found) -> str | None:
    causes = [cause for incident in known for cause in incident["causes"]]
    return next((cause["fix"]["summary"] for cause in causes if cause["summary"] == found.summary), None)


def _kernel() -> str:
    """What the kernel had, in half a second, of the core where it had most."""
    from zombiescope.kernel.procfile import read_file

    def spent() -> dict[str, tuple[int, int]]:
        rows = (read_file("/proc/stat") or b"").decode().splitlines()
        cores = [row.split() for row in rows if row.startswith("cpu") and row[3:4].isdigit()]
        return {row[0]: (sum(map(int, row[1:9])), int(row[3]) + int(row[6]) + int(row[7])) for row in cores}

    first = spent()
    time.sleep(0.5)
    used = [
        (kernel - first[cpu][1]) / max(1, total - first[cpu][0])
        for cpu, (total, kernel) in spent().items()
        if cpu in first
    ]
    return f"{max(used, default=0) * 100:.0f}%"


def _keep(recorder: PrivateRecorder) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    place = Path(state).expanduser() / "zombiescope" / "lab-demo"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(recorder.home, place, ignore=shutil.ignore_patterns("run", "stderr"))
    return place


def _report(place: Path, began_us: int, found: Found, say: Say) -> None:
    from zombiescope.cli import picture
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.questions.window import WHOLE
    from zombiescope.store.reader import open_recording
    from zombiescope.web import report

    with open_recording(place) as recording:
        window = WHOLE.choose(recording)
        seen: Diagnosis = diagnose(recording, began_us, window.end_us)
        heading = f"{recording.name}  {window.heading()}"
        picture.write_page(place / "report.html", lambda: report.of_diagnosis(recording, seen, heading, window))
        at = window.clock(began_us)
    say(f"the report: {place / 'report.html'}")
    out = console()
    out.print()
    out.print("look at it yourself", style="bold")
    for line in (f"diagnose {place} --at {at}", f"flamegraph {place} --at {at}", f"heatmap {place} --by core",
                 f"cgroups {place}"):  # fmt: skip
        out.print(f"  zombiescope {line}")
    if found.pattern is None:
        raise Failure("the live diagnosis did not name the cause in time", "try again when the machine is less busy")

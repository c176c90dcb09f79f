"""`zombiescope lab score --hold-out`: every stressor of stress-ng, one after the other, in a cage.

A scan of two seconds finds who holds half a core in the kernel; each of those is recorded once, for ten seconds. What
was measured (run.json) and the recording are kept in DIR/NAME, so that a round can be resumed where it was broken off,
and so that a changed diagnosis is tried on the same recordings without running anything again.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.base import python as _python
from zombiescope.cli.failure import Failure
from zombiescope.cli.private_recorder import private_recorder
from zombiescope.lab import hold_out, stressors
from zombiescope.lab.cage import PATIENCE_S, mark
from zombiescope.lab.sandbox import MARK

if TYPE_CHECKING:
    from zombiescope.diagnosis.sample_index import SampledTask
    from zombiescope.store.reader import Recording

Document = dict[str, Any]

SCAN_S = 2
RUN_S = 10
PROMISING = 0.4
"""Of a core in the kernel, in the scan: a little less than what counts, because two seconds are short."""
BEFORE_S, AFTER_S = 5.0, 1.5
"""What the machine is like without it, for long enough to tell what is new; and a recorder writes a frame a second."""
ALONE = "alone"
QUIET_CORES = 0.25
"""Below it the machine did nothing else before the stressor began. Where it did, that is said, whoever it was."""
_CLEANED_S = 60.0


def rows(
    directory: Path, names: list[str], beside: str | None, told: Callable[[str], None], most_s: float | None = None
) -> Iterator[Document]:
    """One for each stressor that may run; what was run before is only diagnosed again. After `most_s` seconds nothing
    new is begun."""
    began = time.monotonic()
    for name in names:
        told(name)
        place = _place(directory, name, beside)
        run = _kept(place)
        if run is None and most_s is not None and time.monotonic() - began >= most_s:
            yield hold_out.not_yet(name, beside or ALONE)
        else:
            scanned = None if beside is None else _kept(_place(directory, name, None))
            yield row(place, run or _performed(place, name, beside, scanned))


def is_kept(directory: Path, name: str, beside: str | None) -> bool:
    return _kept(_place(directory, name, beside)) is not None


def _place(directory: Path, name: str, beside: str | None) -> Path:
    return directory / (name if beside is None else f"{name}@{beside}")


def chosen(only: str | None) -> list[str]:
    """Raises Failure for one that does not exist or is never run."""
    known = stressors.every()
    wanted = known if only is None else [name.strip() for name in only.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise Failure(f"{name!r} is not a stressor of stress-ng {stressors.version()}", "stress-ng --stressors")
        if only is not None and name in stressors.EXCLUDED:
            raise Failure(f"{name} is never run: it {stressors.EXCLUDED[name]}")
    return [name for name in wanted if name not in stressors.EXCLUDED]


# --- running ---------------------------------------------------------------------------------------------------------


def _kept(place: Path) -> Document | None:
    try:
        found: Document = json.loads((place / "run.json").read_text())
    except (OSError, ValueError):
        return None
    return found


def _performed(place: Path, name: str, beside: str | None, scanned: Document | None) -> Document:
    """`scanned` is the run without a background: what it was found to hold need not be found again."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    scan: Document = scanned["scan"] if scanned is not None else _caged(name, SCAN_S)
    run: Document = {"stressor": name, "beside": beside or ALONE, "scan": scan, "run": None}
    if _cores(scan, SCAN_S) >= PROMISING:
        run |= _recorded(place, name, beside)
    aside = place / "run.json.new"
    aside.write_text(json.dumps(run, indent=1) + "\n")
    aside.replace(place / "run.json")  # last: without it the stressor is run again
    return run


def _recorded(place: Path, name: str, beside: str | None) -> Document:
    with private_recorder("lab") as recorder, _background(beside):
        others = _busy_cores(BEFORE_S)
        began_s = time.time()
        run = _caged(name, RUN_S)
        ended_s = time.time()
        time.sleep(AFTER_S)
        recorder.ended()
        shutil.copytree(recorder.home, place / "recording", ignore=shutil.ignore_patterns("run", "stderr"))
    return {
        "run": run, "began": began_s, "ended": ended_s, "others_cores": round(others, 2),
        "version": stressors.version(), "kernel": platform.release(), "cores": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def _caged(name: str, seconds: int) -> Document:
    """What the cage reported at its end."""
    with subprocess.Popen(  # noqa: S603  our own interpreter, our own module
        _python.module("zombiescope.lab.cage", name, str(seconds)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=_python.environment(),
    ) as process:  # fmt: skip
        try:
            out, errors = process.communicate(timeout=seconds + PATIENCE_S + _CLEANED_S)
        except BaseException:
            process.terminate()  # it cleans up, and then ends
            process.wait(_CLEANED_S)
            raise
    if process.returncode:
        raise Failure(f"{name} was not cleaned up: {errors.strip()[-200:]}", "zombiescope lab clean")
    found: Document = json.loads(out.splitlines()[-1])
    return found


@contextmanager
def _background(beside: str | None) -> Iterator[None]:
    """A healthy load of the laboratory that runs meanwhile."""
    from zombiescope.lab.scenario import by_id
    from zombiescope.lab.scenario_run import stage

    healthy = nullcontext() if beside is None else stage(by_id(beside), BEFORE_S + RUN_S + PATIENCE_S + AFTER_S)
    with healthy as running:
        if running is not None:
            running.go()
            time.sleep(1.0)
        yield


def _busy_cores(seconds: float) -> float:
    """What all programs together use."""
    first = _busy_s()
    time.sleep(seconds)
    return max(0.0, (_busy_s() - first) / seconds)


def _busy_s() -> float:
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _iowait, irq, softirq = map(int, words[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


# --- diagnosing ------------------------------------------------------------------------------------------------------


def row(place: Path, run: Document) -> Document:
    """What is published of one run."""
    name, measured = run["stressor"], run["run"] or run["scan"]
    cores = _cores(measured, RUN_S if run["run"] else SCAN_S)
    made: Document = {
        "stressor": name,
        "beside": run["beside"],
        "system_cores": round(cores, 2),
        "held": run["run"] is not None and cores >= hold_out.LEAST_CORES,
        "skipped": measured["said"],
    }
    if not made["held"]:
        return made
    if run["beside"] == ALONE:
        made["beside"] = "nothing" if run["others_cores"] < QUIET_CORES else "what else ran"
    at_limit = bool(measured["at_limit"])
    made |= {key: run[key] for key in ("others_cores", "version", "cores", "date")}
    made["kernel"] = run["kernel"].partition("-")[0]
    accepts = stressors.accepted(name, at_limit=at_limit, refused=bool(measured.get("processes_refused")))
    made |= {"at_limit": at_limit, **_diagnosed(place / "recording", run, accepts)}
    return made


def _cores(measured: Document, seconds: int) -> float:
    return float(measured.get("system_s", 0.0)) / seconds


def _diagnosed(directory: Path, run: Document, accepts: frozenset[str]) -> Document:
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.diagnosis.kernel_entry import asked
    from zombiescope.diagnosis.report.document import document
    from zombiescope.store.reader import open_recording

    with open_recording(directory) as recording:
        calls = _calls(recording, run)
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
        incidents = [one for one in document(found)["incidents"] if float(one["to"]) > run["began"]]
    for incident in incidents:
        for cause in incident["causes"]:
            cause["asked"] = asked(tuple(cause["frames"]))
    return {**hold_out.verdict(run["stressor"], incidents, calls, accepts), "calls": hold_out.top_calls(calls)}


def _calls(recording: Recording, run: Document) -> dict[str, float]:
    """What the stressor's own samples were in the kernel for: by their cgroup, or by the name of a child that was gone
    before anybody looked. Getting into the kernel and out again is no call."""
    from zombiescope.diagnosis.facts import Facts

    facts = Facts(recording, int(run["began"] * 1e6), int(run["ended"] * 1e6))
    grid, cage = facts.samples, f"/{MARK}{mark(run['stressor'])}"
    group, names = grid.groups(lambda task: "mine" if _is_mine(task, cage) else None)
    if not names:
        return {}
    counted = grid.profile(group == 0).calls()
    total = counted.total()
    return {name: count / total for name, count in counted.items()}


def _is_mine(task: SampledTask, cage: str) -> bool:
    return cage in task.cgroup if task.cgroup else (task.comm or "").startswith(stressors.PROGRAM)

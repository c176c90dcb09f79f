"""The environment of a training job: zombiescope-mark changes nothing in it, and its mark arrives at the recorder.

The recorder runs in its own environment, as docs/ray.md says: next to the pins of a job, pip would replace numpy.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

from tests.lanes import acceptance, environment
from tests.lanes.environment import Environment

PINS = ("numpy==1.26.4", "pandas==1.5.3")
"""Below the minima of zombiescope, as in Ray's images of 2025."""
TEXT = "a mark from the job"


def changed(job: Environment) -> dict[str, str | None]:
    """What installing zombiescope-mark changed in the job's environment: package -> version."""
    before = job.versions()
    job.pip("install", str(environment.mark_wheel()))
    after = job.versions()
    return {name: after.get(name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def made(interpreter: str) -> Environment:
    """An environment with the packages of a job and without zombiescope."""
    here = Environment(environment.PLACE / "job")
    environment.run([interpreter, "-m", "venv", "--clear", str(here.place)])
    here.pip("install", "--only-binary", ":all:", *PINS)
    return here


def mark_arrives(recorder: Environment, job: Environment) -> bool:
    """Whether a recorder in its own environment shows the mark that the job's environment sent."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-job-") as place:
        here = acceptance.Installation(recorder.command, recorder.python, Path(place), None)
        recording = f"{place}/recorded"
        with here.running("record", recording) as (process, log):
            acceptance.until("the recorder takes the mark", lambda: _sent(job, here), process, log)
            time.sleep(3)  # the log is written every two seconds
        return TEXT in json.dumps(here.document("events", recording))


def _sent(job: Environment, here: acceptance.Installation) -> bool:
    code = f"import pandas; from zombiescope_mark import mark; print(mark({TEXT!r}))"
    done = subprocess.run(
        [job.python, "-c", code], env=here.environment, cwd=here.place, capture_output=True, text=True, check=True,
        timeout=acceptance.COMMAND_S,
    )  # fmt: skip
    return done.stdout.strip() == "True"

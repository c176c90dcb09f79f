"""The recorder's own process: `python -m zombiescope.recorder '<json>'`, started by `zombiescope record`, which has
become it."""

from __future__ import annotations

import json
import os
import select
import sys
from contextlib import suppress
from pathlib import Path

from zombiescope._text import printable
from zombiescope.recorder import announce
from zombiescope.recorder.config import RecorderConfig, parse
from zombiescope.recorder.loop import Loop
from zombiescope.recorder.recorder import Recorder
from zombiescope.recording import locate
from zombiescope.recording.lock import AlreadyRecordingError

SETTLE_MS = 300


def _say(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(printable(line) + "\n")
        sys.stderr.flush()


def _publish(runtime: Path, recorder: Recorder) -> Path | None:
    """Lets other commands find the running recorder."""
    path = runtime / "recorder.json"
    marks = recorder.intake.marks
    said = {
        "pid": os.getpid(),
        "recording": str(recorder.node_dir.parent),
        "node": recorder.name,
        "started_us": recorder.started_us,
        "mark_socket": str(marks.path) if marks is not None else None,
    }
    try:
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(said))
        aside.chmod(0o644)
        aside.replace(path)
    except OSError:
        return None
    return path


def _withdraw(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError, ValueError):
            if json.loads(path.read_text()).get("pid") == os.getpid():
                path.unlink()


def record(config: RecorderConfig) -> int:
    try:
        recorder = Recorder(config)
    except AlreadyRecordingError as error:
        _say(f"zombiescope: {error}")
        return 1
    except OSError as error:
        if error.filename is None:
            _say(f"zombiescope: cannot start: {error.strerror or error}")
        else:
            remedy = "choose a directory that you may write to"
            _say(f"zombiescope: cannot record into {error.filename}: {error.strerror}; {remedy}")
        return 1
    runtime = locate.runtime_directory()
    recorder.open_marks(runtime)
    published = _publish(runtime, recorder)
    select.poll().poll(SETTLE_MS)  # long enough for the system bus to answer, or not
    recorder.settle_sources()
    if not config.quiet:
        for line in announce.started(recorder):
            _say(line)
    loop = Loop(recorder)
    try:
        loop.run()
    finally:
        recorder.close()
        _withdraw(published)
    result = recorder.summary(loop.startup_cpu_s, loop.cpu_s)
    lines = [announce.result_json(result)] if config.json else announce.ended(result)
    with suppress(BrokenPipeError):
        for line in lines:
            sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()
    return 0


def main() -> int:
    if len(sys.argv) != 2:
        _say("zombiescope.recorder is started by `zombiescope record`")
        return 2
    try:
        config = parse(sys.argv[1])
    except (ValueError, TypeError) as error:
        _say(f"zombiescope: {error}")
        return 2
    return record(config)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Worker threads may hang in a read of /proc that never returns: do not wait for them.
    os._exit(code)

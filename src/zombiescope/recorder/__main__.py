"""The recorder's own process: `python -m zombiescope.recorder '<json>'`, started by `zombiescope record`, which has
become it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

from zombiescope.base import helper as _helper
from zombiescope.base import interrupt, safe_files
from zombiescope.base.errors import UserError
from zombiescope.base.text import printable
from zombiescope.recorder import announce, priority
from zombiescope.recorder.config import RecorderConfig, parse
from zombiescope.recorder.loop import Loop
from zombiescope.recorder.page import settings
from zombiescope.recorder.recorder import Recorder
from zombiescope.recorder.result import summary
from zombiescope.store import locate, process_identity

SETTLE_MS = 300
_COMMAND = "sudo "


def _say(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(_wrapped(printable(line)) + "\n")
        sys.stderr.flush()


def _wrapped(line: str) -> str:
    """On a terminal between words, below where the text begins; a line with a command to paste stays whole."""
    label = re.match(r" *(?:[a-z]+: +)?", line)
    if label is None or not label[0] or _COMMAND in line or not sys.stderr.isatty():
        return line
    import textwrap

    columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    indent = " " * min(label.end(), columns // 2)
    return textwrap.fill(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _publish(runtime: Path, place: int, recorder: Recorder) -> Path | None:
    """Lets other commands find the running recorder."""
    path = runtime / locate.published_name(place)
    marks = recorder.intake.marks
    said = {
        "pid": os.getpid(),
        "recording": str(recorder.node_dir.parent),
        "node": recorder.name,
        "started_us": recorder.started_us,
        "start_ticks": process_identity.start_ticks(os.getpid()),
        "mark_socket": str(marks.path) if marks is not None else None,
    }
    try:
        safe_files.replace(path, json.dumps(said).encode())
    except OSError:
        return None
    return path


def _withdraw(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError, ValueError, RecursionError):
            if json.loads(path.read_text()).get("pid") == os.getpid():
                path.unlink()


def _page(config: RecorderConfig, recorder: Recorder) -> tuple[str, ...]:
    """What is said of the page, which is shown from now on: something is recorded."""
    if not config.page:
        return ()
    try:
        given = settings(config.page)
    except (OSError, ValueError, KeyError) as error:
        return (f"zombiescope: the page cannot be shown: {error}",)
    recorder.show_page(given)
    return given.lines


def record(config: RecorderConfig) -> int:
    if config.parent_pid is not None and not _helper.ends_with(config.parent_pid, signal.SIGTERM):
        return 1  # one that outlives its supervisor would lock out the next one
    priority.claim()
    try:
        recorder = Recorder(config)
    except UserError as error:
        _say(f"zombiescope: {error}")
        return 1
    except OSError as error:
        if error.filename is None:
            _say(f"zombiescope: cannot start: {error.strerror or error}")
        else:
            remedy = "choose a directory that you may write to"
            _say(f"zombiescope: cannot record into {error.filename}: {error.strerror}; {remedy}")
        return 1
    if config.parent_pid is not None and (why := priority.refused()) is not None:
        recorder.sources.lacks("recorder priority", why, priority.GRANT, recorder.started_us)
    page = _page(config, recorder)
    loop = Loop(recorder)
    loop.obey_signals()
    runtime = locate.runtime_directory()
    place = locate.free_place(runtime)
    recorder.open_marks(None if place is None else locate.mark_socket(runtime, place))
    published = None if place is None else _publish(runtime, place, recorder)
    recorder.heartbeats.publish_in(runtime, recorder.node_dir)
    if not config.quiet:
        recorder.heartbeats.say = _say
    select.poll().poll(SETTLE_MS)  # long enough for the system bus to answer, or not
    recorder.settle_sources()
    if not config.quiet:
        for line in (*page, *announce.started(recorder)):
            _say(line)
    try:
        loop.run()
    finally:
        recorder.close()
        _withdraw(published)
    result = summary(recorder, loop.startup_cpu_s, loop.cpu_s)
    lines = [announce.result_json(result)] if config.json else announce.ended(result)
    with suppress(BrokenPipeError):
        for line in lines:
            sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()
    return 1 if result.unwritten_seconds else 0


def main() -> int:
    interrupt.end_silently()  # until there is something to end in order
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

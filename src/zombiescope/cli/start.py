"""What the installed script `zombiescope` calls: the command line, by way of a short cut for `import`.

Reading the options of a command with typer takes a tenth of a second, in which `import` reads a perf.data of half a
million samples. A plain `import FILE... DIR` is therefore read here; whatever is not plain, a mistake above all, goes
to typer, which knows how to speak of it.

Little is imported at the top: until `main` has begun, a Ctrl-C would show where it hit.
"""

from __future__ import annotations

import sys

from zombiescope.base import interrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_VALUES = ("--kallsyms", "--symbols", "--node")
_SWITCHES = ("--json", "--inline")


def main() -> None:
    interrupt.end_silently()
    plain = plain_import(sys.argv[1:])
    if plain is not None:
        _leave(_import(*plain))
    try:
        from zombiescope.cli import main as commands
    except ModuleNotFoundError as error:  # installed without its requirements (pip install --no-deps)
        _leave(_could_not_run(error))
    commands.main()


def plain_import(arguments: Sequence[str]) -> tuple[list[str], dict[str, list[str]]] | None:
    """(files and directory, options) of an `import` that needs no typer; None for everything else."""
    if not arguments or arguments[0] != "import":
        return None
    places: list[str] = []
    options: dict[str, list[str]] = {}
    words = iter(arguments[1:])
    for word in words:
        if word in _SWITCHES:
            options[word] = []
        elif word in _VALUES:
            value = next(words, "-")
            if value.startswith("-"):
                return None
            options.setdefault(word, []).append(value)
        elif word.startswith("-") and word != "-":
            return None
        else:
            places.append(word)
    node = options.get("--node", ["node"])[-1]
    if len(places) < 2 or "/" in node or node.startswith("."):
        return None
    return places, options


def _import(places: list[str], options: dict[str, list[str]]) -> int:
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from zombiescope.base import python as _python

    _python.leave_threads_of_numpy_out()
    interrupts = interrupt.Interrupts()
    try:
        with interrupts:
            _perform(places, options)
    except KeyboardInterrupt:
        return interrupt.INTERRUPTED
    except Exception as error:  # noqa: BLE001  a person sees one line, never a traceback
        if interrupts.seen:
            return interrupt.INTERRUPTED
        return _could_not_run(error)
    return 0


def _could_not_run(error: Exception) -> int:
    """As commands.main, which cannot be imported without typer."""
    import os

    from zombiescope.base import packages
    from zombiescope.base.errors import UserError
    from zombiescope.base.text import printable
    from zombiescope.cli.failure import one_line

    if os.environ.get("ZOMBIESCOPE_DEBUG"):
        raise error
    error = packages.explained(error)
    expected = isinstance(error, (UserError, OSError))
    report = "" if expected else f" ({type(error).__name__}; this is a defect: ZOMBIESCOPE_DEBUG=1 shows where)"
    sys.stderr.write(printable(f"zombiescope: {one_line(error)}{report}") + "\n")
    return 1


def _perform(places: list[str], options: dict[str, list[str]]) -> None:
    from pathlib import Path

    from zombiescope.cli.import_run import perform, readable
    from zombiescope.imports.session import Options

    *names, directory = places
    kallsyms, node = options.get("--kallsyms"), options.get("--node")
    chosen = Options(
        kallsyms=readable(Path(kallsyms[-1])) if kallsyms else None,
        symbol_dirs=tuple(map(Path, options.get("--symbols", ()))),
        inline="--inline" in options,
        node=node[-1] if node else None,
    )
    perform(names, directory, chosen, as_json="--json" in options)


def _leave(code: int) -> None:
    """As commands.main: pyarrow, which a large import loads, may abort the interpreter's own end."""
    import os

    try:
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"zombiescope: standard output could not be written: {error.strerror}\n")
        code = code or 1
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

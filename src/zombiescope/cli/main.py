"""The entry point `zombiescope`: the list of commands, and what becomes of an error.

Exit codes: 0 done, 1 could not run, 2 wrong usage, 3 done and something was found. An error is one line on
stderr, never a traceback; ZOMBIESCOPE_DEBUG=1 shows the traceback to whoever wants to report it.
"""

from __future__ import annotations

import gc
import importlib
import keyword
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any, NoReturn

import typer

from zombiescope.base import interrupt, packages
from zombiescope.base import python as _python
from zombiescope.base.errors import QuestionError, UserError
from zombiescope.cli.application import Application
from zombiescope.cli.failure import one_line
from zombiescope.cli.output import note, paragraphs
from zombiescope.cli.renamed import current

COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start here", ("up", "check", "top", "status", "diagnose", "fix")),
    ("Record", ("record", "agent", "selftest", "mark")),
    (
        "Inspect",
        (
            "serve",
            "cores",
            "delays",
            "gpu",
            "heatmap",
            "flamegraph",
            "stacks",
            "python",
            "diff",
            "events",
            "cgroups",
            "containers",
            "history",
            "info",
        ),
    ),
    ("Explain", ("audit", "demo")),
    ("Keep", ("import", "freeze", "pack", "compact")),
    ("Share", ("export", "push", "ship", "mcp")),
    ("Explain", ("fleet",)),
    ("Try", ("lab",)),
)
"""Panel -> its commands, each a module of this package; a package is a group of commands with an `app` of its own."""

GARBAGE_AFTER = 10_000
"""Objects between two looks for cycles among them. Python's 700 are for programs that make few: a command loads six
hundred modules and makes objects of tables, next to none of them in a cycle."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"zombiescope {version('zombiescope')}\n")
        raise typer.Exit


def _zombiescope(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A flight recorder and doctor for Linux nodes: which core was starved, by which process, in which kernel function.

    Explain an incident that is over: zombiescope diagnose --at 12:03:22
    """


def application(arguments: Sequence[str] | None = None) -> Application:
    """All commands, or as much of them as this command line needs: reading the options of forty takes a tenth of a
    second. That is the command that it names; of all of them their first sentences, where it asks for nothing else."""
    app = Application(
        name="zombiescope",
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(
        epilog="New here: [bold]zombiescope demo[/bold] shows what it finds, [bold]zombiescope check[/bold] examines "
        "this node for ten seconds, [bold]zombiescope up[/bold] records it. Every command has examples in its --help."
    )(_zombiescope)
    first = arguments[0] if arguments and not os.environ.get("_ZOMBIESCOPE_COMPLETE") else None
    named = first if any(first in names for _, names in COMMANDS) else None
    is_list = first in ("-h", "--help") and len(arguments or ()) == 1
    for panel, names in COMMANDS:
        for name in names:
            if name == (named or name):
                _add(app, name, panel, is_list=is_list)
    return app


def _add(app: Application, name: str, panel: str, *, is_list: bool) -> None:
    module = importlib.import_module(f"zombiescope.cli.{name}{'_' * keyword.iskeyword(name)}")
    group: Any = getattr(module, "app", None)
    if is_list:
        said = paragraphs(module.command.__doc__) if group is None else group.info.help
        app.command(name, help=said, rich_help_panel=panel)(_listed)
    elif group is not None:
        app.add_typer(group, name=name, rich_help_panel=panel)
    else:
        from zombiescope.cli.options import expanded

        command = expanded(module.command)
        said = paragraphs(module.command.__doc__)
        app.command(name, help=said, epilog=module.EXAMPLES, rich_help_panel=panel)(command)


def _listed() -> None:
    """Stands for a command in a list of them."""


def main() -> None:
    """What the installed script calls."""
    _python.leave_current_directory_out()
    _python.leave_threads_of_numpy_out()
    gc.set_threshold(GARBAGE_AFTER)
    # A reader that went away (`| head`) ends this process quietly, as it ends every other Unix tool.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    _leave(run(sys.argv[1:] or ["--help"]))


def _leave(code: int) -> NoReturn:
    """Ends the process without the interpreter's own end.

    A thread of pyarrow may still be letting go of a file object after the read has returned. When the interpreter ends
    meanwhile, the process aborts (apache/arrow#33975; one run in ten on a busy machine with pyarrow 26). By now every
    file is closed and nothing is left to do at exit.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        note(f"zombiescope: standard output could not be written: {error.strerror}")
        code = code or 1
    sys.stderr.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    interrupts = interrupt.Interrupts() if threading.current_thread() is threading.main_thread() else None
    try:
        with interrupts or nullcontext():
            given = current(arguments)
            result = application(given)(args=given, prog_name="zombiescope", standalone_mode=False)
    except typer.TyperException as error:
        return _wrong_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return interrupt.INTERRUPTED
    except Exception as error:  # noqa: BLE001  a person sees one line, never a traceback
        return interrupt.INTERRUPTED if interrupts and interrupts.seen else _could_not_run(error)
    return result if isinstance(result, int) else 0


def _wrong_usage(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "zombiescope"
    message = " ".join(_usage_message(error).split())
    note(f"{path}: {message.rstrip('.')}; see '{path} --help'")
    return error.exit_code


def _usage_message(error: typer.TyperException) -> str:
    """What is wrong with an option, as "--option: what", whether typer found it or we did."""
    if not isinstance(error, typer.BadParameter) or not error.message:
        return error.format_message()
    given = getattr(error, "param", None)
    if given is None:
        return error.message
    name = given.opts[0] if given.param_type_name == "option" else given.metavar or given.name.upper()
    return f"{name}: {error.message}"


def _could_not_run(error: Exception) -> int:
    if os.environ.get("ZOMBIESCOPE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    error = packages.explained(error)
    expected = isinstance(error, (UserError, OSError))
    report = "" if expected else f" ({type(error).__name__}; this is a defect: ZOMBIESCOPE_DEBUG=1 shows where)"
    note(f"zombiescope: {one_line(error)}{report}")
    return 2 if isinstance(error, QuestionError) else 1


if __name__ == "__main__":
    main()

"""`zombiescope agent`: recorder, diagnosis and what a platform asks of a node, configured by one file.

It checks everything, then becomes the supervisor (execve), which does not carry the command line's modules.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.agent.optional import package
from zombiescope.base import interrupt
from zombiescope.base import python as _python
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, examples, note, print_document
from zombiescope.cli.record import writable_dir
from zombiescope.store import locate

if TYPE_CHECKING:
    from zombiescope.agent.config.load import Loaded
    from zombiescope.agent.unit_limits import Limit

EXAMPLES = examples(
    "agent                           # configured in /etc/zombiescope",
    "agent --config agent.yaml --check-config",
    "agent --listen 127.0.0.1:9400",
)


def command(
    directory: Annotated[
        str | None,
        typer.Argument(metavar="DIR", show_default=False, help="Where to record. Default: as configured."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", show_default=False, help="Default: /etc/zombiescope/agent.yaml, if it is there."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check-config", help="Name every mistake in the configuration, and end.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS:PORT",
            show_default=False,
            help="Where /metrics, /healthz and /readyz are. Default: as configured, else 127.0.0.1:9321.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to start with keys that this version does not know.")
    ] = False,
    json_: Json = False,
) -> None:
    """Record and diagnose this node as a service, with metrics and alerts.

    One YAML file configures it; environment variables (ZOMBIESCOPE_SECTION__KEY) override the file, and SIGHUP reads
    both again. If a service fails, the agent logs it and restarts it; the recorder keeps running.
    """
    package("yaml", "agent")  # before any module of the configuration, all of which read YAML
    _set_overrides(directory, listen)
    loaded = _loaded(config)
    if check:
        raise typer.Exit(_report(loaded, config, json_))
    _refuse_mistakes(loaded, strict)
    if recorder := locate.running_recorder():
        raise Failure(
            f"a recorder (pid {recorder.pid}) already records this node into {recorder.recording}",
            "one agent or recorder per node: stop it first",
        )
    _become_supervisor(loaded, config, strict)


def _set_overrides(directory: str | None, listen: str | None) -> None:
    """An option stands over the environment, which stands over the file: also when that is read again."""
    from zombiescope.agent.config.environment import variable

    for path, value in (("recorder.dir", writable_dir(directory) if directory else None), ("metrics.listen", listen)):
        if value is not None:
            os.environ[variable(path)] = value


def _loaded(config: Path | None) -> Loaded:
    from zombiescope.agent.config.load import load
    from zombiescope.agent.parts import sections

    return load(config, sections())


def _report(loaded: Loaded, config: Path | None, as_json: bool) -> int:
    """Every mistake on a line, and what the unit takes away, with its drop-in. 1: a mistake, or a key without effect;
    3: the unit defeats a setting."""
    from dataclasses import asdict

    from zombiescope.agent import unit_limits

    found = _limits(loaded)
    written = unit_limits.drop_in(found) if found else None
    code = 1 if loaded.mistakes else 3 if found else 0
    if as_json:
        document = {
            "usable": not loaded.wrong, "mistakes": [asdict(one) for one in loaded.mistakes],
            "unit": [asdict(one) for one in found], "drop_in": written,
        }  # fmt: skip
        print_document("agent", document)
        return code
    for mistake in loaded.mistakes:
        note(str(mistake))
    for limit in found:
        note(str(limit))
    if written is not None:
        note(f"systemctl edit {unit_limits.UNIT}, and write:\n\n{written}")
    if code == 0:
        note(f"{config or 'the configuration'}: nothing is wrong")
    return code


def _limits(loaded: Loaded) -> list[Limit]:
    from zombiescope.agent import unit_limits

    unit = unit_limits.installed()
    return [] if unit is None else unit_limits.limits(loaded.sections, unit)


def _refuse_mistakes(loaded: Loaded, strict: bool) -> None:
    refused = list(loaded.mistakes) if strict else loaded.wrong
    for mistake in refused:
        note(str(mistake))
    if refused:
        raise Failure(f"the configuration has {len(refused)} mistake(s)", "fix the lines above")


def _become_supervisor(loaded: Loaded, config: Path | None, strict: bool) -> None:
    section: Any = loaded.sections["recorder"]
    place = writable_dir(str(section.directory))
    node_dir = str(Path(place).resolve() / f"node={section.node_name}")
    # Under systemd only: an agent that was started by hand is not in the unit.
    limits = [str(one) for one in _limits(loaded)] if "INVOCATION_ID" in os.environ else []
    given = {
        "node_dir": node_dir,
        "recorder": {**section.arguments(), "dir": place},
        "services": {
            "config": str(config.absolute()) if config else None,
            "strict": strict,
            "node_dir": node_dir,
            "node": section.node_name,
            "limits": limits,
        },
    }
    arguments = _python.module("zombiescope.agent", json.dumps(given))
    sys.stdout.flush()
    sys.stderr.flush()
    interrupt.hold()
    try:
        os.execve(arguments[0], arguments, _python.environment())  # noqa: S606  our own interpreter, our own module
    finally:  # only where it did not become it
        interrupt.release()

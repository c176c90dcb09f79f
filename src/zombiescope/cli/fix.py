"""`zombiescope fix`: the plan for an incident or a finding; on request applied, verified, undone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base.text import printable
from zombiescope.cli.completion import incidents
from zombiescope.cli.failure import Failure
from zombiescope.cli.fix_image import ImageForm, write_image_step
from zombiescope.cli.fix_node import NodeQuestion, after_the_node, with_node
from zombiescope.cli.fix_trial import run_trial, trial_s
from zombiescope.cli.output import Json, command_line, console, examples, note, print_document
from zombiescope.cli.quantities import duration_s, within
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.cli.severity import FOUND
from zombiescope.questions.window import WindowQuestion

if TYPE_CHECKING:
    from zombiescope.diagnosis.incident import Incident
    from zombiescope.fix.log import Entry
    from zombiescope.fix.step import Step
    from zombiescope.fix.verify import Verdict
    from zombiescope.model.plans.plan import Plan
    from zombiescope.store.reader import Recording

EXAMPLES = examples(
    "fix --incident 3f2a91c0            # the plan, no change",
    "fix --incident 3f2a91c0 --apply    # asks before each step",
    "fix --finding endless-restart:ecs.service --apply --yes",
    "fix --incident 3f2a91c0 --try 2m   # an experiment: is it that?",
    "fix --incident 3f2a91c0 --undo",
    "fix --incident 3f2a91c0 --reboot --apply  # drains first",
    "fix --root /mnt/image --emit shell -o off.sh",
    "fix --incident 3f2a91c0 --json | jq -r '.steps[].command'",
)

_VERIFY_S = 60.0
_LOGGED_MAX = 100
_STYLES = {"applied": "green", "failed": "bold red", "skipped": "yellow", "undone": "cyan"}


def _window_s(text: str) -> float:
    return within(duration_s(text), 20, 3600, "20s to 1h")


def command(
    question: WindowQuestion,
    whole: NodeQuestion,
    directory: Dir = None,
    incident: Annotated[
        str | None,
        typer.Option("--incident", metavar="ID", help="An incident that `diagnose` reports.", autocompletion=incidents),
    ] = None,
    finding: Annotated[
        str | None, typer.Option("--finding", metavar="ID", help="A finding of `audit`, on this node.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do the steps, asking before each.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take back what --apply did, the last step first.")] = False,
    force_unit: Annotated[
        list[str] | None,
        typer.Option("--force-unit", metavar="NAME", help="Change this unit or container although it is protected."),
    ] = None,
    keep_unit: Annotated[
        list[str] | None,
        typer.Option("--keep-unit", metavar="NAME", help="This unit must stay: only limit how often it is started."),
    ] = None,
    verify_for: Annotated[
        float | None,
        typer.Option(
            "--verify-for",
            parser=_window_s,
            metavar="DURATION",
            help="How long the node is watched afterwards. Default: 60s.",
        ),
    ] = None,
    try_for: Annotated[
        float | None,
        typer.Option(
            "--try",
            parser=trial_s,
            metavar="DURATION",
            help="Freeze the suspect for fractions of a second, at random, and see what stops. "
            "Takes at most DURATION (30s to 30m).",
        ),
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", metavar="PATH", help="An unpacked image, as for `audit --root`.")
    ] = None,
    emit: Annotated[
        ImageForm | None,
        typer.Option(
            "--emit", help="Print a preset, shell script or Dockerfile snippet that disables the flagged units."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where --emit writes; else standard output.")
    ] = None,
    node: Node = None,
    json_: Json = False,
) -> int:
    """Show the plan that ends an incident or a finding; with --apply, carry it out.

    The plan lists what each step does, what it touches, its risk, and how to undo it. Nothing changes without
    --apply, which needs root. It logs every step, stops at the first step that fails, and then verifies the result.

    Units and containers that others need, or that carry your session, require --force-unit.
    """
    if root is not None or emit is not None or output is not None:
        if root is None or emit is None or incident is not None or apply or undo or try_for is not None or json_:
            raise typer.BadParameter(
                "--root PATH and --emit FORM go together, with --finding, --force-unit and -o only"
            )
        return write_image_step(root, emit, finding, force_unit or [], output)
    target = _target(incident, finding)
    whole.check()
    if try_for is not None:
        if apply or undo or incident is None or whole.is_asked:
            raise typer.BadParameter("--try goes with --incident, and without --apply, --undo, --drain and --reboot")
        _require_root()
        _may_ask(yes)
        with opened(directory, node) as recording:
            found = _incident(recording, incident, question)
            _require_ours(recording, found)
        return run_trial(found, directory, node, try_for, yes=yes, json_=json_)
    if apply and undo:
        raise typer.BadParameter("--apply and --undo: leave out one")
    if undo:
        return _undo(target, yes=yes, json_=json_, node_only=whole.is_asked)
    make = _planner(question, whole, directory, node, incident, finding, force_unit or [], keep_unit or [], apply=apply)
    if not apply:
        _show(_with_history(make()), None, json_, directory)
        return 0
    return _apply(make, directory, node, yes=yes, verify_s=verify_for or _VERIFY_S, json_=json_)


def _target(incident: str | None, finding: str | None) -> str:
    if (incident is None) == (finding is None):
        raise typer.BadParameter("--incident ID or --finding ID: give one of them")
    return f"incident:{incident}" if incident is not None else f"finding:{finding}"


# --- which plan ------------------------------------------------------------------------------------------------------


def _planner(
    question: WindowQuestion,
    whole: NodeQuestion,
    directory: str | None,
    node: str | None,
    incident: str | None,
    finding: str | None,
    force: list[str],
    keep: list[str],
    *,
    apply: bool,
) -> Callable[[], Plan]:
    """What makes the plan, as the machine is whenever it is called: what was recorded is read once."""
    if finding is not None:
        return lambda: with_node(_finding_plan(finding, force, keep), whole)
    from zombiescope.fix import plan_incident

    with opened(directory, node) as recording:
        live = _is_this_node(recording)
        found = _incident(recording, incident or "", question)
        if apply or whole.is_asked:
            _require_ours(recording, found)
        make = partial(plan_incident.plan, found, recording.name, live=live, force=force, keep=keep)
        return (lambda: with_node(make(), whole)) if live else make


def _is_this_node(recording: Recording) -> bool:
    """Whether it was written in the boot that runs here: a name can be another node's, too."""
    from zombiescope.fix import provenance

    return provenance.is_this_boot(recording)


def _require_ours(recording: Recording, found: Incident) -> None:
    """Raises Failure where this machine must not act on it."""
    from zombiescope.fix import provenance

    if (why := provenance.why_not(recording, found.to_us)) is not None:
        raise Failure(
            why, "without --apply and --try it shows the plan; to act, record this node as root and plan again"
        )


def _incident(recording: Recording, name: str, question: WindowQuestion) -> Incident:
    """Diagnosed again: the doctor's notes are for reading. In the window that was asked for, or around where it is
    noted; else in all of the recording."""
    from zombiescope.documents.incidents import around_incident, diagnosed

    window = question.choose(recording)
    if not question.given:
        window = around_incident(recording, name, window)
    found = diagnosed(recording, window).found
    same = [each for each in found.incidents if each.id == name]
    if not same:
        raise Failure(f"no incident {name} in {recording.name}", f"'{command_line('diagnose', None)}' lists them")
    return same[0]


def _finding_plan(name: str, force: list[str], keep: list[str]) -> Plan:
    from zombiescope import audit
    from zombiescope.fix import plan_finding

    found = audit.examine("/", None)
    same = [each for each in found.findings if each.id == name]
    if not same:
        raise Failure(f"audit finds no {name} on this node (any more)", "'zombiescope audit --json' lists their ids")
    return plan_finding.plan(same[0], force=force, keep=keep)


def _with_history(plan: Plan) -> Plan:
    """With what the log says was done already, where it may be read."""
    from zombiescope.model.plans import history, log_entry

    try:
        known = history.of(log_entry.entries(), plan.target)
    except OSError:
        return plan
    return plan.with_states((one.step, one.state, one.told) for one in known.values())


# --- doing it --------------------------------------------------------------------------------------------------------


def _is_root() -> bool:
    return os.geteuid() == 0


def _require_root() -> None:
    if not _is_root():
        raise Failure(
            "only root may change this node", "run it with sudo or pkexec; without --apply it only shows the plan"
        )


def _may_ask(yes: bool) -> None:
    if not yes and not sys.stdin.isatty():
        raise Failure("this asks before each step, and there is no terminal to ask on", "add --yes")


def _apply(
    make: Callable[[], Plan], directory: str | None, node: str | None, *, yes: bool, verify_s: float, json_: bool
) -> int:
    from zombiescope.fix import log, node_steps
    from zombiescope.fix.apply import apply_in_rounds

    node_steps.tell(note)
    plan = make()
    if not plan.changes:
        _show(plan, None, json_, directory)
        return FOUND
    _require_root()
    _may_ask(yes)
    with log.opened() as held:
        done = apply_in_rounds(plan, make, held, lambda step: yes or _consents(step), _say)
        verdict = None
        if all(step.state == "applied" for step in done.changes):
            verdict = after_the_node(done, _option(plan)) or _verify(done, directory, node, verify_s)
            held.append(plan.target, "verified", after=verdict.document(), why=verdict.word)
    _show(done, verdict, json_, directory)
    if any(step.state == "failed" for step in done.steps):
        note(f"zombiescope: it stopped at the step that failed; to go back: zombiescope fix {_option(plan)} --undo")
        return 1
    return 0 if verdict is not None and verdict.verified else FOUND


def _option(plan: Plan) -> str:
    import shlex

    kind, _, name = plan.target.partition(":")
    return f"--{kind} {shlex.quote(name)}"


def _consents(step: Step) -> bool:
    note(f"{step.does}\n  {step.command}" if step.command else step.does)
    for line in step.touches:
        note(f"  touches  {line}")
    note(f"  risk     {step.risk}")
    note(f"  undo     {step.undo}")
    return typer.confirm("Do this step?", err=True)


def _say(step: Step) -> None:
    note(f"{step.state}: {step.does}" + (f" ({step.why})" if step.why else ""))


def _verify(plan: Plan, directory: str | None, node: str | None, seconds: float) -> Verdict:
    """Waits for the window and looks at what was recorded in it."""
    from zombiescope.fix import verify

    from_us = time.time_ns() // 1000
    if plan.pattern is None:
        return verify.unknown(
            from_us, from_us, "a finding has no symptom; 'zombiescope audit' shows whether it is gone"
        )
    with opened(directory, node) as recording:
        if not verify.is_written(recording):
            return verify.unknown(
                from_us, from_us, "no recorder writes this recording, so what happens now is not seen"
            )
    note(f"watching for {seconds:g} s what the recorder sees")
    time.sleep(seconds)
    to_us = time.time_ns() // 1000
    with opened(directory, node) as recording:
        return verify.verify(recording, plan.pattern, from_us, to_us, plan.seen)


def _undo(target: str, *, yes: bool, json_: bool, node_only: bool) -> int:
    """`node_only`: the node comes back to its cluster, and what ended the cause stays."""
    from zombiescope.fix import log
    from zombiescope.fix.node_steps import is_of_node
    from zombiescope.fix.undo import open_steps, undo

    _require_root()
    _may_ask(yes)
    with log.opened() as held:
        which = (lambda one: is_of_node(str(one.action.get("kind")))) if node_only else (lambda _: True)
        if not open_steps(held, target, which):
            raise Failure(f"nothing was applied for {target.partition(':')[2]} that is not undone already")
        ask = lambda one: yes or typer.confirm(f"Undo {one.step}?", err=True)  # noqa: E731
        done = list(undo(held, target, ask, which))
    if json_:
        steps = [{"id": one.step, "state": "undone" if one.ok else "failed", "why": one.why} for one in done]
        print_document("fix", {"target": target, "steps": steps, "verified": None})
    else:
        for one in done:
            console().print(f"{'undone' if one.ok else 'failed'}  {one.step}" + (f": {one.why}" if one.why else ""))
    return 0 if all(one.ok for one in done) else 1


# --- showing it ------------------------------------------------------------------------------------------------------


def _show(plan: Plan, verdict: Verdict | None, json_: bool, directory: str | None) -> None:
    if json_:
        from zombiescope.documents import fix as fix_documents

        known = fix_documents.answer(plan.target)  # what an earlier run found, where this one has not looked
        verified = verdict.verified if verdict is not None else known["verified"]
        checked = verdict.document() if verdict is not None else known["verification"]
        logged = [entry.document() for entry in _logged(plan)]
        print_document("fix", {**plan.document(), "verified": verified, "verification": checked, "log": logged})
        return
    out = console()
    out.print(plan.summary, style="bold", markup=False)
    for number, step in enumerate(plan.steps, 1):
        _show_step(number, step)
    if plan.why_nothing:
        out.print(plan.why_nothing, style="yellow", markup=False)
    elif verdict is None and all(step.state == "planned" for step in plan.changes):
        out.print(f"No changes made. To apply: {command_line('fix', directory)} {_option(plan)} --apply")
    for entry in _logged(plan):
        when = datetime.fromtimestamp(entry.at).astimezone().isoformat(" ", "seconds")
        said = f"  log     {when}  {entry.event:<11} {entry.step} {entry.why}".rstrip()
        out.print(printable(said), style="dim", soft_wrap=True, markup=False)
    if verdict is not None:
        out.print(verdict.word, style="bold green" if verdict.verified else "bold yellow")
        for check in verdict.checks:
            out.print(f"  {check.name}: {check.text}", markup=False, soft_wrap=True)


def _logged(plan: Plan) -> list[Entry]:
    """What the log says of this plan, the newest last; nothing where it may not be read."""
    from zombiescope.fix import log

    try:
        return [entry for entry in log.entries() if entry.target == plan.target][-_LOGGED_MAX:]
    except OSError:
        return []


def _show_step(number: int, step: Step) -> None:
    from rich.text import Text

    out = console()
    head = Text(f"{number:>2}. ").append(printable(step.does))
    mark = step.state if step.action is not None or step.state != "planned" else step.kind
    head.append(f"  [{mark}]", _STYLES.get(step.state, "dim"))
    out.print(head, soft_wrap=True)
    lines = [("run", step.command or ""), *(("touches", line) for line in step.touches), ("risk", step.risk)]
    lines += [("undo", step.undo), ("verify", step.verify), ("note", step.why)]
    for name, text in lines:
        if text:
            out.print(f"      {name:<8}{printable(text)}", soft_wrap=True, markup=False)

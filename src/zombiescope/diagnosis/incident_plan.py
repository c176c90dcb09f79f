"""The plan for an incident, made from a recording: what diagnose, page and report show, and what `fix` begins with.

Every step has a name that stays the same whenever the plan is made, so that the action log, the page and the terminal
speak of the same one. `fix` adds what only the live machine knows: what a step touches now, what else starts a unit.
"""

from __future__ import annotations

from dataclasses import replace

from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.model.plans.step import Step

NO_CAUSE = "no cause is known, so there is nothing to do about it"
LAST_RESORT = Step(
    id="reboot", kind="advice", part="last-resort",
    does="if nothing else helps, reboot the node once its jobs have ended (fix --reboot drains a Kubernetes node "
    "first); what is not disabled comes back with it",
    risk="every job on the node ends",
    undo="nothing needs to be undone",
)  # fmt: skip


def plan(incident: Incident, node: str | None = None) -> Plan:
    """For its best cause."""
    target = f"incident:{incident.id}"
    if not incident.causes:
        return Plan(target, NO_CAUSE, (), None, node)
    cause = incident.causes[0]
    again = ((at_us, at_us) for at_us in incident.recurrences)
    seen = ((incident.from_us, incident.to_us), *again)
    return Plan(target, cause.fix.summary, steps(cause), cause.pattern, node, seen)


def steps(cause: Cause) -> tuple[Step, ...]:
    """Of one cause, each with its name. What healthy nodes do, too, is nothing to reboot for."""
    found = enumerate(cause.fix.steps, 1)
    named = distinct(replace(step, id=_name(step, f"{cause.pattern}:{number}")) for number, step in found)
    return named if cause.is_ordinary else (*named, LAST_RESORT)


def _name(step: Step, otherwise: str) -> str:
    subject = step.act.subject if step.act is not None else ""
    return f"{step.act.kind}:{subject}" if step.act is not None and subject else otherwise


def fix_command(plan: Plan) -> str | None:
    """What shows the plan on the node, and does it when asked; None where an id is none that we give."""
    kind, _, name = plan.target.partition(":")
    return f"zombiescope fix --incident {name}" if kind == "incident" and name.isalnum() else None

"""A diagnosis as JSON: times in Unix seconds, what was not measured null."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from zombiescope.base.severity import rank
from zombiescope.diagnosis import incident_plan
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Actor, Cause, Incident, JobFate
from zombiescope.diagnosis.order import several_nodes
from zombiescope.diagnosis.ray_jobs import NodeJobs, failure_rates, is_rays_own
from zombiescope.diagnosis.symptom import Symptom


def together(found: list[Diagnosis]) -> dict[str, Any]:
    """Of one node, or of several: then `node` is null, and each incident says whose it is."""
    if len(found) == 1:
        return document(found[0])
    each = [document(one) for one in found]
    spans = [one["window"] for one in each]
    return {
        "node": None,
        "window": {
            "from": min((span["from"] for span in spans), default=None),
            "to": max((span["to"] for span in spans), default=None),
        },
        "ray_jobs": failure_rates([_node_jobs(one) for one in found]),
        "nodes": [{key: one[key] for key in ("node", "window", "noted", "not_checked")} for one in each],
        "incidents": several_nodes([one["incidents"] for one in each]),
        "noted": [f"{one['node']}: {said}" for one in each for said in one["noted"]],
        "not_checked": [f"{one['node']}: {said}" for one in each for said in one["not_checked"]],
    }


def _node_jobs(found: Diagnosis) -> NodeJobs:
    """Affected is a node on which something happened that is worth a warning, beside what Ray itself reported."""
    worth = [each for each in found.incidents if rank(each.severity) >= rank("warning") and not is_rays_own(each)]
    return NodeJobs(bool(worth), found.ray_jobs)


def document(found: Diagnosis) -> dict[str, Any]:
    return {
        "node": found.node,
        "window": {"from": found.from_us / 1e6, "to": found.to_us / 1e6},
        "incidents": [{"node": found.node, **incident(each)} for each in found.incidents],
        "noted": list(found.noted),
        "not_checked": list(found.not_checked),
    }


def incident(each: Incident) -> dict[str, Any]:
    return {
        "id": each.id,
        "from": each.from_us / 1e6,
        "to": each.to_us / 1e6,
        "state": each.state,
        "severity": each.severity,
        "symptoms": [_symptom(symptom) for symptom in each.symptoms],
        "causes": [_cause(cause) for cause in each.causes],
        "ruled_out": [asdict(one) for one in each.ruled_out],
        "recurrences": [at_us / 1e6 for at_us in each.recurrences],
        "not_checked": list(each.not_checked),
        "cost": None if each.cost is None else each.cost.document(),
        "jobs": job_documents(each.jobs),
    }


def job_documents(jobs: Iterable[JobFate]) -> list[dict[str, Any]]:
    return [_job(job) for job in jobs]


def _job(job: JobFate) -> dict[str, Any]:
    ended = None if job.ended_us is None else job.ended_us / 1e6
    return {"job": job.job, "fate": job.fate, "why": job.why, "ended": ended, "ran_s": job.ran_s}


def _symptom(symptom: Symptom) -> dict[str, Any]:
    return {
        **symptom.facts,
        "kind": symptom.kind,
        "at": symptom.from_us / 1e6,
        "to": symptom.to_us / 1e6,
        "cpu": symptom.cpu,
        "seconds": symptom.seconds,
        "severity": symptom.severity,
        "group": symptom.group,
        "text": symptom.text,
        "title": symptom.title,
        "role": symptom.detector.role,
        "table": symptom.detector.source,
        "core_rank": symptom.detector.core_rank,
        "victim": symptom.victim,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    plan = incident_plan.steps(cause)
    return {
        "pattern": cause.pattern,
        "proof": cause.proof,
        "confidence": cause.confidence,
        "strength": cause.strength,
        "repair": cause.repair,
        "summary": cause.summary,
        "hog": _actor(cause.hog),
        "culprit": _actor(cause.culprit) if cause.culprit else None,
        "frames": list(cause.frames),
        "chain": [
            {
                "step": link.step,
                "fact": link.fact,
                "value": link.value,
                "value_unit": link.value_unit,
                "at": None if link.at_us is None else link.at_us / 1e6,
                "source": link.source,
                "counter": link.counter,
                "path": list(link.path),
                "means": link.means,
            }
            for link in cause.chain
        ],
        "fix": {
            "summary": cause.fix.summary,
            "steps": [str(step) for step in plan],
            "commands": [step.command is not None for step in plan],
            "plan": [step.document() for step in plan],
        },
    }


def _actor(actor: Actor) -> dict[str, Any]:
    return asdict(actor)

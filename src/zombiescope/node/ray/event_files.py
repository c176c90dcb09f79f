"""Ray's own event files: SESSION/logs/events/event_*.log and, where the export API is on, SESSION/logs/export_events/.

    events/event_RAYLET.log      RAY_WORKER_FAILURE: a worker of this node died
    events/event_GCS.log         RAY_NODE_REMOVED: a node was declared dead (on the head)
    events/event_JOBS.log        a submitted job started or completed (on the head)
    export_events/event_EXPORT_{NODE,SUBMISSION_JOB,DRIVER_JOB,ACTOR,TASK_PID}.log     RAY_enable_export_api_write=1

One JSON object a line. Times are whole seconds, so an event may seem up to a second early. The files are written by
whoever runs Ray, and hold what jobs print: every line is bounded, and what is not in the known shape is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.text import number
from zombiescope.node.ray.raylet import is_address
from zombiescope.node.ray.report import LOSSES, Report, identity, known, short, submission

LINE_BYTES = 1 << 20
MESSAGE_CHARACTERS = 8192
_OF_A_WORKER = ("Worker IP address: ", "Worker PID: ", "Worker exit type: ")
_COMPLETED = re.compile(r"Completed a ray job (\S{1,128}) with a status (\w{1,20})")
_STARTED = re.compile(r"Started a ray job (\S{1,128})\.$")
_WORD = re.compile(r"[\w.:-]{1,64}")
_NODE_IP = re.compile(r"Node IP: ([0-9A-Fa-f.:]{2,45})")
_MOST_US = 253_402_300_799_999_999


def parse(line: bytes) -> Report | None:
    """What a line reports; None: nothing that concerns us."""
    if len(line) > LINE_BYTES:
        return None
    try:
        said = _json.loads(line)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    reader = _READERS.get(str(said.get("source_type")))
    at_us = _time_us(said.get("timestamp"), 1_000_000)
    return reader(said, at_us) if reader is not None and at_us is not None else None


def _time_us(value: object, unit_us: int) -> int | None:
    if isinstance(value, str):
        value = number(value)
    is_time = isinstance(value, int) and not isinstance(value, bool) and 0 < value * unit_us <= _MOST_US
    return value * unit_us if is_time and isinstance(value, int) else None


def _mapping(said: dict[str, Any], key: str) -> dict[str, Any]:
    found = said.get(key)
    return found if isinstance(found, dict) else {}


# --- events/ ---------------------------------------------------------------------------------------------------------


def _raylet(said: dict[str, Any], at_us: int) -> Report | None:
    if said.get("label") != "RAY_WORKER_FAILURE":
        return None
    custom, message = _mapping(said, "custom_fields"), str(said.get("message"))[:MESSAGE_CHARACTERS]
    worker, job, node = (identity(custom.get(key)) for key in ("worker_id", "job_id", "node_id"))
    ip, pid, kind = (_word_after(message, mark) for mark in _OF_A_WORKER)
    detail = message.partition("Worker exit detail: ")[2]
    why = short(detail.split(". ")[0] or message)
    fields = known(job=job, node_id=node, node_ip=ip if ip and is_address(ip) else None, pid=number(pid or ""),
                   exit_type=kind, why=why)  # fmt: skip
    whose = f" of job {job}" if job else ""
    return Report(at_us, "ray_worker_died", worker or message[:80], f"a Ray worker{whose} died: {why}", fields)


def _word_after(message: str, mark: str) -> str | None:
    """By a plain search: one expression for all of them took minutes for a line that was made for it."""
    found = _WORD.match(message, message.find(mark) + len(mark)) if mark in message else None
    return found[0] if found else None


def _gcs(said: dict[str, Any], at_us: int) -> Report | None:
    if said.get("label") not in ("RAY_NODE_REMOVED", "RAYLET_MARKED_DEAD"):
        return None
    custom = _mapping(said, "custom_fields")
    node, ip = identity(custom.get("node_id")), custom.get("ip")
    ip = ip if isinstance(ip, str) and is_address(ip) else None
    why = "missed too many heartbeats" if "heartbeats" in str(said.get("message")) else short(said.get("message"))
    return node_dead(at_us, node, ip, why)


def _jobs(said: dict[str, Any], at_us: int) -> Report | None:
    message = str(said.get("message"))[:1000]
    if completed := _COMPLETED.search(message):
        return job_status(at_us, completed[2], None, completed[1], {})
    if started := _STARTED.search(message):
        return job_status(at_us, "RUNNING", None, started[1], {})
    return None


# --- export_events/ --------------------------------------------------------------------------------------------------


def _export_node(said: dict[str, Any], at_us: int) -> Report | None:
    data = _mapping(said, "event_data")
    if data.get("state") != "DEAD":
        return None
    death, ip = _mapping(data, "death_info"), data.get("node_manager_address")
    why = short(death.get("reason_message")) or str(death.get("reason", ""))[:80]
    ip = ip if isinstance(ip, str) and is_address(ip) else None
    ended_us = _time_us(data.get("end_time_ms"), 1000) or at_us
    expected = death.get("reason") in ("EXPECTED_TERMINATION", "AUTOSCALER_DRAIN_IDLE")
    return node_dead(ended_us, identity(data.get("node_id")), ip, why, expected=expected)


def _export_submission(said: dict[str, Any], at_us: int) -> Report | None:
    data = _mapping(said, "event_data")
    return job_status(
        _time_us(data.get("end_time"), 1000) or at_us,
        str(data.get("status")),
        None,
        data.get("submission_job_id"),
        data,
    )


def _export_driver(said: dict[str, Any], at_us: int) -> Report | None:
    """Only who a job is: how it ended is not in it."""
    data = _mapping(said, "event_data")
    named = _mapping(_mapping(data, "config"), "metadata").get("job_submission_id")
    if data.get("is_dead"):
        return None
    return job_status(at_us, "RUNNING", identity(data.get("job_id")), named, data)


def _export_actor(said: dict[str, Any], at_us: int) -> Report | None:
    data = _mapping(said, "event_data")
    died = _mapping(_mapping(data, "death_cause"), "actor_died_error_context")
    message = str(died.get("error_message"))[:2000]
    if data.get("state") != "DEAD" or died.get("reason") not in ("WORKER_DIED", "NODE_DIED", "OWNER_DIED"):
        return None
    if "INTENDED" in message or "ray.kill" in message:
        return None
    ip, name = died.get("node_ip_address"), short(data.get("class_name"), 80)
    why = short(message.partition("Worker exit detail: ")[2].split(". ")[0] or message)
    fields = known(
        job=identity(data.get("job_id")), node_ip=ip if isinstance(ip, str) and is_address(ip) else None,
        pid=died.get("pid") if isinstance(died.get("pid"), int) else None, actor=name, why=why,
        reason=str(died.get("reason")),
    )  # fmt: skip
    key = identity(data.get("actor_id")) or name
    return Report(at_us, "ray_actor_died", key, f"the Ray actor {name or key} died: {why}", fields)


def _export_task(said: dict[str, Any], at_us: int) -> Report | None:
    data = _mapping(said, "event_data")
    error = _mapping(_mapping(data, "state_updates"), "error_info")
    kind, message = str(error.get("error_type")), str(error.get("error_message"))[:4000]
    if kind not in LOSSES:
        return None
    job, task = identity(data.get("job_id")), identity(data.get("task_id"))
    found = _NODE_IP.search(message)
    ip = found[1] if found and is_address(found[1]) else None
    node = identity(_mapping(data, "state_updates").get("node_id"))
    fields = known(job=job, node_ip=ip, node_id=node, error=kind)
    return Report(at_us, "ray_task_lost", f"{task}-{kind}", f"a Ray task of job {job} was lost: {kind}", fields)


# --- what several sources tell ---------------------------------------------------------------------------------------


def node_dead(at_us: int, node_id: str | None, ip: str | None, why: str, *, expected: bool = False) -> Report:
    fields = known(node_id=node_id, node_ip=ip, why=short(why))
    name = ip or node_id or "a node"
    if expected:
        return Report(at_us, "ray_node_stopped", node_id or name, f"the Ray node {name} was stopped: {why}", fields)
    return Report(at_us, "ray_node_dead", node_id or name, f"the Ray node {name} is dead: {why}", fields)


_STATUS: dict[str, Any] = {
    "RUNNING": ("ray_job_started", "started"), "SUCCEEDED": ("ray_job_finished", "succeeded"),
    "FAILED": ("ray_job_failed", "failed"), "STOPPED": ("ray_job_stopped", "was stopped"),
}  # fmt: skip


def job_status(at_us: int, status: str, job: str | None, named: object, about: dict[str, Any]) -> Report | None:
    """A job as the event files, the export API and the dashboard describe it."""
    kind, verb = _STATUS.get(status, (None, ""))
    name = submission(named)
    if kind is None or (name is None and job is None):
        return None
    code = about.get("driver_exit_code")
    ip = _mapping(about, "driver_info").get("node_ip_address") or about.get("driver_ip_address")
    said = last_line(about.get("message")) if kind == "ray_job_failed" else ""
    fields = known(
        job=job, submission_id=name, command=short(about.get("entrypoint"), 200) or None,
        error=short(about.get("error_type"), 60) or None, exit_code=code if isinstance(code, int) else None,
        driver_ip=ip if isinstance(ip, str) and is_address(ip) else None, said=said, ran_s=_ran_s(about),
        driver_pid=_pid(_mapping(about, "driver_info").get("pid")),
    )  # fmt: skip
    # What a job printed is its owner's: in a field of its own, where redaction finds it, and not in the text.
    return Report(at_us, kind, name or job or "", f"the Ray job {name or job} {verb}", fields)


def _pid(value: object) -> int | None:
    """The dashboard has it as text."""
    pid = number(value) if isinstance(value, str) else value
    return pid if isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 1 << 22 else None


def _ran_s(about: dict[str, Any]) -> float | None:
    """Both in milliseconds; not known of a job that goes on."""
    start_us, end_us = (_time_us(about.get(key), 1000) for key in ("start_time", "end_time"))
    return (end_us - start_us) / 1e6 if start_us and end_us and end_us >= start_us else None


def last_line(message: object) -> str:
    """Of what a job printed at its end, which Ray hands on with its status."""
    lines = [line.strip() for line in str(message or "")[-4000:].splitlines() if line.strip()]
    return short(lines[-1], 200) if lines else ""


_READERS: dict[str, Callable[[dict[str, Any], int], Report | None]] = {
    "RAYLET": _raylet,
    "GCS": _gcs,
    "JOBS": _jobs,
    "EXPORT_NODE": _export_node,
    "EXPORT_SUBMISSION_JOB": _export_submission,
    "EXPORT_DRIVER_JOB": _export_driver,
    "EXPORT_ACTOR": _export_actor,
    "EXPORT_TASK": _export_task,
}

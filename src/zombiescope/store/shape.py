"""node.json and incidents.json as their readers take them: values of the kind that a recorder writes, or none.

A recording may be anybody's, and these two documents are what every view begins with. What is not of the kind that is
expected is left out where the file is read, so that nobody after that has to ask; a key that this version does not know
stays, as a newer recorder wrote it. Half of a pair of surrogates, which is valid JSON and no Unicode, is replaced: it
could be neither sent nor stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT, NUMBER = "text", "number"
ANY: dict[str, Any] = {}
"""An object, whatever is in it."""
MOST_NUMBER, LEAST_NUMBER = 2**62, 1e-6
LAST_SECOND = 253_402_300_799

NODE: dict[str, Any] = {
    **dict.fromkeys(
        ("format", "node", "kernel", "kernel_version", "boot", "machine", "os", "vendor", "product", "event",
         "timezone", "gpu_driver", "kernel_log", "sampling"), TEXT,
    ),
    **dict.fromkeys(("hz", "interval_s", "user_hz", "started_us"), NUMBER),
    "cpus": {
        **{name: [NUMBER] for name in ("online", "isolated", "nohz_full", "left_out")},
        "possible": NUMBER,
        "topology": [{**dict.fromkeys(("cpu", "core", "package", "numa_node"), NUMBER), "siblings": [NUMBER]}],
    },
    "labels": {"*": TEXT}, "sysctls": {"*": TEXT}, "nics": {"*": TEXT}, "consoles": [TEXT],
    "kernel_config": {"hz": NUMBER, "accounting": TEXT, "preempt": TEXT},
    "hypervisor": {"name": TEXT, "evidence": [TEXT]}, "imported": ANY,
    "missing": [{"source": TEXT, "why": TEXT, "grant": TEXT}],
}  # fmt: skip
_ACTOR = {
    **dict.fromkeys(("comm", "unit", "cgroup", "container", "container_name", "image", "pod"), TEXT),
    **dict.fromkeys(("pid", "cpu_ratio", "baseline_cpu_ratio"), NUMBER),
}
INCIDENT: dict[str, Any] = {
    **dict.fromkeys(("id", "state", "severity"), TEXT),
    **dict.fromkeys(("from", "to"), NUMBER),
    "symptoms": [{"kind": TEXT, "text": TEXT, "at": NUMBER, "cpu": NUMBER, "seconds": NUMBER, "event": TEXT}],
    "causes": [
        {
            "pattern": TEXT, "proof": TEXT, "confidence": NUMBER, "summary": TEXT, "hog": _ACTOR, "culprit": _ACTOR,
            "frames": [TEXT], "chain": [{"step": TEXT, "fact": TEXT, "value_unit": TEXT, "source": TEXT}],
            "fix": {"summary": TEXT, "steps": [ANY]},
        }
    ],
    "ruled_out": [{"pattern": TEXT, "because": TEXT, "value_unit": TEXT}], "cost": ANY,
}  # fmt: skip


def node(document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a node.json is of the right kind."""
    return dict(_fitted(document, NODE) or {})


def incident(document: object) -> dict[str, Any] | None:
    """None for what is no incident: it has a name, and no times but such as a calendar has."""
    found = _fitted(document, INCIDENT)
    if not isinstance(found, dict) or not isinstance(document, Mapping) or not found.get("id"):
        return None
    times = [document.get(key) for key in ("from", "to")]
    return found if all(at is None or (_is_number(at) and 0 <= at < LAST_SECOND) for at in times) else None


def _fitted(value: Any, shape: Any) -> Any:
    """None where it is not of that kind."""
    if shape == TEXT:
        return encodable(value) if isinstance(value, str) else None
    if shape == NUMBER:
        return value if _is_number(value) else None
    if isinstance(shape, list):
        fitting = (_fitted(each, shape[0]) for each in value) if isinstance(value, list) else ()
        return [each for each in fitting if each is not None] if isinstance(value, list) else None
    return _of_keys(value, shape) if isinstance(value, Mapping) else None


def _of_keys(value: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, each in value.items():
        of_each = shape.get(key, shape.get("*"))
        kept = _plain(each) if of_each is None else _fitted(each, of_each)
        if kept is not None or each is None:
            found[encodable(key)] = kept
    return found


def _plain(value: Any) -> Any:
    """Any document, with text that can be written. base/json.py bounds how deep it is nested."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {encodable(key): _plain(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == 0 or LEAST_NUMBER <= abs(value) < MOST_NUMBER


def encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

"""The configuration as a JSON schema, for editors and for charts: `python -m zombiescope.agent.config.json_schema`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from zombiescope.agent.config.setting import Declared, Duration, Rule, Size, declared

_DURATION = r"^(\d+(\.\d+)?\s*(us|ms|s|min|m|h|d|w)\s*)+$"
_SIZE = r"^\d+(\.\d+)?\s*([kKmMgGtT][iI]?)?[bB]?$"
_SCALARS: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Duration: {"type": "string", "pattern": _DURATION},
    Size: {"type": ["string", "integer"], "pattern": _SIZE},
}


def schema(sections: Mapping[str, type]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "zombiescope agent",
        "description": "The configuration of `zombiescope agent`: /etc/zombiescope/agent.yaml",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _section(kind) for name, kind in sections.items()},
    }


def _section(kind: type) -> dict[str, Any]:
    settings = declared(kind)
    made = {
        "type": ["object", "null"],
        "description": " ".join((kind.__doc__ or "").split()),
        "additionalProperties": False,
        "properties": {one.name: _setting(one) for one in settings},
    }
    required = [one.name for one in settings if one.required]
    return made | ({"required": required} if required else {})


def _setting(one: Declared) -> dict[str, Any]:
    made = {"description": one.rule.doc, **_type(one.type, one.rule)}
    if not one.required and not is_dataclass(one.default):
        made["default"] = _written(one.default, one.type)
    return made


def _type(kind: Any, rule: Rule) -> dict[str, Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_type(part, rule) for part in parts if part is not NoneType] + [{"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _type(parts[0], rule), "maxItems": rule.most}
    if origin is dict:
        return {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
            "maxProperties": rule.most,
        }
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _section(kind)
    return _scalar(kind, rule)


def _scalar(kind: Any, rule: Rule) -> dict[str, Any]:
    made = dict(_SCALARS[kind])
    if rule.choices:
        made["enum"] = list(rule.choices)
    if rule.pattern is not None and kind is str:
        made["pattern"] = f"^(?:{rule.pattern})$"
    if kind in (int, float):
        made |= {"minimum": rule.low} if rule.low is not None else {}
        made |= {"maximum": rule.high} if rule.high is not None else {}
    return made


def _written(value: Any, kind: Any) -> Any:
    """A default as a person would write it."""
    if isinstance(value, tuple):
        return [asdict(one) if is_dataclass(one) and not isinstance(one, type) else one for one in value]
    if kind is Duration:
        return duration_text(value)
    return size_text(value) if kind is Size else value


def duration_text(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds * 1000:g}ms"


def size_text(size: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale and size % scale == 0:
            return f"{size // scale}{unit}"
    return str(size)


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m zombiescope.agent.config.json_schema",
        description="Prints the JSON schema of the configuration.",
    ).parse_args()
    from zombiescope.agent.parts import sections

    json.dump(schema(sections()), sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()

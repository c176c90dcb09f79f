"""How a setting is declared: a field of a frozen dataclass with its documentation and its limits.

    @dataclass(frozen=True, slots=True)
    class WebhookSection:
        every: Duration = setting(Duration(60.0), "At most one message in this time.", low=1, high=3600)

The type says how it is written: Duration "30s", Size "2GB", bool, int, float, str, tuple[str, ...], dict[str, str],
another such dataclass, a tuple of them, or any of these `| None`.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, NewType, get_type_hints

Duration = NewType("Duration", float)
"""Seconds; written as 30s, 5m, 12h."""
Size = NewType("Size", int)
"""Bytes; written as 512MB, 2GB, 1GiB."""

_RULE = "rule"


@dataclass(frozen=True, slots=True)
class Rule:
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    """What a text must be, all of it."""
    most: int = 64
    """Entries of a list or a mapping."""
    fixed: bool = False
    """Whether it holds until the agent is started again."""


def setting(default: Any, doc: str, **limits: Any) -> Any:
    """A field with a default; limits are those of Rule."""
    return field(default=default, metadata={_RULE: Rule(doc, **limits)})


def required(doc: str, **limits: Any) -> Any:
    """A field of an entry of a list, without which the entry means nothing."""
    return field(metadata={_RULE: Rule(doc, **limits)})


def rule_of(one: Field[Any]) -> Rule:
    found = one.metadata.get(_RULE)
    assert isinstance(found, Rule), f"{one.name} is not declared with setting()"
    return found


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting of a section."""

    name: str
    type: Any
    rule: Rule
    default: Any
    """MISSING where it must be given."""

    @property
    def required(self) -> bool:
        return self.default is MISSING


def declared(section: type) -> list[Declared]:
    hints = get_type_hints(section)
    return [Declared(one.name, hints[one.name], rule_of(one), _default(one)) for one in fields(section)]


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default

"""Nodes of YAML into the dataclasses of the sections. A mistake leaves the default in place and is collected."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import yaml

from zombiescope.agent.config.document import Loader, Mistake, line_of
from zombiescope.agent.config.setting import Declared, Duration, Rule, Size, declared
from zombiescope.base.errors import QuestionError
from zombiescope.base.text import printable
from zombiescope.questions.duration import duration_s
from zombiescope.questions.size import size_bytes

_SHOWN = 60
_TAG = "tag:yaml.org,2002:"


class WrongValueError(Exception):
    """`what` is wrong with a value, and how to fix it."""

    def __init__(self, what: str, fix: str | None = None) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


@dataclass(frozen=True, slots=True)
class Override:
    """A value that the environment gives, as it stands there."""

    variable: str
    text: str


@dataclass(slots=True)
class Reader:
    """Reads one file; `name` is how mistakes call it, `overrides` go by path ("metrics.listen")."""

    name: str
    overrides: Mapping[str, Override] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    # --- sections ----------------------------------------------------------------------------------------------------

    def sections(self, root: yaml.Node | None, known: Mapping[str, type]) -> dict[str, Any]:
        """Section name -> its dataclass; one that is not there has its defaults."""
        given = {} if root is None else self._mapping(root, "", list(known))
        for key, (key_node, _) in given.items():
            if key not in known:
                self._unknown(self._at(key_node), key, list(known))
        return {name: self.section(kind, given.get(name, (None, None))[1], name) for name, kind in known.items()}

    def section(self, kind: type, node: yaml.Node | None, path: str) -> Any:
        settings = declared(kind)
        names = [one.name for one in settings]
        given = {} if node is None or _is_null(node) else self._mapping(node, path, names)
        for key, (key_node, _) in given.items():
            if key not in names:
                self._unknown(self._at(key_node), f"{path}.{key}", [f"{path}.{name}" for name in names])
        values = {one.name: self._setting(one, given.get(one.name), node, f"{path}.{one.name}") for one in settings}
        return None if any(value is _ABSENT for value in values.values()) else kind(**values)

    def _setting(
        self, one: Declared, given: tuple[yaml.Node, yaml.Node] | None, above: yaml.Node | None, path: str
    ) -> Any:
        override = self.overrides.get(path)
        if override is None and is_dataclass(one.type) and isinstance(one.type, type):
            return self.section(one.type, given[1] if given else None, path)
        node = given[1] if given else None
        where = self._at(node) if node is not None else self.name
        if override is not None:
            where = f"${override.variable}"
        elif node is None:
            if one.required:
                self._wrong(self._at(above) if above is not None else self.name, path, "is missing", one.rule.doc)
                return _ABSENT
            return one.default
        try:
            node = _from_environment(override, one.type) if override is not None else node
            assert node is not None
            return self._value(one.type, node, one.rule, path)
        except WrongValueError as error:
            self._wrong(where, path, error.what, error.fix)
            return _ABSENT if one.required else one.default

    def _mapping(self, node: yaml.Node, path: str, names: list[str]) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Key -> (its node, its value's); a key that stands twice counts once."""
        if not isinstance(node, yaml.MappingNode):
            if not _is_null(node):
                self._wrong(
                    self._at(node), path, f"is {_shown(node)}", f"write keys below it, as {', '.join(names[:3])}"
                )
            return {}
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            if name in found:
                self._wrong(self._at(key), f"{path}.{name}".lstrip("."), "appears twice", "remove one of them")
            found[name] = (key, value)
        return found

    # --- values ------------------------------------------------------------------------------------------------------

    def _value(self, kind: Any, node: yaml.Node, rule: Rule, path: str) -> Any:
        origin, parts = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            (only,) = [part for part in parts if part is not NoneType]
            return None if _is_null(node) else self._value(only, node, rule, path)
        if origin is tuple:
            return self._list(parts[0], node, rule, path)
        if origin is dict:
            return self._texts(node, rule)
        if is_dataclass(kind):
            assert isinstance(kind, type)
            return self.section(kind, node, path)
        return _checked(_SCALARS[kind](node), rule)

    def _list(self, kind: Any, node: yaml.Node, rule: Rule, path: str) -> tuple[Any, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise WrongValueError(f"is {_shown(node)}", "write it as a list: [a, b]")
        if len(node.value) > rule.most:
            raise WrongValueError(f"has {len(node.value)} entries", f"at most {rule.most} are taken")
        read = [self._value(kind, one, rule, f"{path}[{at}]") for at, one in enumerate(node.value)]
        return tuple(one for one in read if one is not None)

    def _texts(self, node: yaml.Node, rule: Rule) -> dict[str, str]:
        if not isinstance(node, yaml.MappingNode) or not all(
            isinstance(one, yaml.ScalarNode) for pair in node.value for one in pair
        ):
            raise WrongValueError(f"is {_shown(node)}", "write it as a mapping of texts: {zone: us-east-1a}")
        if len(node.value) > rule.most:
            raise WrongValueError(f"has {len(node.value)} entries", f"at most {rule.most} are taken")
        return {str(key.value): str(value.value) for key, value in node.value}

    # --- mistakes ----------------------------------------------------------------------------------------------------

    def _at(self, node: yaml.Node) -> str:
        return f"{self.name}:{line_of(node)}"

    def _wrong(self, where: str, key: str, what: str, fix: str | None = None) -> None:
        self.mistakes.append(Mistake(where, printable(key)[:_SHOWN], what, fix))

    def _unknown(self, where: str, key: str, names: list[str]) -> None:
        self.mistakes.append(unknown_key(where, key, names))


_ABSENT = object()


def unknown_key(where: str, key: str, names: list[str]) -> Mistake:
    near = get_close_matches(key, names, 1, 0.6)
    fix = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
    return Mistake(where, printable(key)[:_SHOWN], "is not known to this version", fix, unknown=True)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _shown(node: yaml.Node) -> str:
    """A value as a mistake names it."""
    if isinstance(node, yaml.ScalarNode):
        return f"{printable(str(node.value))[:_SHOWN]!r}" if node.value else "empty"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _from_environment(override: Override, kind: Any) -> yaml.Node:
    """Lists and mappings are read as YAML, everything else as it stands: [::1]:9321 is an address."""
    kinds = [one for one in get_args(kind) if one is not NoneType] if get_origin(kind) in (Union, UnionType) else [kind]
    if get_origin(kinds[0]) not in (tuple, dict):
        tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, override.text, (True, False))  # type: ignore[no-untyped-call]
        return yaml.ScalarNode(tag, override.text)
    node: yaml.Node | None
    try:
        node = yaml.compose(override.text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        node = None
    if node is None:
        raise WrongValueError(f"is {printable(override.text)[:_SHOWN]!r}", "write it as [a, b] or {key: value}")
    return node


def _checked(value: Any, rule: Rule) -> Any:
    if rule.choices and value not in rule.choices:
        near = get_close_matches(str(value), rule.choices, 1)
        fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(rule.choices)}"
        raise WrongValueError(f"is {printable(str(value))[:_SHOWN]!r}", fix)
    if rule.pattern is not None and not re.fullmatch(rule.pattern, str(value)):
        raise WrongValueError(f"is {printable(str(value))[:_SHOWN]!r}", f"it must match {rule.pattern}")
    if (rule.low is not None and value < rule.low) or (rule.high is not None and value > rule.high):
        raise WrongValueError(f"is {value:g}, out of range", limits_text(rule))
    return value


def limits_text(rule: Rule) -> str:
    """ "from 1 to 999"."""
    ends = [("from", rule.low), ("to", rule.high)]
    return " ".join(f"{word} {end:g}" for word, end in ends if end is not None)


def _scalar(node: yaml.Node, tags: tuple[str, ...], shape: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or (tags and node.tag.removeprefix(_TAG) not in tags):
        raise WrongValueError(f"is {_shown(node)}", f"write {shape}")
    return str(node.value)


def _boolean(node: yaml.Node) -> bool:
    return _scalar(node, ("bool",), "true or false").lower() in ("true", "yes", "on")


def _integer(node: yaml.Node) -> int:
    return int(_number(node, ("int",), int, "a whole number"))


def _float(node: yaml.Node) -> float:
    return float(_number(node, ("int", "float"), float, "a number"))


def _number(node: yaml.Node, tags: tuple[str, ...], kind: Callable[[str], float], shape: str) -> float:
    text = _scalar(node, tags, shape)
    try:
        value = kind(text)
    except ValueError:
        raise WrongValueError(f"is {_shown(node)}", f"write {shape}") from None
    if not -1e18 < value < 1e18:  # also what is no number
        raise WrongValueError(f"is {_shown(node)}", f"write {shape}")
    return value


def _text(node: yaml.Node) -> str:
    if _is_null(node):
        raise WrongValueError("is empty", 'write a text, or "" for none')
    text = _scalar(node, (), "a text")
    if len(text) > 4096 or "\0" in text:
        raise WrongValueError(f"is not text of at most 4096 characters: {_shown(node)}")
    return text


def _duration(node: yaml.Node) -> Duration:
    try:
        return Duration(duration_s(_scalar(node, ("str",), "a duration with its unit: 250ms, 30s, 5m, 12h")))
    except QuestionError as error:
        raise WrongValueError(error.what, error.fix) from None


def _size(node: yaml.Node) -> Size:
    try:
        return Size(size_bytes(_scalar(node, ("str", "int"), "a size: 512MB, 2GB, 1GiB")))
    except QuestionError as error:
        raise WrongValueError(error.what, error.fix) from None


_SCALARS: dict[Any, Callable[[yaml.Node], Any]] = {
    bool: _boolean,
    int: _integer,
    float: _float,
    str: _text,
    Duration: _duration,
    Size: _size,
}

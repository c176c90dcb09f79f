"""An answer is a frozen dataclass, and everything that shows it follows from its fields.

    @dataclass(frozen=True, slots=True)
    class Core:
        cpu: Annotated[int, Field("core")]
        longest_saturation_s: Annotated[float | None, Field("saturated", "duration", means="...")]
        modes: Annotated[Modes, FLAT]

From these lines follow the JSON object (`document`), the schema in docs/api.json and with it the page's TypeScript
types (`Schemas`), the columns of a terminal table (`columns`) and of CSV (`csv_rows`). A column that is computed from
others is a property under `derived`.

A field that ends in `_us` is a time: its key has no `_us`, and its value is in Unix seconds. `from_us` is `from`. A
trailing underscore keeps a name off a keyword of Python and is left out too.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NotRequired, get_args, get_origin

Format = Literal["text", "number", "count", "bytes", "duration", "percent", "ratio", "clock"]
"""`percent` is "9%", `ratio` the same as "9.1" in a table of such numbers."""


@dataclass(frozen=True, slots=True)
class Field:
    """What a field says of itself. Without a title it is not a column of the terminal's table."""

    title: str = ""
    format: Format = "text"
    means: str = ""
    """Its description in docs/api.json."""
    unit: str = ""
    key: str = ""
    """In JSON, where it is not the name of the field."""
    flat: bool = False
    """Its own fields stand in its place."""
    hidden: bool = False
    """Only for the program."""
    optional: bool = False
    """Left out of the JSON where it is None."""

    def over(self, other: Field) -> Field:
        """Both, where this one says nothing the other."""
        mine = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return dataclasses.replace(other, **{name: value for name, value in mine.items() if value != _NOTHING[name]})


FLAT = Field(flat=True)
HIDDEN = Field(hidden=True)
OPTIONAL = Field(optional=True)
_NOTHING = {one.name: one.default for one in dataclasses.fields(Field)}


@dataclass(frozen=True, slots=True)
class Named:
    """In an annotation: this type has a name of its own in docs/api.json."""

    name: str


@dataclass(frozen=True, slots=True)
class ColumnArray:
    """One of the arrays behind the header of columns."""

    name: str
    type: Literal["u8", "u16", "u32", "i32", "f32", "f64"]
    length: int


@dataclass(frozen=True, slots=True)
class Document:
    """An answer by itself: whoever prints or sends it puts its `schema` first."""

    before: ClassVar[dict[str, Any]] = {"schema": str}
    after: ClassVar[dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Header(Document):
    """What precedes the arrays of an answer in columns."""

    after: ClassVar[dict[str, Any]] = {"arrays": list[ColumnArray]}


class derived(property):  # noqa: N801  it is used as `property` is
    """A column that is computed from the fields of its row: `@derived(Field("kernel", "percent"), after="busy")`."""

    about: Field
    behind: str | None

    def __init__(
        self,
        about: Field | Callable[[Any], Any],
        *rest: Any,
        after: str | None = None,
        get: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(get or (about if callable(about) else None), *rest)
        self.about = about if isinstance(about, Field) else Field()
        self.behind = after

    def __call__(self, get: Callable[[Any], Any]) -> derived:
        return derived(self.about, after=self.behind, get=get)


# --- what a type consists of -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Member:
    """One field or derived column of an answer type."""

    attribute: str
    type: Any
    about: Field

    @property
    def key(self) -> str:
        return self.about.key or self.attribute.removesuffix("_us").removesuffix("_")

    @property
    def is_time(self) -> bool:
        return self.attribute.endswith("_us")


@cache
def members(kind: Any) -> tuple[Member, ...]:
    """In the order in which they are written. Hidden ones are left out."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = [_member(one.name, hints[one.name]) for one in dataclasses.fields(kind)]
    for name, one in _derived(kind):
        made = _member(name, typing.get_type_hints(one.fget, include_extras=True)["return"])
        made = dataclasses.replace(made, about=one.about.over(made.about))
        places = [number for number, each in enumerate(found) if each.attribute == one.behind]
        found.insert(places[0] + 1 if places else len(found), made)
    return tuple(one for one in found if not one.about.hidden)


def _derived(kind: type) -> Iterator[tuple[str, derived]]:
    for base in reversed(kind.__mro__):
        yield from ((name, one) for name, one in vars(base).items() if isinstance(one, derived))


def _member(name: str, hint: Any) -> Member:
    about, (plain, extras) = Field(), _parted(hint)
    for one in extras:
        about = one.over(about) if isinstance(one, Field) else about
    names = [one for one in extras if isinstance(one, Named)]
    return Member(name, Annotated[plain, names[0]] if names else plain, about)


def _parted(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _is_union(origin: Any) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _is_answer(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


# --- JSON ------------------------------------------------------------------------------------------------------------

Encoder = Callable[[Any], Any]


def document(answer: Any) -> dict[str, Any]:
    """What `--json` prints and the page is sent, without the schema; what is JSON already stays as it is."""
    if isinstance(answer, dict):
        return answer
    found: dict[str, Any] = {}
    kind: Any = type(answer)
    for key, read, encode, optional, flat in _plan(kind):
        value = read(answer)
        if optional and value is None:
            continue
        if flat:
            found.update({} if value is None else document(value))
        else:
            found[key] = value if encode is None or value is None else encode(value)
    return found


_Step = tuple[str, Callable[[Any], Any], Encoder | None, bool, bool]


@cache
def _plan(kind: Any) -> tuple[_Step, ...]:
    return tuple(
        (
            one.key,
            _reader(one.attribute),
            _seconds if one.is_time else _encoder(one.type),
            one.about.optional,
            one.about.flat,
        )
        for one in members(kind)
    )


def _reader(name: str) -> Callable[[Any], Any]:
    return lambda answer: getattr(answer, name)


def _seconds(at_us: float | Sequence[float]) -> float | list[float]:
    return at_us / 1e6 if isinstance(at_us, int | float) else [one / 1e6 for one in at_us]


def _encoder(hint: Any) -> Encoder | None:
    """None: it is JSON as it is."""
    hint, _ = _parted(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if _is_answer(hint):
        return document
    if _is_union(origin):
        inner = [found for one in arguments if (found := _encoder(one)) is not None]
        return inner[0] if inner else None
    if origin in (list, tuple, abc.Sequence):
        return _list_encoder(_encoder(arguments[0]))
    if origin in (dict, abc.Mapping):
        return _dict_encoder(_encoder(arguments[1]))
    return None


def _list_encoder(each: Encoder | None) -> Encoder:
    return list if each is None else lambda values: [each(one) for one in values]


def _dict_encoder(each: Encoder | None) -> Encoder:
    return dict if each is None else lambda values: {key: each(one) for key, one in values.items()}


# --- schema ----------------------------------------------------------------------------------------------------------

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Schemas:
    """JSON Schema of answer types and of TypedDicts (what was read as JSON and is passed on); `components` are those
    with a name."""

    def __init__(self, prefix: str = "#/components/schemas/", open_ended: Iterable[Any] = ()) -> None:
        """`open_ended`: TypedDicts that may have more keys."""
        self._prefix = prefix
        self._open_ended = tuple(open_ended)
        self._found: dict[str, dict[str, Any]] = {}

    @property
    def components(self) -> dict[str, dict[str, Any]]:
        return dict(sorted(self._found.items()))

    def of(self, hint: Any) -> dict[str, Any]:
        if isinstance(hint, typing.ForwardRef):
            raise TypeError(f"{hint} is not resolved")
        plain, extras = _parted(hint)
        name = next((one.name for one in extras if isinstance(one, Named)), None)
        if _is_answer(plain) or typing.is_typeddict(plain):
            name = getattr(plain, "api_name", plain.__name__)
        if name is None:
            return self._schema(plain)
        if name not in self._found:
            self._found[name] = {}
            self._found[name] = self._schema(plain)
        return {"$ref": self._prefix + name}

    def _schema(self, hint: Any) -> dict[str, Any]:
        origin, arguments = get_origin(hint), get_args(hint)
        if hint in _SIMPLE:
            return {"type": _SIMPLE[hint]}
        if hint is Any:
            return {}
        if _is_answer(hint):
            return self._object(hint, _properties(hint))
        if typing.is_typeddict(hint):
            return self._object(hint, _typed_properties(hint))
        if origin is Literal:
            return _literal(arguments)
        if _is_union(origin):
            return self._union([self.of(one) for one in arguments])
        if origin is tuple and arguments[1:] != (...,):
            return {
                "maxItems": len(arguments),
                "minItems": len(arguments),
                "prefixItems": [self.of(one) for one in arguments],
                "type": "array",
            }
        if origin in (list, tuple, abc.Sequence):
            return {"items": self.of(arguments[0]), "type": "array"}
        if origin in (dict, abc.Mapping):
            return {"additionalProperties": self.of(arguments[1]) or True, "type": "object"}
        raise TypeError(f"an answer cannot hold {hint}")

    @staticmethod
    def _union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
        simple = [one.get("type") for one in schemas]
        return {"type": simple} if all(set(one) == {"type"} for one in schemas) else {"anyOf": schemas}

    def _object(self, kind: type, found: Iterable[tuple[str, Any, bool, str]]) -> dict[str, Any]:
        properties, required = {}, []
        for key, hint, needed, means in found:
            properties[key] = self.of(hint) | ({"description": means} if means else {})
            required += [key] if needed else []
        said: dict[str, Any] = {"properties": properties, "required": required, "type": "object"}
        said |= {"description": inspect.cleandoc(kind.__doc__)} if _is_described(kind) and kind.__doc__ else {}
        said |= {"additionalProperties": True} if kind in self._open_ended else {}
        return dict(sorted(said.items()))


def _is_described(kind: type) -> bool:
    """A dataclass without a docstring is given its signature for one."""
    return not (kind.__doc__ or "").startswith(f"{kind.__name__}(")


def _literal(values: tuple[Any, ...]) -> dict[str, Any]:
    kinds = list(dict.fromkeys(_SIMPLE[type(value)] for value in values))
    said = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return said | {"type": kinds[0] if len(kinds) == 1 else kinds}


def _properties(kind: type) -> Iterator[tuple[str, Any, bool, str]]:
    yield from ((key, hint, True, "") for key, hint in getattr(kind, "before", {}).items())
    for one in members(kind):
        hint = _time_hint(one.type) if one.is_time else one.type
        if one.about.flat:
            yield from _properties(_without_none(hint))
        else:
            needed = not one.about.optional
            yield one.key, hint if needed else _without_none(hint), needed, one.about.means
    yield from ((key, hint, True, "") for key, hint in getattr(kind, "after", {}).items())


def _without_none(hint: Any) -> Any:
    rest = [one for one in get_args(hint) if one is not type(None)] if _is_union(get_origin(hint)) else []
    return rest[0] if len(rest) == 1 else hint


def _time_hint(hint: Any) -> Any:
    """Microseconds are integers, seconds are not."""
    if get_origin(hint) in (list, tuple, abc.Sequence):
        return list[float]
    return float | None if _is_union(get_origin(hint)) else float


def _typed_properties(kind: Any) -> Iterator[tuple[str, Any, bool, str]]:
    for key, hint in typing.get_type_hints(kind, include_extras=True).items():
        needed = get_origin(hint) is not NotRequired
        yield key, hint if needed else get_args(hint)[0], needed, ""


# --- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a terminal's table: `read` gives the value of a row, or None."""

    key: str
    title: str
    format: Format
    read: Callable[[Any], Any]


@cache
def columns(kind: Any) -> tuple[Column, ...]:
    """The fields with a title, in order; of flat ones their own."""
    return tuple(_columns(kind, lambda row: row))


def _columns(kind: type, read: Callable[[Any], Any]) -> Iterator[Column]:
    for one in members(kind):
        get = _through(read, one.attribute)
        if one.about.flat:
            yield from _columns(_without_none(one.type), get)
        elif one.about.title:
            yield Column(one.key, one.about.title, "clock" if one.is_time else one.about.format, get)


def _through(read: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    return lambda row: None if (inner := read(row)) is None else getattr(inner, name)


def csv_rows(kind: type, rows: Iterable[Any]) -> Iterator[list[str]]:
    """A heading, then a line for each row: the keys and values of its JSON, nested ones as `busiest.at`, lists as JSON.
    What was not measured is empty."""
    keys = list(_leaves(kind, ()))
    yield [".".join(path) for path in keys]
    for row in rows:
        said = document(row)
        yield [_cell(said, path) for path in keys]


def _leaves(kind: type, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for one in members(kind):
        inner = _without_none(_parted(one.type)[0])
        if _is_answer(inner):
            yield from _leaves(inner, above if one.about.flat else (*above, one.key))
        else:
            yield (*above, one.key)


def _cell(said: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = said
    for key in path:
        value = None if value is None else value.get(key)
    if value is None:
        return ""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)

"""One declaration of an answer, and all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest

from zombiescope.model.answer import (
    FLAT,
    HIDDEN,
    OPTIONAL,
    Document,
    Field,
    Header,
    Named,
    Schemas,
    columns,
    csv_rows,
    derived,
    document,
)

Severity = Annotated[Literal["info", "critical"], Named("Severity")]


@dataclass(frozen=True, slots=True)
class Shares:
    user: Annotated[float | None, Field("user", "ratio")]
    system: Annotated[float | None, Field("sys", "ratio", means="in the kernel")]


@dataclass(frozen=True, slots=True)
class Peak:
    """The busiest moment."""

    at_us: int
    busy: float


class Noted(TypedDict):
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    cpu: Annotated[int, Field("core", "number")]
    shares: Annotated[Shares, FLAT]
    peak: Peak | None
    ended_us: Annotated[int | None, Field("ended")]
    secret: Annotated[object, HIDDEN]
    note: Annotated[str | None, OPTIONAL] = None

    @derived(Field("kernel", "ratio"), after="shares")
    def kernel(self) -> float | None:
        return self.shares.system


@dataclass(frozen=True, slots=True)
class Answer(Document):
    """All rows."""

    severity: Severity
    rows: tuple[Row, ...]
    by_name: dict[str, Peak]
    noted: list[Noted]
    from_: int


ROW = Row(3, Shares(0.5, None), Peak(1_500_000, 0.9), None, object())
ANSWER = Answer("info", (ROW,), {"a": Peak(0, 1.0)}, [{"text": "x"}], 7)


def test_a_document_has_the_order_of_the_fields() -> None:
    row = {"cpu": 3, "user": 0.5, "system": None, "kernel": None, "peak": {"at": 1.5, "busy": 0.9}, "ended": None}
    said = document(ANSWER)
    assert said == {
        "severity": "info", "rows": [row], "by_name": {"a": {"at": 0.0, "busy": 1.0}}, "noted": [{"text": "x"}],
        "from": 7,
    }  # fmt: skip
    assert list(said["rows"][0]) == list(row)


def test_what_is_optional_is_left_out_or_there() -> None:
    assert "note" not in document(ROW)
    assert document(Row(3, Shares(0.5, None), None, None, None, "x"))["note"] == "x"


def test_json_stays_as_it_is() -> None:
    assert document({"a": 1}) == {"a": 1}


def test_a_schema_says_what_the_document_holds() -> None:
    schemas = Schemas("#/")
    assert schemas.of(Answer) == {"$ref": "#/Answer"}
    found = schemas.components
    assert list(found) == ["Answer", "Noted", "Peak", "Row", "Severity"]
    assert found["Answer"]["description"] == "All rows."
    assert "description" not in found["Row"]
    assert found["Row"]["required"] == ["cpu", "user", "system", "kernel", "peak", "ended"]
    assert list(found["Row"]["properties"]) == [*found["Row"]["required"], "note"]
    properties = found["Row"]["properties"]
    assert properties["system"] == {"type": ["number", "null"], "description": "in the kernel"}
    assert properties["peak"] == {"anyOf": [{"$ref": "#/Peak"}, {"type": "null"}]}
    assert properties["note"] == {"type": "string"}
    assert found["Peak"]["properties"]["at"] == {"type": "number"}
    assert list(found["Answer"]["properties"]) == ["schema", *document(ANSWER)]


def test_a_header_names_its_arrays_last() -> None:
    @dataclass(frozen=True, slots=True)
    class Picture(Header):
        columns: int

    schemas = Schemas("#/")
    schemas.of(Picture)
    assert list(schemas.components["Picture"]["properties"]) == ["schema", "columns", "arrays"]


def test_a_table_has_the_fields_with_a_title() -> None:
    shown = [(one.title, one.format, one.read(ROW)) for one in columns(Row)]
    assert shown == [
        ("core", "number", 3), ("user", "ratio", 0.5), ("sys", "ratio", None), ("kernel", "ratio", None),
        ("ended", "clock", None),
    ]  # fmt: skip


def test_csv_has_every_figure() -> None:
    assert list(csv_rows(Row, [ROW])) == [
        ["cpu", "user", "system", "kernel", "peak.at", "peak.busy", "ended", "note"],
        ["3", "0.5", "", "", "1.5", "0.9", "", ""],
    ]


@pytest.mark.parametrize("hint", [set[int], bytes, object])
def test_what_no_json_has_is_refused(hint: Any) -> None:
    with pytest.raises(TypeError):
        Schemas().of(hint)

"""No parser of kernel text raises, whatever the text; what is cut off reads like what came before the cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.targets.kernel import PARSERS, samples

from zombiescope.kernel import cgroup_path, interrupts, process

LINES_ARE_WHOLE_OR_ABSENT = {"stat", "softirqs", "interrupts", "schedstat", "netdev", "cgroups", "membership"}
"""Parsers of tables, in which a row must never be read from a part of its line."""


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_has_a_fixture(name: str) -> None:
    assert samples(PARSERS[name][1])


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_arbitrary_bytes(name: str, data: bytes) -> None:
    PARSERS[name][0](data)


@pytest.mark.parametrize("name", PARSERS)
@given(choice=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_text(name: str, choice: st.DataObject) -> None:
    # GIVEN real text with some bytes replaced and the end cut off
    parse, path = PARSERS[name]
    text = bytearray(choice.draw(st.sampled_from(samples(path))))
    for _ in range(choice.draw(st.integers(0, 8))):
        text[choice.draw(st.integers(0, len(text) - 1))] = choice.draw(st.sampled_from(b"\n\t :/-x0\xff\0"))
    # THEN it is parsed as far as it goes
    parse(bytes(text[: choice.draw(st.integers(0, len(text)))]))


@pytest.mark.parametrize("name", sorted(LINES_ARE_WHOLE_OR_ABSENT))
@given(choice=st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_anywhere_reads_as_the_whole_lines_before_it(name: str, choice: st.DataObject) -> None:
    parse, path = PARSERS[name]
    text = choice.draw(st.sampled_from(samples(path)))
    cut = text[: choice.draw(st.integers(0, len(text)))]
    assert parse(cut) == parse(cut[: cut.rfind(b"\n") + 1])


@given(st.lists(st.binary(max_size=300), max_size=6))
@settings(max_examples=100, deadline=None)
def test_interrupts_survive_any_sequence(texts: list[bytes]) -> None:
    kept = interrupts.Interrupts()
    for text in texts:
        for _, _, delta in kept.update(text):
            assert delta > 0
    kept.devices()


@given(choice=st.data())
@settings(max_examples=60, deadline=None)
def test_interrupts_survive_damaged_tables(choice: st.DataObject) -> None:
    kept = interrupts.Interrupts()
    tables = samples("proc/interrupts")
    for _ in range(4):
        text = bytearray(choice.draw(st.sampled_from(tables)))
        text[choice.draw(st.integers(0, len(text) - 1))] = choice.draw(st.sampled_from(b"\n 9x:"))
        assert all(delta > 0 for _, _, delta in kept.update(bytes(text)))


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_path_has_a_name_and_an_owner(path: str) -> None:
    assert cgroup_path.normalise(path).count("/") == path.count("/")
    cgroup_path.owner(path)


@given(
    st.lists(
        st.from_regex(r"[a-z]{1,8}[-_]?[0-9a-f]{0,64}(\.scope|\.slice|\.service)?", fullmatch=True),
        max_size=5,
    )
)
@settings(max_examples=300, deadline=None)
def test_a_normalised_path_stays_as_it_is(parts: list[str]) -> None:
    name = cgroup_path.normalise("/" + "/".join(parts))
    assert cgroup_path.normalise(name) == name


@given(st.binary(max_size=200))
def test_printable_is_printable(data: bytes) -> None:
    assert process.printable(data).isprintable()

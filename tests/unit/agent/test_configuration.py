"""The agent's configuration: every mistake is named with its line and its key, and none hides the next."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from zombiescope.agent import parts
from zombiescope.agent.config.json_schema import schema
from zombiescope.agent.config.load import ConfigurationError, Loaded, load, needs_restart, read
from zombiescope.agent.config.setting import Duration, Size, required, setting
from zombiescope.agent.services import Settings, read_configuration
from zombiescope.cli.main import run

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Target:
    """An entry of a list."""

    url: str = required("Where to.")
    tries: int = setting(3, "How often.", low=1, high=9)


@dataclass(frozen=True, slots=True)
class Inner:
    """A section in a section."""

    depth: int = setting(1, "How deep.")


@dataclass(frozen=True, slots=True)
class Section:
    """Every type there is."""

    on: bool = setting(True, "Switch.")
    count: int = setting(5, "Number.", low=1, high=10)
    ratio: float = setting(0.5, "Ratio.", low=0, high=1)
    name: str = setting("a", "Name.", choices=("a", "beta"))
    wait: Duration = setting(Duration(30.0), "Wait.", low=1, high=3600)
    size: Size = setting(Size(1_000_000), "Size.", low=1000)
    names: tuple[str, ...] = setting((), "Names.", most=3)
    path: str | None = setting(None, "Path.", fixed=True)
    inner: Inner = setting(Inner(), "Inner.")
    targets: tuple[Target, ...] = setting((), "Targets.")


KNOWN = {"first": Section, "second": Inner}


def loaded(text: str, **environment: str) -> Loaded:
    return read(text, "agent.yaml", KNOWN, environment)


def test_what_is_written_is_read() -> None:
    text = """
first:
  on: false
  count: 7
  ratio: 1
  name: beta
  wait: 5m
  size: 2MB
  names: [x, y]
  path: /p
  inner: {depth: 4}
  targets:
    - url: http://a
    - {url: http://b, tries: 9}
"""
    found = loaded(text)
    assert found.mistakes == ()
    assert found.sections["first"] == Section(
        False, 7, 1.0, "beta", Duration(300.0), Size(2_000_000), ("x", "y"), "/p", Inner(4),
        (Target("http://a"), Target("http://b", 9)),
    )  # fmt: skip
    assert found.sections["second"] == Inner()


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "first:\n", "first: {}\nsecond:\n"])
def test_what_is_not_written_has_its_default(text: str) -> None:
    found = loaded(text)
    assert found.mistakes == ()
    assert found.sections == {"first": Section(), "second": Inner()}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("first: {on: 1}", "agent.yaml:1: first.on: is '1'; write true or false"),
        ("first: {count: 11}", "agent.yaml:1: first.count: is 11, out of range; from 1 to 10"),
        ("first: {count: 2.5}", "agent.yaml:1: first.count: is '2.5'; write a whole number"),
        ("first: {ratio: .nan}", "agent.yaml:1: first.ratio: is '.nan'; write a number"),
        ("first: {name: bta}", "agent.yaml:1: first.name: is 'bta'; did you mean beta?"),
        ("first: {wait: 30}", "agent.yaml:1: first.wait: is '30'; write a duration with its unit: 250ms, 30s, 5m, 12h"),
        ("first: {wait: 2h}", "agent.yaml:1: first.wait: is 7200, out of range; from 1 to 3600"),
        ("first: {size: big}", "agent.yaml:1: first.size: 'big' is not a size; write it as 512MB, 2GB or 1GiB"),
        ("first: {names: x}", "agent.yaml:1: first.names: is 'x'; write it as a list: [a, b]"),
        ("first: {names: [a, b, c, d]}", "agent.yaml:1: first.names: has 4 entries; at most 3 are taken"),
        ("first: {targets: [{tries: 2}]}", "agent.yaml:1: first.targets[0].url: is missing; Where to."),
        ("first: 3", "agent.yaml:1: first: is '3'; write keys below it, as on, count, ratio"),
        ("first: {count: 1, count: 2}", "agent.yaml:1: first.count: appears twice; remove one of them"),
        ("first: [", "agent.yaml:1: is not YAML: expected the node content, but found '<stream end>'"),
        ("first: {inner: {dpth: 1}}", "agent.yaml:1: first.inner.dpth: is not known to this version; "
         "did you mean first.inner.depth?"),
        ("frist: {}", "agent.yaml:1: frist: is not known to this version; did you mean first?"),
        ("first:\n" + "[" * 1000, "agent.yaml:2: is not YAML: more than 32 levels"),
        ("first: " + "{a: " * 1000, "agent.yaml:1: is not YAML: more than 32 levels"),
        ("first:\n" + "- " * 1000, "agent.yaml:2: is not YAML: more than 32 levels"),
        ("".join(" " * level + "a:\n" for level in range(99)), "agent.yaml:33: is not YAML: more than 32 levels"),
        ("a: &x [1]\nb: *x", "agent.yaml:2: aliases (*name) are not read here"),
    ],
)  # fmt: skip
def test_a_mistake_has_line_key_and_remedy(line: str, said: str) -> None:
    assert [str(one) for one in loaded(line).mistakes] == [said]


def test_every_mistake_is_named_in_the_order_of_the_file() -> None:
    found = loaded("second:\n  depth: x\nfirst:\n  cuont: 3\n  wait: soon\n")
    assert [(one.where, one.key, one.unknown) for one in found.mistakes] == [
        ("agent.yaml:2", "second.depth", False),
        ("agent.yaml:4", "first.cuont", True),
        ("agent.yaml:5", "first.wait", False),
    ]
    assert found.sections["first"].wait == 30.0


def test_the_environment_stands_over_the_file() -> None:
    found = loaded(
        "first: {count: 2, inner: {depth: 2}}",
        ZOMBIESCOPE_FIRST__COUNT="9",
        ZOMBIESCOPE_FIRST__INNER__DEPTH="3",
        ZOMBIESCOPE_FIRST__NAMES="[p, q]",
        ZOMBIESCOPE_FIRST__PATH="[::1]:9321",
        ZOMBIESCOPE_DIR="/elsewhere",
    )
    assert found.mistakes == ()
    first = found.sections["first"]
    assert (first.count, first.inner.depth, first.names, first.path) == (9, 3, ("p", "q"), "[::1]:9321")


def test_a_mistake_in_the_environment_names_the_variable() -> None:
    found = loaded("", ZOMBIESCOPE_FIRST__COUNT="many", ZOMBIESCOPE_FIRST__CUONT="1")
    assert [str(one) for one in found.mistakes] == [
        "environment: ZOMBIESCOPE_FIRST__CUONT: is not known to this version; did you mean ZOMBIESCOPE_FIRST__COUNT?",
        "$ZOMBIESCOPE_FIRST__COUNT: first.count: is 'many'; write a whole number",
    ]


def test_hostile_text_is_named_and_bounded() -> None:
    found = loaded("first: {\x07: 1}".replace("\x07", '"\\u202e' + "x" * 500 + '"'))
    (mistake,) = found.mistakes
    assert len(mistake.key) <= 60
    assert "\u202e" not in str(mistake)


def test_what_was_changed_and_needs_a_restart_is_known() -> None:
    before, after = Section(), Section(path="/q", count=2)
    assert needs_restart(before, after, "first") == ["first.path"]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file"):
        load(tmp_path / "none.yaml", KNOWN, {})


def test_the_schema_in_the_documents_is_that_of_the_code() -> None:
    """`python -m zombiescope.agent.config.json_schema > docs/agent.schema.json` writes it."""
    assert json.loads((ROOT / "docs/agent.schema.json").read_text()) == schema(parts.sections())


def test_every_section_of_the_agent_can_be_left_out() -> None:
    found = read("", "agent.yaml", parts.sections(), {})
    assert found.mistakes == ()
    assert found.sections["metrics"].listen == "127.0.0.1:9321"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metrics: {listen: 0.0.0.0:9321}", "metrics.listen: 0.0.0.0:9321 is reached from other machines"),
        ("metrics: {listen: nowhere}", "metrics.listen: 'nowhere': nowhere is not an address of this machine"),
        ("recorder: {dir: here}", "recorder.dir: is 'here'"),
    ],
)
def test_settings_that_do_not_go_together_are_mistakes(text: str, said: str) -> None:
    found = read(text, "agent.yaml", parts.sections(), {})
    assert len(found.wrong) == 1
    assert said in str(found.wrong[0])


# --- how the agent takes it ------------------------------------------------------------------------------------------


def settings(path: Path, *, strict: bool) -> Settings:
    return Settings(str(path), strict=strict, node_dir="/nowhere", node="n", beats=0, starts=0)


def test_a_configuration_that_is_newer_than_the_agent_is_used_as_far_as_it_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("metrics: {listen: 127.0.0.1:9400, dialect: 3}\ntelepathy: {on: true}\n")
    found = read_configuration(settings(path, strict=False))
    assert found.sections["metrics"].listen == "127.0.0.1:9400"
    said = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in said] == [
        "zombiescope agent: WARNING: agent.yaml:1: metrics.dialect: is not known to this version",
        "zombiescope agent: WARNING: agent.yaml:2: telepathy: is not known to this version",
    ]
    with pytest.raises(ConfigurationError, match=r"metrics\.dialect"):
        read_configuration(settings(path, strict=True))


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        ("metrics: {listen: 127.0.0.1:9400}", [], 0, "nothing is wrong"),
        ("metrics: {listn: x}", [], 1, "agent.yaml:1: metrics.listn: is not known to this version"),
        ("metrics: {listn: x}", ["--strict"], 1, "did you mean metrics.listen?"),
        ("recorder: {hz: 5000}", [], 1, "agent.yaml:1: recorder.hz: is 5000, out of range; from 0 to 999"),
    ],
)
def test_check_config_says_whether_the_agent_would_start(
    text: str, options: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    assert run(["agent", "--config", str(path), "--check-config", *options]) == code
    assert said in capsys.readouterr().err

"""docs/data/lab-runs.md: the table of a score, and what it cannot show. A round replaces the rows of what it ran.

Everything else of a page that is there stays as it is: rows of other scenarios with the day and the machine they were
run on, and sections that others write (score_widths.py, score_hours.py, the calibration) or a person wrote.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.lab.scenario import HERE, by_id, every
from zombiescope.lab.score import QUIET, row_name, rows

Document = dict[str, Any]

HEAD = ("scenario", "truth", "found first", "culprit reported", "named after", "", "ran")
SCENARIOS = "## The scenarios"
REPAIRED = "## Repaired by its own plan"
OPEN = "## Wrong, not named live, or not run"
_OPEN_MEANS = (
    "Lists, each with its reason, every row above that is wrong, was right only in the recording afterwards, or was "
    "run on older code, and every scenario without a row."
)
_NO_ROW = "not run for this page"
_TITLE = "# Lab runs: all data"
_WHAT = (
    "Written by `zombiescope lab score --page docs/data/lab-runs.md`. Each fault really happens on the machine, is "
    "recorded and diagnosed, and the answer is compared with the known truth. [Accuracy](../accuracy.md) summarises "
    "the results. *Ran* is the date and the machine of a row."
)
_COLUMNS = (
    "*Named after* is the time from the start of the fault until the live diagnosis had reported the right pattern and "
    "culprit. *Culprit reported* is the name, unit and cgroup that the diagnosis blamed."
)

Row = tuple[str, ...]


def page_of(results: Sequence[Document]) -> str:
    """A new page."""
    table = _ran_rows(results)
    parts = [_TITLE, _WHAT, headline(table), _table(HEAD, table), *_elsewhere(results), _COLUMNS]
    parts += [_open_section(_open_lines(results, table, {}))]
    parts += [_repaired_section(results)] if any(one.get("fix") for one in results) else []
    parts += [_scenarios_section(table)]
    return "\n\n".join(parts) + "\n"


def into(page: str, results: Sequence[Document]) -> str:
    """A page with these results in place of those that it had of the same scenarios."""
    parts = _Parts.of(page)
    if parts is None:
        return page_of(results)
    ran = _ran_rows(results)
    table = _merged(parts.table, ran)
    opened = _open_lines(results, table, parts.opened)
    head = re.sub(r"\*\*First pattern right .*?\*\*", lambda _: headline(table), parts.head, count=1)
    after = parts.after
    for line in _elsewhere(results):
        after = re.sub(r"^Rows with \*\(node\)\*.*$", line.replace("\\", ""), after, flags=re.MULTILINE)
    made = f"{head}{_table(HEAD, table)}{after}"
    made = _with_section(made, OPEN, _open_section(opened))
    if any(one.get("fix") for one in results):
        made = _with_section(made, REPAIRED, _repaired_section(results))
    return _with_section(made, SCENARIOS, _scenarios_section(table)).rstrip("\n") + "\n"


def headline(table: Sequence[Row]) -> str:
    """Of the rows, whenever each of them ran."""
    faults = [row for row in table if row[1] != QUIET]
    healthy = [row for row in table if row[1] == QUIET]
    right = [row for row in faults if row[5] == "right"]
    seconds = [float(row[4].removesuffix(" s")) for row in faults if row[4].endswith(" s")]
    live = f"; named live in {len(seconds)}, after {statistics.median(seconds):.1f} s at the median" if seconds else ""
    quiet = sum(row[5] == "right" for row in healthy)
    calm = f"; no warning in {quiet} of {len(healthy)} healthy loads" if healthy else ""
    named = sum(row[1] == row[2] for row in faults)
    return f"**First pattern right in {named} of {len(faults)}, pattern and culprit in {len(right)}{live}{calm}.**"


# --- the table -------------------------------------------------------------------------------------------------------


def _ran_rows(results: Sequence[Document]) -> list[Row]:
    ran = [one for one in results if one["skipped"] is None]
    return [(*cells, one["ran"]) for one, cells in zip(ran, rows(ran), strict=True)]


def _merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    new = {row[0]: row for row in now}
    kept = [new.pop(row[0], row) for row in before]
    return [*kept, *new.values()]


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    made = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*made, *(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)])


def _elsewhere(results: Sequence[Document]) -> list[str]:
    places = {one["where"]: None for one in results if one["where"] != HERE and one["skipped"] is None}
    return [f"Rows with *(node)* ran in {' and '.join(places)}: a whole machine with systemd."] if places else []


# --- what is not right -----------------------------------------------------------------------------------------------


def _open_lines(results: Sequence[Document], table: Sequence[Row], before: Mapping[str, str]) -> list[str]:
    """Of each row that is not right and live, and of each scenario without a row, by name. What was written about a row
    that is still as it was stays."""
    now = {row_name(one): one for one in results}
    found: dict[str, str] = {}
    for row in table:
        name = row[0]
        if name in now and now[name]["skipped"] is None:
            why = _why_open(now[name])
        else:
            why = before.get(name) or _why_open_row(row)
        if why:
            found[name] = why
    shown = {row[0].removesuffix(" (node)") for row in table}
    for one in every():
        if one.id not in shown:
            skipped = next((each["skipped"] for each in results if each["scenario"] == one.id), None)
            found[one.id] = f"not run: {skipped}" if skipped else before.get(one.id, _NO_ROW)
    return [f"- **{name}**: {why}" for name, why in found.items()]


def _why_open(one: Document) -> str | None:
    if not one["pass"]:
        return _why_wrong(one)
    if one["kind"] == "fault" and one["onset_to_named_s"] is None:
        said = one["live"]["pattern"]
        spoke = f"reported {said}, {one['live']['culprit'] or 'no culprit'}" if said else "reported nothing"
        return f"right from the recording, not live: live diagnosis {spoke} in the {one['seconds']:.0f} s it lasted"
    return None


def _why_wrong(one: Document) -> str:
    if one["kind"] != "fault":
        said = "; ".join(alarm["summary"] or "a warning without a cause" for alarm in one["false_alarms"])
        return f"a false alarm: {said}"
    found, expected = one["found"], one["expected"]
    said = f"{found['pattern']}, {found['culprit'] or 'no culprit'}" if found["pattern"] else "nothing"
    blames = " ".join(word for word in (expected["culprit"], expected["image"], expected["pod"]) if word)
    return f"wrong: the answer was {said}; the truth is {expected['pattern']}, {blames}"


def _why_open_row(row: Row) -> str | None:
    if row[5] != "right":
        return f"wrong: the answer was {row[2]}, {row[3] or 'no culprit'}; the truth is {row[1]}"
    return "right from the recording, not live" if row[4] == "-" else None


def _open_section(lines: Sequence[str]) -> str:
    return f"{OPEN}\n\n{_OPEN_MEANS}\n\n" + ("\n".join(lines) if lines else "Nothing.")


# --- other sections --------------------------------------------------------------------------------------------------


def _scenarios_section(table: Sequence[Row]) -> str:
    names = {row[0].removesuffix(" (node)"): None for row in table}
    return f"{SCENARIOS}\n\n" + _table(("scenario", "what it does", "culprit", "kernel frames seen"), _scenarios(names))


def _scenarios(names: Iterable[str]) -> Iterator[Row]:
    known = {one.id for one in every()}
    for scenario in (by_id(name) for name in names if name in known):
        yield scenario.id, scenario.does, " ".join(scenario.truth.blames) or "no one", scenario.frames or "-"


def _repaired_section(results: Sequence[Document]) -> str:
    head = ("scenario", "steps that were applied", "memory cgroups", "verdict", "what was seen afterwards")
    return f"{REPAIRED}\n\n{_table(head, _repairs(results))}"


def _repairs(results: Sequence[Document]) -> Iterator[Row]:
    for one in results:
        if (fix := one.get("fix")) is not None:
            done = [step["id"].partition(":")[0] for step in fix["steps"] if step["state"] == "applied"]
            counts = f"{fix['cgroups_before_fix']:,} -> {fix['cgroups_after_fix']:,}"
            yield row_name(one), ", ".join(done) or "-", counts, fix["verdict"], "; ".join(fix["checks"])


# --- a page that is there --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    head: str
    """Before the table."""
    table: list[Row]
    after: str
    opened: dict[str, str]
    """Name -> what the page says about it in its list of what is open."""

    @classmethod
    def of(cls, page: str) -> _Parts | None:
        """None for a page without such a table."""
        found = re.search(r"^\| scenario \| truth \|.*\n\|[-|]+\|\n((?:\|.*\n)*)", page, re.MULTILINE)
        if found is None:
            return None
        lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()]
        table = [tuple([*cells, *[""] * len(HEAD)][: len(HEAD)]) for cells in lines]
        section = re.search(_section(OPEN), page, re.DOTALL | re.MULTILINE)
        opened = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", section[0], re.MULTILINE) if section else []
        return cls(page[: found.start()], table, "\n" + page[found.end() :], dict(opened))


def _section(title: str) -> str:
    return rf"^{re.escape(title)}$.*?(?=^## |\Z)"


def _with_section(page: str, title: str, section: str) -> str:
    """In place of the one that it had, or before the first section."""
    made = f"{section}\n\n"
    page, count = re.subn(_section(title), lambda _: made, page, flags=re.DOTALL | re.MULTILINE)
    if count:
        return page
    first = re.search(r"^## ", page, re.MULTILINE)
    return f"{page[: first.start()]}{made}{page[first.start() :]}" if first else f"{page.rstrip()}\n\n{made}"

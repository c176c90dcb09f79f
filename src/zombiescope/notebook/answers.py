"""What a recording answers, as values that show themselves: text in a terminal, a picture or a table in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.base import safe_files
from zombiescope.base.errors import QuestionError, UserError
from zombiescope.notebook import html

if TYPE_CHECKING:
    import matplotlib.axes
    import numpy as np
    import numpy.typing as npt

    from zombiescope.documents.flamegraph import Flamegraph as FlamegraphAnswer
    from zombiescope.documents.heatmap import HeatmapAnswer
    from zombiescope.documents.incidents import DiagnosisAnswer

_COLUMNS = 100


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """What happened in a window. `incidents` are as `zombiescope diagnose --json` prints them, the worst first."""

    answer: DiagnosisAnswer

    @property
    def document(self) -> dict[str, Any]:
        return self.answer.document()

    @property
    def incidents(self) -> list[dict[str, Any]]:
        return list(self.document["incidents"])

    def markdown(self) -> str:
        """The report with its chain of evidence, for a ticket."""
        from zombiescope.diagnosis.report.markdown import markdown

        return markdown(self.answer.found, self.answer.heading, lambda at_us: self.answer.window.clock(at_us, 1))

    def __repr__(self) -> str:
        from zombiescope.diagnosis.report.terminal import lines

        text = [self.answer.heading, ""]
        for line in lines(self.answer.found, lambda at_us: self.answer.window.clock(at_us, 1)):
            text.append(line.plain)
        return "\n".join(text)

    def _repr_html_(self) -> str:
        rows = [
            (each["severity"], clocks, cause.get("pattern", "?"), cause.get("summary") or _symptom(each))
            for each in self.incidents
            for cause in (each["causes"] or [{}])[:1]
            for clocks in (self._clocks(each),)
        ]
        found = html.table(rows, ("severity", "when", "pattern", "what")) if rows else "<p>no problem was found</p>"
        details = f"<details><summary>how we know</summary>{html.preformatted(repr(self))}</details>"
        return html.heading(self.answer.heading) + found + details

    def _clocks(self, incident: dict[str, Any]) -> str:
        start, end = (self.answer.window.clock(round(incident[side] * 1e6)) for side in ("from", "to"))
        return f"{start} – {end}"


def _symptom(incident: dict[str, Any]) -> str:
    return next((str(one.get("text")) for one in incident["symptoms"]), "not explained")


class Picture(ABC):
    """Something that is drawn: as SVG in a notebook, as text elsewhere."""

    __slots__ = ()

    @abstractmethod
    def svg(self) -> str:
        """The picture of a notebook."""

    @abstractmethod
    def text(self, columns: int = _COLUMNS) -> str:
        """The picture of a terminal of so many columns."""

    def save(self, path: Path | str) -> Path:
        """Writes FILE.svg or FILE.txt; the commands of the same name also write interactive pages. Raises UserError."""
        place = Path(path)
        drawn = {".svg": self.svg, ".txt": self.text}.get(place.suffix)
        if drawn is None:
            raise QuestionError(f"{place}: the name must end in .svg or .txt")
        with safe_files.output(place) as file:
            file.write(drawn().encode())
        return place

    def __repr__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass(frozen=True, slots=True, repr=False)
class Flamegraph(Picture):
    """Where the time went. `root` is the tree as `zombiescope flamegraph --json` prints it."""

    answer: FlamegraphAnswer

    @property
    def total(self) -> int:
        """Samples."""
        return int(self.answer.tree.total)

    @property
    def root(self) -> dict[str, Any]:
        return dict(self.answer.document()["root"])

    def svg(self) -> str:
        from zombiescope.query import svg

        return svg.flamegraph(self.answer.tree_for("svg"), self.answer.title, icicle=self.answer.question.invert)

    def text(self, columns: int = _COLUMNS) -> str:
        from zombiescope.query import terminal

        return f"{self.answer.title}\n{terminal.plain(terminal.flamegraph(self.answer.tree, columns))}"


@dataclass(frozen=True, slots=True, repr=False)
class Heatmap(Picture):
    """When it was busy: `values[column, row]` samples; a column is `column_s` long, the first begins at `start`."""

    answer: HeatmapAnswer

    @property
    def values(self) -> npt.NDArray[np.int64]:
        return self.answer.drawn.values

    @property
    def start(self) -> float:
        """Unix seconds."""
        return self.answer.drawn.start_us / 1e6

    @property
    def column_s(self) -> float:
        return self.answer.drawn.column_us / 1e6

    def svg(self) -> str:
        from zombiescope.query import svg

        return svg.heatmap(self.answer.drawn, self.answer.title, self.answer.window.zone)

    def text(self, columns: int = _COLUMNS) -> str:
        from zombiescope.query import terminal

        lines = terminal.heatmap(self.answer.drawn, columns, self.answer.window.zone)
        return f"{self.answer.title}\n{terminal.plain(lines)}"

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Into a figure of matplotlib, to draw other things over it. Raises UserError where it is not installed."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise UserError("matplotlib is not installed", "pip install matplotlib") from None
        axes = plt.gca() if ax is None else ax
        drawn = self.answer.drawn
        seconds, rows = drawn.columns * self.column_s, drawn.rows
        axes.imshow(drawn.values.T, aspect="auto", origin="lower", extent=(0, seconds, 0, rows), cmap="inferno")
        axes.set(title=self.answer.title, xlabel="seconds", ylabel="core" if drawn.cores is not None else "of a second")
        return axes

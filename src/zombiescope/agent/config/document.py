"""The YAML file as a tree of nodes that know their line. Nothing in it is executed or expanded: aliases are refused."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from zombiescope.base.text import printable

MOST_BYTES = 1 << 20
MOST_NODES = 20_000
DEEPEST = 32
"""Levels of [], {} and indentation. PyYAML's scanner takes the square of this depth, its composer calls itself for
each level, and no setting needs more than three."""


class Loader(yaml.SafeLoader):
    """Reads plain YAML and refuses deep nesting before the scanner pays for it."""

    def fetch_flow_collection_start(self, TokenClass: type) -> None:  # noqa: N803, the base class calls it that
        self._refuse_depth()
        super().fetch_flow_collection_start(TokenClass)

    def add_indent(self, column: int) -> bool:
        if self.indent < column:
            self._refuse_depth()
        return bool(super().add_indent(column))

    def _refuse_depth(self) -> None:
        if self.flow_level + len(self.indents) >= DEEPEST:
            raise yaml.scanner.ScannerError(None, None, f"more than {DEEPEST} levels", self.get_mark())


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: where (file and line, or the variable), which key, what, and how to fix it."""

    where: str
    key: str
    what: str
    fix: str | None = None
    unknown: bool = False
    """A key that this version does not know: perhaps a newer one does."""

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        return printable(f"{self.where}: {key}{self.what}" + (f"; {self.fix}" if self.fix else ""))


class NotYamlError(ValueError):
    """The whole file cannot be read; `mistake` says where."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(str(mistake))
        self.mistake = mistake


def compose(text: str, name: str) -> yaml.Node | None:
    """The root of the document; None for an empty one. Raises NotYamlError."""
    if len(text) > MOST_BYTES:
        raise NotYamlError(Mistake(name, "", f"is larger than {MOST_BYTES >> 20} MB"))
    try:
        _refuse_aliases(text, name)
        root: yaml.Node | None = yaml.compose(text, Loader)
        return root
    except NotYamlError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{name}:{mark.line + 1}" if mark else name
        raise NotYamlError(Mistake(line, "", f"is not YAML: {error.problem or error.context}")) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise NotYamlError(Mistake(name, "", f"is not YAML: {' '.join(str(error).split())[:200]}")) from error


def _refuse_aliases(text: str, name: str) -> None:
    """A page of aliases of aliases is a gigabyte when it is read, and no configuration needs one."""
    for count, event in enumerate(yaml.parse(text, Loader)):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise NotYamlError(Mistake(f"{name}:{line}", "", "aliases (*name) are not read here"))
        if count > MOST_NODES:
            raise NotYamlError(Mistake(name, "", f"has more than {MOST_NODES} entries"))


def line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1

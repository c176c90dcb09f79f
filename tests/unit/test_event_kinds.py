"""Every kind of event that the source makes is one that `events --kind` knows, and each of those is made somewhere."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from zombiescope.kernel.log_formats import FORMATS
from zombiescope.query import events
from zombiescope.store.event import KINDS

SOURCE = Path(__file__).parents[2] / "src" / "zombiescope"
MADE_BY = {
    "Event": ("zombiescope.store.event", 1),
    "LogEvent": ("zombiescope.kernel.log_formats", 0),
    "UnitEvent": ("zombiescope.node.systemd.units", 1),
    "PodEvent": ("zombiescope.node.cluster.changes", 1),
    "Report": ("zombiescope.node.ray.report", 1),
}
"""Class -> the module that has it, and the place of `kind` among its fields."""
FED = {"kind", "source", "severity"}
"""The keys of an event that is handed to the recorder as a document (base/feed.py)."""
PASSED_ON = {"recorder/feed.py": "_event", "query/events.py": "_event"}
"""What is given a kind by somebody else: the socket of the feed, and the table that is read back."""


class UnresolvedError(Exception):
    """The scan cannot say which kinds an expression stands for."""


@cache
def modules() -> dict[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def made(path: str) -> Iterator[tuple[ast.expr, list[ast.FunctionDef]]]:
    """The expression of each kind, and the functions around it, the innermost last."""
    tree = modules()[path]
    names = _classes(tree, path)
    stack: list[tuple[ast.AST, list[ast.FunctionDef]]] = [(tree, [])]
    while stack:
        node, around = stack.pop()
        inside = [*around, node] if isinstance(node, ast.FunctionDef) else around
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            keywords = {word.arg: word.value for word in node.keywords}
            yield keywords.get("kind") or node.args[MADE_BY[node.func.id][1]], around
        elif isinstance(node, ast.Dict):
            keys = {key.value: value for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant)}  # fmt: skip
            if keys.keys() >= FED and path.startswith(("agent/", "node/", "cli/")):
                yield keys["kind"], around


def _classes(tree: ast.Module, path: str) -> set[str]:
    imported = {(node.module, alias.name) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                for alias in node.names}  # fmt: skip
    own = "zombiescope." + path.removesuffix(".py").replace("/", ".")
    return {name for name, (module, _) in MADE_BY.items() if (module, name) in imported or module == own}


def kinds_of(value: ast.AST, around: list[ast.FunctionDef], path: str) -> set[str]:
    """What an expression may be, as far as it stands in the source. Raises UnresolvedError."""
    if isinstance(value, ast.Constant):
        return {value.value} if isinstance(value.value, str) else set()
    if isinstance(value, ast.IfExp):
        return kinds_of(value.body, around, path) | kinds_of(value.orelse, around, path)
    if isinstance(value, ast.Attribute) and value.attr == "kind":
        return set()  # of another one of these, made elsewhere
    if isinstance(value, ast.Name):
        return _of_name(value.id, around, path)
    raise UnresolvedError(ast.unparse(value))


def _of_name(name: str, around: list[ast.FunctionDef], path: str) -> set[str]:
    for function in reversed(around):
        if name in [argument.arg for argument in function.args.args]:
            return _of_parameter(name, function, path)
        if found := [_assigned(node, name, around, path) for node in ast.walk(function) if _binds(node, name)]:
            return set().union(*found)
    module = importlib.import_module("zombiescope." + path.removesuffix(".py").replace("/", "."))
    held = getattr(module, name, None)
    if not isinstance(held, str):
        raise UnresolvedError(name)
    return {held}


def _binds(node: ast.AST, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target))


def _assigned(node: ast.AST, name: str, around: list[ast.FunctionDef], path: str) -> set[str]:
    assert isinstance(node, ast.Assign)
    [target] = node.targets
    if isinstance(target, ast.Name):
        return kinds_of(node.value, around, path)
    assert isinstance(target, ast.Tuple)
    place = [isinstance(each, ast.Name) and each.id == name for each in target.elts].index(True)
    return _in_tuple(node.value, place, around, path)


def _in_tuple(value: ast.AST, place: int, around: list[ast.FunctionDef], path: str) -> set[str]:
    """What may stand at a place of a tuple: written there, returned by a function of the module, or from a table."""
    if isinstance(value, ast.Tuple):
        return kinds_of(value.elts[place], around, path)
    if isinstance(value, ast.Constant) and value.value is None:
        return set()
    if isinstance(value, ast.IfExp):
        return _in_tuple(value.body, place, around, path) | _in_tuple(value.orelse, place, around, path)
    if isinstance(value, ast.Name):
        bound = [node.value for node in ast.walk(around[-1]) if isinstance(node, ast.Assign) and _binds(node, value.id)]
        return set().union(*(_in_tuple(each, place, around, path) for each in bound))
    functions = {node.name: node for node in ast.walk(modules()[path]) if isinstance(node, ast.FunctionDef)}
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in functions:
        function = functions[value.func.id]
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        return set().union(*(_in_tuple(each, place, [function], path) for each in returns))
    return {entry[place] for entry in _table(value, path).values() if entry[place] is not None}


def _table(value: ast.AST, path: str) -> dict[object, tuple[str, ...]]:
    """The module's table that is looked into: TABLE[key] or TABLE.get(key, ...)."""
    looked = value.func if isinstance(value, ast.Call) else value
    name = getattr(getattr(looked, "value", None), "id", None)
    module = importlib.import_module("zombiescope." + path.removesuffix(".py").replace("/", "."))
    held = getattr(module, name, None) if name else None
    if not isinstance(held, dict):
        raise UnresolvedError(ast.unparse(value))
    return held


def _of_parameter(name: str, function: ast.FunctionDef, path: str) -> set[str]:
    """What its callers in the same module give it."""
    place = [argument.arg for argument in function.args.args].index(name)
    found: set[str] = set()
    for node, around in _calls(modules()[path]):
        if isinstance(node.func, ast.Name) and node.func.id == function.name:
            found |= _given(node.args[place], around, path)
    if not found:
        raise UnresolvedError(f"{function.name}({name})")
    return found


def _given(value: ast.expr, around: list[ast.AST], path: str) -> set[str]:
    """An argument; one that a comprehension draws from a tuple of the function is each of its members."""
    functions = [each for each in around if isinstance(each, ast.FunctionDef)]
    loops = [loop for each in around if isinstance(each, ast.ListComp) for loop in each.generators]
    for loop in loops:
        if isinstance(value, ast.Name) and isinstance(loop.target, ast.Tuple):
            names = [each.id for each in loop.target.elts if isinstance(each, ast.Name)]
            if value.id in names and isinstance(loop.iter, ast.Name):
                rows = [node.value for node in ast.walk(functions[-1]) if _binds(node, loop.iter.id)
                        and isinstance(node, ast.Assign)]  # fmt: skip
                cells = [row.elts[names.index(value.id)] for table in rows if isinstance(table, ast.Tuple)
                         for row in table.elts if isinstance(row, ast.Tuple)]  # fmt: skip
                return set().union(*(kinds_of(cell, functions, path) for cell in cells))
    return kinds_of(value, functions, path)


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    stack: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while stack:
        node, around = stack.pop()
        if isinstance(node, ast.Call):
            yield node, around
        inside = [*around, node] if isinstance(node, ast.FunctionDef | ast.ListComp) else around
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]


@cache
def found() -> dict[str, set[str]]:
    """Kind -> the files that make it."""
    kinds: dict[str, set[str]] = {}
    for path in modules():
        for value, around in made(path):
            if path in PASSED_ON and around and around[-1].name == PASSED_ON[path]:
                continue
            try:
                for kind in kinds_of(value, around, path):
                    kinds.setdefault(kind, set()).add(path)
            except UnresolvedError as error:
                pytest.fail(f"{path}: the kind {error} is no constant: nobody can know whether it is in event.KINDS")
    return kinds


def test_every_kind_that_is_made_is_known() -> None:
    made_of_lines = {line.kind for line in FORMATS}
    strange = {kind: sorted(files) for kind, files in found().items() if kind not in KINDS | made_of_lines}
    assert not strange, f"add to KINDS in store/event.py: {strange}"


def test_every_known_kind_is_made_somewhere() -> None:
    assert KINDS - found().keys() - {"mark"} == set()
    assert events.known_kinds() == KINDS | {line.kind for line in FORMATS}


def test_the_scan_finds_what_hid_before() -> None:
    hidden = {"tasks_wait", "tcp_retransmits", "driver_unresponsive", "python_unread", "cpu_online", "cpu_offline"}
    assert hidden <= found().keys()


def test_the_scan_reads_the_places_of_the_fields() -> None:
    for name, (module, place) in MADE_BY.items():
        fields = list(inspect.signature(getattr(importlib.import_module(module), name)).parameters)
        assert fields[place] == "kind", name


def test_events_and_the_tab_key_take_every_kind() -> None:
    from zombiescope.cli import completion

    assert events.known_kinds() == set(completion.kinds(""))

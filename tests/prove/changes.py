"""What is changed in the scheduling core to see whether the tests notice it.

Comparisons, arithmetic, `and` and `or`, conditions, numbers, truth values, `min` and `max`, `any` and `all`,
and single statements, which are left out. Words for people, annotations and defaults of data classes stay as
they are. A mutant keeps its name while the code does.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parents[2] / "operator" / "agentjobs" / "scheduling"

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.RShift: ast.LShift,
    ast.LShift: ast.RShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Delete, ast.Continue, ast.Break)
_LEFT_ALONE = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)


class Mutant(NamedTuple):
    """One change: in which module and function, what becomes of what, and its number there."""

    module: str
    place: str
    change: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.module}.{self.place}: {self.change}"


UNCHANGED = Mutant("", "", "nothing", -1)


def mutants() -> Iterator[Mutant]:
    """Yield every mutant; those with the same words are numbered."""
    for path in sorted(SOURCES.glob("*.py")):
        seen: dict[str, int] = {}
        for number, (place, node, other) in enumerate(_swaps(_parsed(path.stem))):
            words = f"{_words(node)} -> {_words(other)}"
            seen[place + words] = count = seen.get(place + words, 0) + 1
            yield Mutant(path.stem, place, words if count == 1 else f"{words} ({count})", number)


def tree_of(mutant: Mutant) -> ast.Module:
    """Return the changed tree of a mutant."""
    tree = _parsed(mutant.module)
    _, node, other = next(islice(_swaps(tree), mutant.number, None))
    return _with(tree, node, other)


def _parsed(module: str) -> ast.Module:
    return ast.parse((SOURCES / f"{module}.py").read_text())


def _swaps(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield what may be replaced with what, and in which function."""
    for place, node in _nodes(tree):
        for other in _others(node):
            yield place, node, other


def _nodes(tree: ast.Module) -> list[tuple[str, ast.AST]]:
    """Return every node that may be changed, with the function it is in."""
    found: list[tuple[str, ast.AST]] = []

    def visit(node: ast.AST, place: str) -> None:
        if isinstance(node, _LEFT_ALONE):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{place}.{node.name}" if place else node.name
            for statement in node.body:
                if isinstance(node, ast.FunctionDef) or isinstance(statement, ast.FunctionDef):
                    visit(statement, place)
            return
        if place:
            found.append((place, node))
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # the lengths of zipped amounts never differ
        for name, value in ast.iter_fields(node):
            if name == "annotation":
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child, place)

    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            visit(statement, "")
    return found


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node may be replaced with."""
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            ops = list(node.ops)
            ops[index] = _COMPARISONS[type(operator)]()
            yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield ast.Name(_NAMES[node.id], node.ctx)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, _STATEMENTS) and not _is_docstring(node):
        yield ast.Pass()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _words(node: ast.AST) -> str:
    """Return a node in one line; of a compound statement its head."""
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).splitlines()[0]


def _with(tree: ast.Module, node: ast.AST, other: ast.AST) -> ast.Module:
    """Return the tree with one node in place of another."""
    swap: Callable[[ast.AST], ast.AST] = _Swap(node, other).visit
    changed = swap(tree)
    assert isinstance(changed, ast.Module)
    return ast.fix_missing_locations(changed)


class _Swap(ast.NodeTransformer):
    """Copies a tree, with one node in place of another."""

    def __init__(self, node: ast.AST, other: ast.AST) -> None:
        self._node, self._other = node, other

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._node:
            return copy.deepcopy(self._other)
        twin = type(node)(
            **{
                name: [self.visit(part) if isinstance(part, ast.AST) else part for part in value]
                if isinstance(value, list)
                else self.visit(value)
                if isinstance(value, ast.AST)
                else value
                for name, value in ast.iter_fields(node)
            }
        )
        return ast.copy_location(twin, node)

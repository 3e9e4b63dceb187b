"""Conditions on combinations, the language of `sweep.when`, `sweep.include` and `sweep.exclude`.

    retriever == bm25                                a word to the right of a comparison is a string
    retriever.k1 > 1.2 and retriever.b < 0.3         a dotted name is a key, and so is a plain name to the left
    retriever in [dense, hybrid] or not 0.1 < retriever.alpha < 0.9
    retriever.parts.lexical.k1 >= 2 * retriever.parts.lexical.b
    retriever@retriever.parts.lexical == sqlite_fts  a group at a package
    key('encoder.my-setting') == 'a b'               any other key; any other string has quotes

Comparisons (== != < <= > >= in, not in), and, or, not, + - * / // %, numbers, strings, lists, true, false, null. A
comparison with a null value is false, except `== null` and `!= null`; arithmetic with a null value is null.

Conditions are parsed with Python's grammar but never run as Python. The caller supplies the values of keys.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runner.config.objects import ConfigError

Read = Callable[[str], Any]
"""Returns the value of a key, None for null."""

Term = Callable[[Read], Any]

_LITERALS = {"true": True, "false": False, "null": None, "none": None}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, among: value in among,
    ast.NotIn: lambda value, among: value not in among,
}
_ARITHMETIC: Mapping[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


@dataclass(frozen=True, eq=False)
class Expression:
    """A condition. `place` is the setting that contains it, for messages; `keys` are the keys that it may read.

    `words` are the pairs of a key and a string that it compares.
    """

    place: str
    text: str
    keys: frozenset[str]
    words: frozenset[tuple[str, str]]
    _term: Term

    def holds(self, read: Read) -> bool:
        """Return whether the condition is true for the values that `read` returns; raises `ConfigError`."""
        try:
            return _truth(self._term(read))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ConfigError(f"{self.place}: {self.text}: {error}") from error


def parse(text: str, place: str) -> Expression:
    """Parse a condition; raises `ConfigError`."""
    keys: set[str] = set()
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        term = _term(tree, keys)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = getattr(error, "msg", None) or str(error) or "too deep"
        raise ConfigError(
            f"{place}: {text}: invalid condition ({what}); write conditions as in: retriever == bm25 and "
            "retriever.k1 > 1"
        ) from error
    return Expression(place, text, frozenset(keys), frozenset(_words(tree)), term)


def _term(node: ast.expr, keys: set[str], word: bool = False) -> Term:
    """Return a function that computes a node, and add its keys; with `word`, a plain name is a string."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return _constant(node.value)
        case ast.Name(id=name) if name.lower() in _LITERALS:
            return _constant(_LITERALS[name.lower()])
        case ast.Name(id=name) if word:
            return _constant(name)
        case ast.List() | ast.Tuple() | ast.Set():
            elements = [_term(element, keys, word=True) for element in node.elts]
            return lambda read: [element(read) for element in elements]
        case ast.BoolOp():
            parts, several = [_term(part, keys) for part in node.values], all if isinstance(node.op, ast.And) else any
            return lambda read: several(_truth(part(read)) for part in parts)
        case ast.UnaryOp(op=ast.Not()):
            negated = _term(node.operand, keys)
            return lambda read: not _truth(negated(read))
        case ast.Compare():
            return _comparison(node, keys)
        case ast.UnaryOp() | ast.BinOp() if type(node.op) in _ARITHMETIC:
            return _arithmetic(node, keys)
    return _reading(_key(node), keys)


def _words(tree: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield each key with each string that it is compared with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, (ast.Name, ast.Attribute, ast.BinOp, ast.Call)):
            sides = [e for c in node.comparators for e in (c.elts if isinstance(c, (ast.List, ast.Tuple)) else [c])]
            names = (
                element.id if isinstance(element, ast.Name) else getattr(element, "value", None) for element in sides
            )
            words = [name for name in names if isinstance(name, str) and name.lower() not in _LITERALS]
            try:
                key = _key(node.left)
            except ValueError:
                continue  # the left side is computed
            yield from ((key, word) for word in words)


def _constant(value: Any) -> Term:  # noqa: ANN401 (any literal)
    return lambda read: value


def _reading(key: str, keys: set[str]) -> Term:
    keys.add(key)
    return lambda read: read(key)


def _key(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute():
            return f"{_key(node.value)}.{node.attr}"
        case ast.BinOp(op=ast.MatMult()):
            return f"{_key(node.left)}@{_key(node.right)}"
        case ast.Call(func=ast.Name(id="key"), args=[ast.Constant(value=str(name))], keywords=[]):
            return name
    raise ValueError(f"{ast.unparse(node)} should be a key, a value or a comparison")


def _comparison(node: ast.Compare, keys: set[str]) -> Term:
    terms = [_term(node.left, keys), *(_term(right, keys, word=True) for right in node.comparators)]
    if any(type(op) not in _COMPARISONS for op in node.ops):
        raise ValueError("`is` is not supported; compare values with ==")
    null = [_is_null(element) for element in (node.left, *node.comparators)]
    pairs = [(_COMPARISONS[type(op)], i, null[i] or null[i + 1]) for i, op in enumerate(node.ops)]

    def compare(read: Read) -> bool:
        left = terms[0](read)
        for holds, i, with_null in pairs:
            right = terms[i + 1](read)
            try:
                if (not with_null and (left is None or right is None)) or not holds(left, right):
                    return False
            except TypeError:
                raise TypeError(f"{left!r} and {right!r} cannot be compared") from None
            left = right
        return True

    return compare


def _is_null(node: ast.expr) -> bool:
    """Return whether a node is a literal null or a list with one."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name):
            return name.lower() in _LITERALS and _LITERALS[name.lower()] is None
        case ast.List() | ast.Tuple() | ast.Set():
            return any(_is_null(element) for element in node.elts)
    return False


def _arithmetic(node: ast.UnaryOp | ast.BinOp, keys: set[str]) -> Term:
    operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    terms, compute = [_term(operand, keys) for operand in operands], _ARITHMETIC[type(node.op)]

    def apply(read: Read) -> Any:  # noqa: ANN401 (a number or null)
        values = [term(read) for term in terms]
        for value in values:
            if value is not None and not isinstance(value, (int, float)):
                raise TypeError(f"{value!r} is not a number")
        return None if None in values else compute(*values)

    return apply


def _truth(value: Any) -> bool:  # noqa: ANN401 (any value)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError(f"{value!r} is neither true nor false; compare it with a value")

"""What a source text does, told from how it is written: a fingerprint of its syntax tree.

Left out is what no run can hang on: comments, layout, docstrings and other texts that stand alone, the annotations of
functions' arguments, of what they return and of variables outside of classes, and what type checkers alone read
(``if TYPE_CHECKING:``). Annotations within classes stay, for dataclasses and models are made of them.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator

DIGITS = 12  # of a hash
UNREAD = {"ctx", "kind", "type_comment", "type_ignores"}  # fields of nodes: they follow from others, or are comments
TYPES_ALONE = "TYPE_CHECKING"


def syntax_tree(text: str) -> ast.Module:
    """The tree of a source text, without what type checkers alone read.

    Raises:
        SyntaxError: if it is none of Python.
    """
    tree: ast.Module = _Played().visit(ast.parse(text))
    return tree


def meaning_of(tree: ast.Module) -> str:
    """The fingerprint of a syntax tree: equal where nothing differs but what is left out, see above.

    It does not depend on the version of Python, as far as this reads a text alike.
    """
    return hashlib.sha256("".join(_written(tree)).encode()).hexdigest()[:DIGITS]


class _Played(ast.NodeTransformer):
    """Takes out what only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        name = getattr(node.test, "id", getattr(node.test, "attr", None))
        if name != TYPES_ALONE:
            return self.generic_visit(node)
        return [self.visit(one) for one in node.orelse]

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node  # nothing lies below, and many nodes are leaves

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return node


def _written(node: ast.AST, in_class: bool = False) -> Iterator[str]:
    """A node's kind and fields in a form that no two different ones share; empty fields are as if they were not there.

    Args:
        node: of a tree.
        in_class: whether it stands in a class, and in no function there.
    """
    yield f"{type(node).__name__}("
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    inside = isinstance(node, ast.ClassDef) or (in_class and not is_function)
    for name in node._fields:
        value = getattr(node, name, None)
        told = name not in UNREAD and not (name == "returns" and is_function)
        if name == "annotation":
            told = in_class and isinstance(node, ast.AnnAssign)
        if not told or value == [] or (value is None and not isinstance(node, ast.Constant)):
            continue
        if isinstance(value, ast.AST):
            yield f"{name}="
            yield from _written(value, inside)
        elif isinstance(value, list):
            yield f"{name}=["
            for one in value:
                if not _stands_alone(one):
                    yield from _written(one, inside) if isinstance(one, ast.AST) else [repr(one), ","]
            yield "]"
        else:
            yield f"{name}={value!r},"
    yield ")"


def _stands_alone(node: object) -> bool:
    """Whether it is a text that nothing uses: a docstring, or one after an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

"""Causal diagrams as text: in the DOT language of Graphviz, and in that of DAGitty, which is derived from it.

One small parser reads both. Statements are nodes, chains of edges (``A -> B <-> C``, ``A -> {B C}``) and subgraphs;
of the attributes those count that say that a variable is latent or an edge bidirected, and others are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import NamedTuple, NoReturn

from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.scm.diagram_parts import Edge, Parts, add_edge, is_hidden

TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/|(?m:^)\#[^\n]*)
      | (?P<arrow><->|->|<-|--)
      | (?P<quoted>"(?:\\.|[^"\\])*")
      | (?P<word>-\.?\d[\w.]*|[\w.]+)
      | (?P<mark>[{}\[\];,=:])""",
    re.VERBOSE | re.DOTALL,
)
BARE = re.compile(r"[A-Za-z_]\w*|\d+", re.ASCII)
KEYWORDS = {  # where they are not quoted; DOT takes them in any case
    "DOT": ("strict", "digraph", "graph", "subgraph", "node", "edge"),
    "DAGitty": ("graph", "subgraph", "node"),
}
DEFAULTS = ("graph", "node", "edge")  # statements about all that follows
HEADS = {"DOT": ("digraph",), "DAGitty": ("dag",)}
READERS = {"digraph": "from_dot", "dag": "from_dagitty"}


def read_dot(text: str) -> Parts:
    """The contents of a DOT text.

    Raises:
        ArgumentError: naming the line at fault.
    """
    return _read(text, "DOT")


def read_dagitty(text: str) -> Parts:
    """The contents of a DAGitty text.

    Raises:
        ArgumentError: naming the line at fault.
    """
    return _read(text, "DAGitty")


def _read(text: str, language: str) -> Parts:
    try:
        return _Parser(text, language).graph()
    except RecursionError:
        raise ArgumentError(f"cannot read {language}: braces are nested too deeply") from None


def write_dot(nodes: Sequence[str], directed: Iterable[Edge], bidirected: Iterable[Edge]) -> str:
    """A DOT text; bidirected edges are dashed and have two arrowheads.

    Raises:
        ArgumentError: for a name that the text cannot hold.
    """
    lines = [f"{_name(node)};" for node in nodes]
    lines += [f"{_name(a)} -> {_name(b)};" for a, b in directed]
    lines += [f"{_name(a)} -> {_name(b)} [dir=both, style=dashed];" for a, b in bidirected]
    return _block("digraph", lines)


def write_dagitty(nodes: Sequence[str], directed: Iterable[Edge], bidirected: Iterable[Edge]) -> str:
    """A DAGitty text.

    Raises:
        ArgumentError: for a name that the text cannot hold.
    """
    if taken := [name for name in nodes if name in ("graph", "node")]:
        raise ArgumentError(f"DAGitty has no variables named 'graph' or 'node'; given {taken}")
    lines = [_name(node) for node in nodes]
    lines += [f"{_name(a)} -> {_name(b)}" for a, b in directed]
    lines += [f"{_name(a)} <-> {_name(b)}" for a, b in bidirected]
    return _block("dag", lines)


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}", ""])


def _name(name: str) -> str:
    if BARE.fullmatch(name) and name.lower() not in KEYWORDS["DOT"]:
        return name
    if not name or any(char in '"\\\n\r' for char in name):
        raise ArgumentError(f"a name in a text has no quotation mark, backslash or line break; given {name!r}")
    return f'"{name}"'


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _Parser:
    """Recursive descent over the tokens of a text; ``graph`` is called once."""

    def __init__(self, text: str, language: str) -> None:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"{language} is text; given {type(text).__name__}")
        self._language = language
        self._tokens = self._split(text)
        self._next = 0
        self._parts = Parts([], [], [], [])
        self._attributes: dict[str, dict[str, str]] = {}  # of the nodes
        self._defaults: dict[str, dict[str, str]] = {kind: {} for kind in DEFAULTS}

    def _split(self, text: str) -> list[_Token]:
        tokens, place, line = [], 0, 1
        while place < len(text):
            found = TOKEN.match(text, place)
            if found is None:
                self._refuse(text[place], line)
            kind, piece = str(found.lastgroup), found.group()
            if kind == "quoted":
                tokens.append(_Token("word", piece[1:-1].replace('\\"', '"'), line))
            elif kind != "blank":
                tokens.append(_Token("keyword" if kind == "word" and self._is_keyword(piece) else kind, piece, line))
            place, line = found.end(), line + piece.count("\n")
        return [*tokens, _Token("end", "the end of the text", line)]

    def _is_keyword(self, piece: str) -> bool:
        return (piece.lower() if self._language == "DOT" else piece) in KEYWORDS[self._language]

    def graph(self) -> Parts:
        self._take("strict")
        head = self._tokens[self._next]
        if head.text.lower() not in HEADS[self._language]:
            self._refuse_head(head)
        self._next += 1
        if self._peek().kind == "word":  # the graph's own name
            self._next += 1
        self._require("{")
        self._statements()
        if self._peek().kind != "end":
            self._refuse(self._peek().text, self._peek().line, "after the diagram")
        self._parts.latents.extend(name for name in self._parts.nodes if is_hidden(self._attributes[name]))
        return self._parts

    def _refuse_head(self, head: _Token) -> NoReturn:
        wanted = " or ".join(f"'{word} {{ ... }}'" for word in HEADS[self._language])
        other = READERS.get(head.text.lower())
        hint = f"; {other} reads it" if other else ""
        raise ArgumentError(
            f"line {head.line}: a causal diagram in {self._language} is {wanted}; given {head.text!r}{hint}"
        )

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> _Token | None:
        """The next token, if it is one of these marks and keywords."""
        token = self._peek()
        if token.kind == "word" or token.text.lower() not in texts:  # a name, perhaps quoted
            return None
        self._next += 1
        return token

    def _require(self, mark: str) -> None:
        if self._take(mark) is None:
            self._refuse(self._peek().text, self._peek().line, f"where {mark!r} should come")

    def _word(self) -> str:
        token = self._peek()
        if token.kind != "word":
            self._refuse(token.text, token.line, "where a name should come")
        self._next += 1
        return token.text

    def _refuse(self, what: str, line: int, where: str = "") -> NoReturn:
        raise ArgumentError(f"line {line}: cannot read {self._language}: unexpected {what!r} {where}".rstrip())

    def _statements(self) -> list[str]:
        """All up to the closing brace; the names that come in it."""
        names: list[str] = []
        while not self._take("}"):
            if self._take(";", ","):
                continue
            if kind := self._take(*DEFAULTS):
                self._defaults[kind.text.lower()] |= self._attribute_lists()
            elif self._peek().kind == "word" and self._tokens[self._next + 1].text == "=":
                self._next += 2
                self._word()
            else:
                names += self._chain()
        return names

    def _chain(self) -> list[str]:
        """Nodes, or groups of them, joined by arrows; the names that come in it."""
        groups, arrows = [self._group()], []
        while self._peek().kind == "arrow":
            arrows.append(self._peek())
            self._next += 1
            groups.append(self._group())
        attributes = self._attribute_lists()
        if not arrows:
            for name in groups[0]:
                self._attributes[name] |= attributes
        for (left, right), arrow in zip(pairwise(groups), arrows, strict=True):
            for tail, head in product(left, right):
                self._edge(tail, arrow, head, self._defaults["edge"] | attributes)
        return [name for group in groups for name in group]

    def _group(self) -> list[str]:
        if self._take("subgraph") and self._peek().kind == "word":
            self._next += 1
        if self._take("{"):
            return self._statements()
        name = self._word()
        while self._take(":"):  # a port, where an arrow touches the picture of a node
            self._word()
        if name not in self._attributes:
            self._parts.nodes.append(name)
            self._attributes[name] = dict(self._defaults["node"])
        return [name]

    def _edge(self, tail: str, arrow: _Token, head: str, attributes: dict[str, str]) -> None:
        if arrow.text == "--":
            raise ArgumentError(f"line {arrow.line}: {tail} -- {head} has no direction; write -> or <->")
        if arrow.text == "<-":
            tail, head = head, tail
        try:
            add_edge(self._parts, tail, head, attributes | ({"dir": "both"} if arrow.text == "<->" else {}))
        except ArgumentError as error:
            raise ArgumentError(f"line {arrow.line}: {error}") from None

    def _attribute_lists(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._take("["):
            while not self._take("]"):
                key = self._word()
                attributes[key.lower()] = self._word() if self._take("=") else ""
                self._take(",", ";")
        return attributes

"""Causal diagrams in the DOT language of Graphviz and in the language of DAGitty, which is derived from DOT.

One small parser reads both. Statements are nodes, chains of edges (``A -> B <-> C``, ``A -> {B C}``) and subgraphs.
Attributes that mark latent variables or arrowheads are read; others are ignored. The library pydot would not do: it
lacks edges of DAGitty, and reads ``A -- B`` as ``A -> B`` and ``A <-> B`` as three nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote

from cbo_gym.errors import ArgumentError, ArgumentTypeError, short_repr
from cbo_gym.scm.diagram_parts import ARROW, CIRCLE, TAIL, Edge, Marks, Parts, is_invisible, marks_of

MAX_CHARACTERS = 500_000
BLANK = r"(?:\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)"
# Characters beyond ASCII are letters as in Graphviz, except blanks, invisible characters, arrows and quotation marks.
LETTER = r"(?:[\w.]|[^\x00-\x7f\s\u00ad\u200b-\u201f\u2060\u2212\ufeff←→↔⟵⟶⟷])"
# Word processors turn hyphens into other dashes.
DASH = r"[-\u2010-\u2015\u2212]"
TOKEN = re.compile(
    rf"""(?P<blank>{BLANK})
      | (?P<arrow>[<@]{DASH}{{1,3}}[>@]?|{DASH}{{1,3}}[>@]|{DASH}{{2,3}}|[←→↔⟵⟶⟷])
      | (?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<word>-\.?\d[\w.]*|{LETTER}+)
      | (?P<mark>[{{}}\[\];,=:])""",
    re.VERBOSE | re.DOTALL,
)
# Circles as other programs write them: the letter o, between two nodes of one line.
CIRCLES = re.compile(r"(?<=\s)(?:o-{1,2}[>o]?|<?-{1,2}o)(?=\s)")
HEAD = re.compile(
    rf"""{BLANK}*(?:strict\b{BLANK}*)?(?P<kind>digraph|graph|dag|pdag|mag|pag)\b{BLANK}*
        (?:"[^"]*"|'[^']*'|{LETTER}+)?{BLANK}*\{{""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
ARROWS = {"→": "->", "⟶": "->", "←": "<-", "⟵": "<-", "↔": "<->", "⟷": "<->"}
# DAGitty before version 3: a line for each node, a blank line, and lines of a node and its children.
OLD_NODE = re.compile(r"(?P<name>\S.*?)\s+(?P<status>[EOAU]+|\d+)(?:\s+@\S+)?\s*")
# A string that looks like the path of a file.
PATH = re.compile(r"[^\n{}>]*(?:[/\\]|\.\w{1,8}$)[^\n{}>]*")
# Beginning of code in another format -> its name, and what to give instead.
FOREIGN = {
    r"<graphml\b": "GraphML, which is not read; networkx.parse_graphml reads it as a graph that you can give",
    r"\A\s*<(?!-)": "XML, which is not read",
    r"\A\s*[\[{]\s*[\"\[{}\]]": "JSON, which is not read; give a list of pairs (cause, effect)",
    r"\A\s*(?:graph|flowchart)\s+(?:TD|TB|BT|LR|RL)\b": "Mermaid, which is not read",
    r"\A\s*(?:strict\s+)?(?:dag|pdag|mag|pag|digraph)\s+[^-<\s]": "code without braces",
    r"\A[^>]*~": "formulas, which are not read",
}
EXAMPLES = "DAGitty code, dag { X -> Y }, or DOT code, digraph { X -> Y }"
# Names that need no quotation marks.
BARE = re.compile(r"[A-Za-z_]\w*|\d+", re.ASCII)
# Keywords; a node with such a name is quoted.
KEYWORDS = ("strict", "digraph", "graph", "subgraph", "node", "edge")
# Keywords of statements about defaults.
DEFAULTS = ("graph", "node", "edge")


def read_code(code: str) -> Parts:
    """Read DOT or DAGitty code. Raise ArgumentError naming the line at fault, or the format of other code."""
    if not isinstance(code, str):
        raise ArgumentTypeError(f"a causal diagram is {EXAMPLES}; given {type(code).__name__}")
    if len(code) > MAX_CHARACTERS:
        raise ArgumentError(f"a diagram of at most {MAX_CHARACTERS} characters is read; given {len(code)}")
    code = code.removeprefix("\ufeff")
    head = HEAD.match(code)
    if head is None:
        if old := _old_blocks(code):
            return _read_old(*old)
        _refuse_foreign(code)
        # As in DAGitty, code may lack its frame, "dag { }".
        keyword, start, code = "dag", 0, f"{code}\n}}"
    else:
        keyword, start = head["kind"].lower(), head.end()
    if keyword in ("mag", "pag"):
        raise ArgumentError(
            f"{keyword} {{ ... }} shows ancestors and a class of diagrams, not causes; write the causal diagram as "
            "dag { ... }, or give the diagrams that are possible as candidates of a study"
        )
    try:
        return _Parser(code, "DOT" if "graph" in keyword else "DAGitty", start).parts()
    except RecursionError:
        raise ArgumentError("cannot read the diagram: braces are nested too deeply") from None


def _refuse_foreign(code: str) -> None:
    """Raise ArgumentError if the code has no arrows, naming the format that it seems to have."""
    if PATH.fullmatch(code.strip()):
        hint = "its contents" if "://" in code else f"pathlib.Path({code.strip()!r}), or its contents"
        raise ArgumentError(f"{short_repr(code)} looks like the path of a file; give {hint}")
    for pattern, language in FOREIGN.items():
        if re.search(pattern, code):
            raise ArgumentError(f"a causal diagram is {EXAMPLES}; this looks like {language}")
    if not any(token.kind == "arrow" for token in _tokens(code, 0, 1, "the diagram")):
        raise ArgumentError(f"a causal diagram is {EXAMPLES}; given {short_repr(code)}")


def _old_blocks(code: str) -> tuple[list[re.Match[str]], list[str]] | None:
    """Return the nodes and the lines of edges of DAGitty code before version 3; ``None`` for other code."""
    nodes, _, edges = re.sub(r"\n[ \t]*\n", "\n\n", code.replace("\r", "").strip()).partition("\n\n")
    lines = nodes.splitlines()
    matches = [match for line in lines if (match := OLD_NODE.fullmatch(line.strip()))]
    return (matches, edges.split("\n")) if matches and len(matches) == len(lines) else None


def _read_old(nodes: list[re.Match[str]], lines: list[str]) -> Parts:
    parts, pairs = Parts(), dict[Edge, None]()
    for node in nodes:
        parts.add_node(unquote(node["name"]), {"latent": "yes" if "U" in node["status"] else "no"})
    for line in filter(str.strip, lines):
        cause, *effects = _old_names(line.split(), parts.attributes)
        pairs |= dict.fromkeys((cause, effect) for effect in effects)
    for cause, effect in pairs:
        if (effect, cause) not in pairs:
            parts.add_edge(cause, effect, (TAIL, ARROW))
        # An arrow each way stands for a common cause.
        elif cause < effect:
            parts.add_edge(cause, effect, (ARROW, ARROW))
    return parts


def _old_names(words: list[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the nodes of a line, whose names may have blanks; ignore the positions of arrows."""
    words = [word for word in words if not word.startswith("@")]
    while words:
        prefixes = {unquote(" ".join(words[:length])): length for length in range(1, len(words) + 1)}
        name = next((prefix for prefix in prefixes if prefix in names), None)
        if name is None:
            raise ArgumentError(f"unknown variables {[' '.join(words)]}; the first lines have {list(names)}")
        yield name
        words = words[prefixes[name] :]


def write(head: str, nodes: Iterable[str], edges: Iterable[tuple[Edge, str]], end: str) -> str:
    """Write a diagram: ``edges`` are pairs of names, each with a template; ``end`` follows each statement."""
    lines = [*map(_quote, nodes), *(template.format(*map(_quote, edge)) for edge, template in edges)]
    return "\n".join([f"{head} {{", *(f"  {line}{end}" for line in lines), "}", ""])


def _quote(name: str) -> str:
    if BARE.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    if not name or any(char in "\\\n\r" for char in name):
        raise ArgumentError(
            f"a name in DAGitty or DOT code is not empty and has no backslash or line break; given {name!r}"
        )
    escaped = name.replace('"', '\\"')
    return f'"{escaped}"'


class _Token(NamedTuple):
    kind: str
    value: str
    line: int


def _tokens(code: str, index: int, line: int, language: str) -> Iterator[_Token]:
    """Yield the tokens of code from an index on; ``line`` is the number of the line there."""
    last = _Token("", "", line)
    while index < len(code):
        circle = CIRCLES.match(code, index) if last.kind in ("word", "quoted") and last.line == line else None
        if circle:
            piece, kind = circle.group().replace("o", "@"), "arrow"
        elif last.value == "=" and code[index] == "<":
            piece, kind = _html(code, index, line), "quoted"
        else:
            match = TOKEN.match(code, index)
            if match is None:
                _refuse(language, code[index], line)
            piece, kind = match.group(), str(match.lastgroup)
        if kind != "blank":
            value = re.sub(r"\\(?:\n|(?=[\"']))", "", piece[1:-1]) if piece[0] in "\"'" else piece
            last = _Token(kind, value, line)
            yield last
        index, line = index + len(piece), line + piece.count("\n")
    yield _Token("end", "the end of the code", line)


def _html(code: str, start: int, line: int) -> str:
    """Return a label in HTML, up to the bracket that closes the first one."""
    depth = 0
    for index in range(start, len(code)):
        depth += {"<": 1, ">": -1}.get(code[index], 0)
        if not depth:
            return code[start : index + 1]
    raise ArgumentError(f"line {line}: a label in HTML has no end")


def _refuse(language: str, token: str, line: int, position: str = "") -> NoReturn:
    hint = ""
    if token == ",":
        hint = "; several variables are written in braces: { A B } -> C"
    elif token == ">":
        hint = "; arrows are written ->, <- and <->"
    elif len(token) == 1 and token.isprintable() and token not in "{}[];=:":
        hint = '; a name with other characters than letters, digits, _ and . is written in quotation marks: "pre-test"'
    raise ArgumentError(f"line {line}: cannot read {language}: unexpected {token!r} {position}".rstrip() + hint)


class _Parser:
    """Recursive descent over the tokens after the first brace; ``parts`` is called once."""

    def __init__(self, code: str, language: str, start: int) -> None:
        self._language = language
        self._tokens = list(_tokens(code, start, 1 + code.count("\n", 0, start), language))
        self._next = 0
        self._parts = Parts()
        self._defaults: dict[str, dict[str, str]] = {kind: {} for kind in DEFAULTS}

    def parts(self) -> Parts:
        self._statements()
        if self._peek().kind != "end":
            self._refuse_token("after the diagram")
        return self._parts.with_labels()

    def _peek(self, offset: int = 0) -> _Token:
        return self._tokens[min(self._next + offset, len(self._tokens) - 1)]

    def _take(self, *marks: str) -> bool:
        """Consume the next token if it is one of these marks; return whether it was."""
        is_mark = self._peek().kind == "mark" and self._peek().value in marks
        if is_mark:
            self._next += 1
        return is_mark

    def _word(self) -> str:
        token = self._peek()
        if token.kind not in ("word", "quoted"):
            self._refuse_token("where a name should come")
        self._next += 1
        return token.value

    def _refuse_token(self, position: str) -> NoReturn:
        _refuse(self._language, self._peek().value, self._peek().line, position)

    def _statements(self) -> list[str]:
        """Read up to the closing brace; return the names in it."""
        names: dict[str, None] = {}
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._peek(1).value == "=" and self._peek(1).kind == "mark":
                self._word()
                self._next += 1
                self._word()
            elif keyword := self._default():
                self._defaults[keyword] |= self._attribute_lists()
            else:
                names |= dict.fromkeys(self._chain())
        return list(names)

    def _default(self) -> str | None:
        """Consume the keyword of a statement about defaults and return it; ``None`` if the next token is a name."""
        token, after = self._peek(), self._peek(1)
        word = token.value if self._language == "DAGitty" else token.value.lower()
        if token.kind != "word" or word not in DEFAULTS or (after.kind, after.value) != ("mark", "["):
            return None
        if self._language == "DAGitty" and word != "graph":
            raise ArgumentError(f'line {token.line}: DAGitty has no {word} [...]; a variable is written "{word}" [...]')
        self._next += 1
        return word

    def _chain(self) -> list[str]:
        """Read nodes or groups of nodes joined by arrows; return the names in them."""
        groups, arrows = [self._group()], []
        while self._peek().kind == "arrow":
            arrows.append(self._peek())
            self._next += 1
            groups.append(self._group())
        attributes = self._attribute_lists()
        if not arrows:
            for name in groups[0]:
                self._parts.attributes[name] |= attributes
        attributes = self._defaults["edge"] | attributes
        for (left, right), arrow in zip(pairwise(groups), arrows, strict=True):
            if is_invisible(attributes):
                continue
            try:
                marks = _marks(arrow.value, attributes)
                for edge in product(left, right):
                    self._parts.add_edge(*edge, marks)
            except ArgumentError as error:
                raise ArgumentError(f"line {arrow.line}: {error}") from None
        return [name for group in groups for name in group]

    def _group(self) -> list[str]:
        if (self._peek().kind, self._peek().value.lower()) == ("word", "subgraph"):
            # The name of a subgraph is optional.
            brace = 2 if self._peek(1).kind in ("word", "quoted") else 1
            if (self._peek(brace).kind, self._peek(brace).value) == ("mark", "{"):
                self._next += brace
        if self._take("{"):
            outer_defaults = {kind: dict(attributes) for kind, attributes in self._defaults.items()}
            names = self._statements()
            self._defaults = outer_defaults
            return names
        name, line = self._word(), self._peek(-1).line
        # A port, where an arrow touches the picture of a node.
        while self._take(":"):
            self._word()
        try:
            self._parts.add_node(name, self._defaults["node"])
        except ArgumentError as error:
            raise ArgumentError(f"line {line}: {error}") from None
        return [name]

    def _attribute_lists(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._take("["):
            while not self._take("]"):
                key = self._word()
                attributes[key.lower()] = self._word() if self._take("=") else ""
                self._take(",", ";")
        return attributes


def _marks(arrow: str, attributes: dict[str, Any]) -> Marks:
    """Return the marks of an arrow, which the attributes of DOT may change."""
    arrow = ARROWS.get(arrow, arrow)
    ends = {"<": ARROW, ">": ARROW, "@": CIRCLE}
    left, right = ends.get(arrow[0], TAIL), ends.get(arrow[-1], TAIL)
    if left == TAIL and right != CIRCLE:
        return marks_of(attributes, "forward" if right == ARROW else "none")
    return left, right

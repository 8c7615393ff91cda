"""Causal diagrams in the file formats of other programs: GML, BIF of Bayesian networks, and Tetrad's graphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePath

import networkx as nx

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram_code import MAX_CHARACTERS
from cbo_gym.scm.diagram_graphs import read_networkx
from cbo_gym.scm.diagram_parts import ARROW, CIRCLE, TAIL, Parts

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
BIF_NAME = r"\"[^\"]*\"|[^\s\"(){}|,;]+"
BIF_VARIABLE = re.compile(rf"\bvariable\s+({BIF_NAME})\s*\{{")
BIF_PARENTS = re.compile(rf"\bprobability\s*\(\s*({BIF_NAME})\s*(?:\|([^)]*))?\)")
TETRAD_EDGE = re.compile(r"\s*\d+\.\s+(\S+)\s+([<o-])-([>o-])\s+(\S+).*")
TETRAD_MARKS = {"<": ARROW, ">": ARROW, "o": CIRCLE, "-": TAIL}


def _read_gml(code: str) -> Parts:
    try:
        graph = nx.parse_gml(code, label="id")
    except (nx.NetworkXError, ValueError, KeyError, RecursionError) as error:
        raise ArgumentError(f"cannot read GML: {error or 'it is nested too deeply'}") from error
    if not graph.is_directed():
        raise ArgumentError("cannot read GML: its edges have no directions; write 'directed 1' in the graph")
    labels = [label for _, label in graph.nodes(data="label") if label is not None]
    if repeated := sorted({label for label in labels if labels.count(label) > 1}):
        raise ArgumentError(f"cannot read GML: several nodes have the labels {repeated}")
    # Labels replace the numbers of the nodes.
    return read_networkx(nx.relabel_nodes(graph, str))


def _read_bif(code: str) -> Parts:
    """Read the variables and parents of a Bayesian network in the Bayesian Interchange Format; ignore its tables."""
    bare, parts = COMMENT.sub(" ", code), Parts()
    for name in BIF_VARIABLE.findall(bare):
        parts.add_node(name.strip('"'), {})
    for quoted_effect, causes in BIF_PARENTS.findall(bare):
        effect = quoted_effect.strip('"')
        for name in [effect, *(cause.strip('"') for cause in re.findall(BIF_NAME, causes))]:
            if name not in parts.attributes:
                raise ArgumentError(f"cannot read BIF: {name!r} is not one of its variables {list(parts.attributes)}")
            if name != effect:
                parts.add_edge(name, effect, (TAIL, ARROW))
    return parts


def _read_tetrad(code: str) -> Parts:
    """Read a graph that Tetrad saved as text, with latent variables in parentheses."""
    _, _, body = code.partition("Graph Nodes:")
    nodes, _, edges = body.partition("Graph Edges:")
    parts = Parts()
    for name in filter(None, re.split(r"[;,\s]+", nodes)):
        parts.add_node(name.strip("()"), {"latent": "yes"} if name.startswith("(") else {})
    for line in filter(str.strip, edges.split("Graph Attributes:")[0].splitlines()):
        if (match := TETRAD_EDGE.fullmatch(line)) is None:
            raise ArgumentError(f"cannot read Tetrad's graph: {line.strip()!r} is not an edge such as '1. X --> Y'")
        first, first_mark, second_mark, second = match.groups()
        if unknown := [name for name in (first, second) if name.strip("()") not in parts.attributes]:
            raise ArgumentError(f"cannot read Tetrad's graph: {unknown} are not among its nodes")
        parts.add_edge(first.strip("()"), second.strip("()"), (TETRAD_MARKS[first_mark], TETRAD_MARKS[second_mark]))
    return parts


# How the code of each format begins.
FORMATS: dict[str, Callable[[str], Parts]] = {
    r"\A(?:\s|#[^\n]*\n|(?:Creator|Version|comment)\b[^\n]*\n)*graph\s*\[": _read_gml,
    r"\A\s*network\b[^\n{]*\{": _read_bif,
    r"\A\s*Graph Nodes:": _read_tetrad,
}


def read_format(code: str) -> Parts | None:
    """Read code in one of the ``FORMATS``; return None for other code. Raise ArgumentError for code with mistakes."""
    return next((read(code) for pattern, read in FORMATS.items() if re.match(pattern, code)), None)


def read_file(path: PurePath) -> str:
    """Return the contents of a file of UTF-8 text; raise ArgumentError if it cannot be read or is too large."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_CHARACTERS:
            raise ArgumentError(f"a diagram of at most {MAX_CHARACTERS} characters is read; {file} is larger")
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ArgumentError(f"cannot read the diagram {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"cannot read the diagram {file}: it is not text in UTF-8") from error

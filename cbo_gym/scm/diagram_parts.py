"""What the readers of all formats of diagrams share: a list of nodes and edges, and the meaning of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cbo_gym.errors import ArgumentError

Edge = tuple[str, str]
# Marks at the two ends of an edge.
Marks = tuple[str, str]
TAIL, ARROW, CIRCLE = "tail", "arrow", "circle"
# DAGitty's attributes of a latent variable; the short ones have no value.
HIDDEN, SHORT = ("latent", "unobserved"), ("l", "u")
YES, NO = ("", "yes", "true", "1"), ("no", "false", "0")
# DOT's directions, and whether an edge has a head at its first and at its second node.
DIRECTIONS = {"forward": (False, True), "back": (True, False), "both": (True, True), "none": (False, False)}
# 12 kB of code can describe a million edges, {1000 names} -> {1000 names}.
MAX_NODES = 500
MAX_EDGES = 5_000


@dataclass
class Parts:
    """The nodes and edges of a diagram, in the order in which they were read.

    Attributes:
        attributes: attributes of each node by name, latent nodes included.
        directed: edges ``(cause, effect)``.
        bidirected: pairs of confounded variables.
    """

    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    directed: list[Edge] = field(default_factory=list)
    bidirected: list[Edge] = field(default_factory=list)

    @property
    def latents(self) -> list[str]:
        """Names of the latent nodes."""
        return [name for name, attributes in self.attributes.items() if _is_hidden(attributes)]

    def add_node(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add a node unless its name is there. Raise ArgumentError for more than ``MAX_NODES`` nodes."""
        if name not in self.attributes:
            self.attributes[name] = dict(attributes)
            if len(self.attributes) > MAX_NODES:
                raise ArgumentError(f"a diagram of at most {MAX_NODES} variables is read; this one has more")

    def add_edge(self, first: str, second: str, marks: Marks) -> None:
        """Add an edge. Raise ArgumentError if its direction is open, or for more than ``MAX_EDGES`` edges."""
        self.require_edge_limit(len(self.directed) + len(self.bidirected) + 1)
        if marks == (ARROW, ARROW):
            self.bidirected.append((first, second))
        elif marks == (TAIL, ARROW):
            self.directed.append((first, second))
        elif marks == (ARROW, TAIL):
            self.directed.append((second, first))
        else:
            problem = "has no direction" if CIRCLE not in marks else "ends in a circle, so that its direction is open"
            raise ArgumentError(
                f"the edge between {first} and {second} {problem}; write {first} -> {second}, {second} -> {first} or, "
                f"for an unobserved common cause, {first} <-> {second}; if it is not known which, give the diagrams "
                "that are possible as candidates of a study"
            )

    def require_edge_limit(self, edges: int) -> None:
        """Raise ArgumentError for more than ``MAX_EDGES`` edges; the projection of latent nodes may add some."""
        if edges > MAX_EDGES:
            raise ArgumentError(f"a diagram of at most {MAX_EDGES} edges is read; this one has more")

    def with_labels(self) -> Parts:
        """Rename nodes to their labels if all are numbers with distinct labels, as causal-learn writes them."""
        labels = {name: _unquote(attributes.get("label", "")) for name, attributes in self.attributes.items()}
        numbered = all(str(name).isdecimal() for name in labels)
        is_plain = all(label and label[0] not in "<\\" for label in labels.values())
        if not (numbered and is_plain and len(set(labels.values())) == len(labels)):
            return self
        return Parts(
            {labels[name]: attributes for name, attributes in self.attributes.items()},
            [(labels[a], labels[b]) for a, b in self.directed],
            [(labels[a], labels[b]) for a, b in self.bidirected],
        )


def _is_hidden(attributes: Mapping[str, Any]) -> bool:
    """Return whether a node has ``observed="no"`` as in DoWhy, or ``latent`` as in DAGitty."""
    return (
        _word(attributes.get("observed", "yes")) in NO
        or any(_word(attributes.get(mark, "no")) in YES for mark in HIDDEN)
        or any(attributes.get(mark) == "" for mark in SHORT)
    )


def is_invisible(attributes: Mapping[str, Any]) -> bool:
    """Return whether an edge only arranges a picture, as ``style=invis`` in DOT."""
    return "invis" in _word(attributes.get("style")).split(",")


def marks_of(attributes: Mapping[str, Any], direction: str = "forward") -> Marks:
    """Return the marks at the ends of an edge.

    Args:
        attributes: ``dir``, ``arrowtail`` and ``arrowhead`` as in DOT, ``type`` as in pgmpy's ADMG, or ``bidirected``.
        direction: the direction if there is no ``dir``.
    """
    if _word(attributes.get("bidirected", "no")) in YES or _word(attributes.get("type")) == "bidirected":
        return ARROW, ARROW
    direction = _word(attributes.get("dir", direction))
    if direction not in DIRECTIONS:
        raise ArgumentError(f"dir={direction} is not a direction; write {', '.join(DIRECTIONS)}")
    has_head_at_first, has_head_at_second = DIRECTIONS[direction]
    tail_shape, head_shape = (attributes.get(key) or "normal" for key in ("arrowtail", "arrowhead"))
    return _mark(tail_shape, has_head_at_first), _mark(head_shape, has_head_at_second)


def _mark(shape: Any, has_head: bool) -> str:
    if not has_head or _word(shape) == "none":
        return TAIL
    return CIRCLE if _word(shape).endswith("dot") else ARROW


def _word(value: Any) -> str:
    return _unquote(value).lower()


def _unquote(value: Any) -> str:
    """Remove the quotation marks that some parsers keep."""
    return str(value).strip().strip('"')

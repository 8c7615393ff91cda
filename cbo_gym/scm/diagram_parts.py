"""Nodes and edges of a diagram in another form while it is read, and the attributes that mark them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cbo_gym.errors import ArgumentError

Edge = tuple[str, str]
# Marks at the two ends of an edge.
Marks = tuple[str, str]
TAIL, ARROW, CIRCLE = "tail", "arrow", "circle"
HIDDEN = ("latent", "unobserved")  # DAGitty's marks of a variable that is not observed
SHORT = ("l", "u")  # the same in short, without a value
YES, NO = ("", "yes", "true", "1"), ("no", "false", "0")
DIRECTIONS = {"forward": (False, True), "back": (True, False), "both": (True, True), "none": (False, False)}
# A text of 12 kB can hold a million edges, {1000 names} -> {1000 names}.
MAX_NODES = 500
MAX_EDGES = 5_000


@dataclass
class Parts:
    """Nodes and edges as they were read.

    Attributes:
        attributes: of each node by name, latent ones included, in the order in which they first came.
        directed: edges ``(cause, effect)``.
        bidirected: pairs.
    """

    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    directed: list[Edge] = field(default_factory=list)
    bidirected: list[Edge] = field(default_factory=list)

    @property
    def latents(self) -> list[str]:
        """The nodes that are not observed."""
        return [name for name, attributes in self.attributes.items() if is_hidden(attributes)]

    def add_node(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add a node unless it is known.

        Raises:
            ArgumentError: beyond the largest number of nodes.
        """
        if name not in self.attributes:
            self.attributes[name] = dict(attributes)
            if len(self.attributes) > MAX_NODES:
                raise ArgumentError(f"a diagram of at most {MAX_NODES} variables is read; this one has more")

    def add_edge(self, first: str, second: str, marks: Marks) -> None:
        """Add an edge with these marks at its ends.

        Raises:
            ArgumentError: for an edge whose direction is open, or beyond the largest number of edges.
        """
        self.require_few(len(self.directed) + len(self.bidirected) + 1)
        if marks == (ARROW, ARROW):
            self.bidirected.append((first, second))
        elif marks == (TAIL, ARROW):
            self.directed.append((first, second))
        elif marks == (ARROW, TAIL):
            self.directed.append((second, first))
        else:
            what = "has no direction" if CIRCLE not in marks else "ends in a circle, so that its direction is open"
            raise ArgumentError(
                f"the edge between {first} and {second} {what}; write {first} -> {second}, {second} -> {first} or, "
                f"for an unobserved common cause, {first} <-> {second}; if it is not known which, give the diagrams "
                "that are possible as candidates of a study"
            )

    def require_few(self, edges: int) -> None:
        """Refuse more edges than are read, those that come of latent variables among them."""
        if edges > MAX_EDGES:
            raise ArgumentError(f"a diagram of at most {MAX_EDGES} edges is read; this one has more")

    def with_labels(self) -> Parts:
        """Return the parts with labels for names if nodes are numbers and each has a label, as in causal-learn."""
        labels = {name: _unquoted(attributes.get("label", "")) for name, attributes in self.attributes.items()}
        numbered = all(str(name).isdecimal() for name in labels)
        plain = all(label and label[0] not in "<\\" for label in labels.values())
        if not (numbered and plain and len(set(labels.values())) == len(labels)):
            return self
        return Parts(
            {labels[name]: attributes for name, attributes in self.attributes.items()},
            [(labels[a], labels[b]) for a, b in self.directed],
            [(labels[a], labels[b]) for a, b in self.bidirected],
        )


def is_hidden(attributes: Mapping[str, Any]) -> bool:
    """Whether a node's attributes say that it is not observed: ``observed="no"`` as in DoWhy, ``latent`` as in DAGitty.

    Attributes without a value have the value ``""``.
    """
    return (
        _word(attributes.get("observed", "yes")) in NO
        or any(_word(attributes.get(mark, "no")) in YES for mark in HIDDEN)
        or any(attributes.get(mark) == "" for mark in SHORT)
    )


def is_invisible(attributes: Mapping[str, Any]) -> bool:
    """Whether an edge only arranges a picture, as ``style=invis`` in DOT."""
    return "invis" in _word(attributes.get("style")).split(",")


def marks_of(attributes: Mapping[str, Any], direction: str = "forward") -> Marks:
    """The marks at the ends of an edge with these attributes.

    Args:
        attributes: ``dir``, ``arrowtail`` and ``arrowhead`` as in DOT, ``type`` as in pgmpy's ADMG, or ``bidirected``.
        direction: the one without ``dir``.

    Raises:
        ArgumentError: for a direction that DOT does not have.
    """
    if _word(attributes.get("bidirected", "no")) in YES or _word(attributes.get("type")) == "bidirected":
        return ARROW, ARROW
    wanted = _word(attributes.get("dir", direction))
    if wanted not in DIRECTIONS:
        raise ArgumentError(f"dir={wanted} is no direction; write {', '.join(DIRECTIONS)}")
    backward, forward = DIRECTIONS[wanted]
    shapes = (_word(attributes.get(end, "normal")) for end in ("arrowtail", "arrowhead"))
    return _mark(next(shapes), backward), _mark(next(shapes), forward)


def _mark(shape: str, drawn: bool) -> str:
    return TAIL if not drawn or shape == "none" else CIRCLE if shape.endswith("dot") else ARROW


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, with as many ``_`` behind it as it takes to be none of ``taken``."""
    known = set(taken)
    while wanted in known:
        wanted += "_"
    return wanted


def _word(value: Any) -> str:
    return _unquoted(value).lower()


def _unquoted(value: Any) -> str:
    """An attribute's value without the quotation marks that some parsers leave in place."""
    return str(value).strip().strip('"')

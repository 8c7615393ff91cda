"""Parts: what a diagram in another form holds, before it is checked; and how such forms mark what is hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cbo_gym.errors import ArgumentError

Edge = tuple[str, str]
HIDDEN = ("latent", "unobserved")  # DAGitty's marks of a variable that is not observed
SHORT = ("l", "u")  # the same in short, without a value
YES, NO = ("", "yes", "true", "1"), ("no", "false", "0")


class Parts(NamedTuple):
    """Nodes and edges as they were read.

    Attributes:
        nodes: latent ones included, in the order in which they first came.
        directed: edges ``(cause, effect)``.
        bidirected: pairs.
        latents: the nodes that are not observed.
    """

    nodes: list[str]
    directed: list[Edge]
    bidirected: list[Edge]
    latents: list[str]


def is_hidden(attributes: Mapping[str, Any]) -> bool:
    """Whether a node's attributes say that it is not observed: ``observed="no"`` as in DoWhy, ``latent`` as in DAGitty.

    Attributes without a value have the value ``""``.
    """
    return (
        _word(attributes.get("observed", "yes")) in NO
        or any(_word(attributes.get(mark, "no")) in YES for mark in HIDDEN)
        or any(attributes.get(mark) == "" for mark in SHORT)
    )


def add_edge(parts: Parts, tail: str, head: str, attributes: Mapping[str, Any]) -> None:
    """Add an edge as its attributes have it: ``dir`` as in DOT, ``type`` as in pgmpy's ADMG, or ``bidirected``.

    Raises:
        ArgumentError: for an edge without arrowhead, or a direction that DOT does not have.
    """
    direction = _word(attributes.get("dir", "forward"))
    marked = _word(attributes.get("bidirected", "no")) in YES or _word(attributes.get("type")) == "bidirected"
    if direction == "both" or marked:
        parts.bidirected.append((tail, head))
    elif direction in ("forward", "back"):
        parts.directed.append((tail, head) if direction == "forward" else (head, tail))
    else:
        raise ArgumentError(
            f"the edge of {tail} and {head} must be directed (dir=forward or back) or bidirected (dir=both); "
            f"given dir={direction}"
        )


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, with as many ``_`` behind it as it takes to be none of ``taken``."""
    known = set(taken)
    while wanted in known:
        wanted += "_"
    return wanted


def _word(value: Any) -> str:
    """An attribute's value in lower case, without the quotation marks that some parsers leave in place."""
    return str(value).strip().strip('"').lower()

"""Markov equivalence: the graphs that observations alone cannot tell apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from cbo_gym.scm.diagram import CausalDiagram, Edge


def markov_equivalents(diagram: CausalDiagram, sinks: Collection[str], most: int) -> list[CausalDiagram]:
    """The acyclic diagrams with the directed part's independences, in which ``sinks`` have no children.

    They share its skeleton and its colliders between variables that are not joined (Verma & Pearl 1990). From one to
    any other leads a sequence of reversals of covered edges, those whose ends have the same parents otherwise, each
    of which turns an edge in which the two differ (Chickering 1995, Theorem 2); the edges into sinks, in which none
    differ, are never among these. Bidirected edges are kept.

    Args:
        diagram: an acyclic diagram.
        sinks: variables that are known to cause none of the others, and do not in ``diagram``.
        most: diagrams after which the search ends, those nearest to ``diagram`` being found first.

    Returns:
        the diagrams, ``diagram`` first.
    """
    found: dict[frozenset[Edge], CausalDiagram] = {diagram.directed: diagram}
    pending = deque([diagram])
    while pending:
        current = pending.popleft()
        for cause, effect in sorted(current.directed):
            if effect in sinks or set(current.parents(effect)) - {cause} != set(current.parents(cause)):
                continue
            edges = current.directed - {(cause, effect)} | {(effect, cause)}
            if edges in found:
                continue
            if len(found) == most:
                return list(found.values())
            found[edges] = CausalDiagram(diagram.nodes, edges, diagram.bidirected)
            pending.append(found[edges])
    return list(found.values())

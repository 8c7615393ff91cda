"""Markov equivalence: graphs that observations alone cannot tell apart, the candidates if a graph is not known."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from cbo_gym.scm.diagram import CausalDiagram, Edge


def markov_equivalents(diagram: CausalDiagram, sinks: Collection[str], max_count: int) -> list[CausalDiagram]:
    """Return acyclic diagrams with an equivalent directed part, in which ``sinks`` have no children.

    All share a skeleton and unshielded colliders (Verma & Pearl 1990). The search reverses covered edges, whose
    ends have the same other parents. A sequence of such reversals leads from any of the diagrams to any other, through
    edges that differ between the two (Chickering 1995, Theorem 2); edges into sinks never differ. Bidirected edges are
    kept.

    Args:
        diagram: an acyclic diagram.
        sinks: variables without children in ``diagram``, which are known to cause no other variable.
        max_count: largest number of diagrams; those nearest to ``diagram`` come first.

    Returns:
        the diagrams, ``diagram`` first.
    """
    diagrams: dict[frozenset[Edge], CausalDiagram] = {diagram.directed: diagram}
    pending = deque([diagram])
    while pending:
        current = pending.popleft()
        for cause, effect in sorted(current.directed):
            if effect in sinks or set(current.parents(effect)) - {cause} != set(current.parents(cause)):
                continue
            edges = current.directed - {(cause, effect)} | {(effect, cause)}
            if edges in diagrams:
                continue
            if len(diagrams) == max_count:
                return list(diagrams.values())
            diagrams[edges] = CausalDiagram(diagram.nodes, edges, diagram.bidirected)
            pending.append(diagrams[edges])
    return list(diagrams.values())

"""Causal diagrams as the graph objects of other libraries. None of these is imported: their graphs are networkx's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import networkx as nx

from cbo_gym.errors import ArgumentError, ArgumentTypeError, shown
from cbo_gym.scm.diagram_parts import ARROW, CIRCLE, TAIL, Edge, Parts, free_name, is_invisible, marks_of
from cbo_gym.scm.diagram_text import read_text


def read_networkx(graph: Any, latents: Iterable[str] = ()) -> Parts:
    """The contents of a directed graph.

    Args:
        graph: a ``DiGraph`` or ``MultiDiGraph``; attributes of nodes and edges may mark them as hidden or bidirected.
        latents: further nodes that are not observed.

    Raises:
        ArgumentTypeError: if it is no networkx graph, or undirected, or a name is no text.
        ArgumentError: if there is no node of the name of a latent one, or an edge has no direction.
    """
    if not isinstance(graph, nx.Graph):
        raise ArgumentTypeError(f"a diagram is made from a graph of networkx; given {type(graph).__name__}")
    if not graph.is_directed():
        raise ArgumentTypeError(
            f"a causal diagram has directed edges; given an undirected {type(graph).__name__}; make a networkx.DiGraph "
            "of pairs (cause, effect)"
        )
    hidden = set(latents)
    if unknown := sorted(hidden.difference(graph)):
        raise ArgumentError(f"unknown latent variables {unknown}; the graph has {list(graph)}")
    parts = Parts()
    for node, attributes in graph.nodes(data=True):
        parts.add_node(node, {**attributes, "latent": "yes"} if node in hidden else attributes)
    for tail, head, attributes in graph.edges(data=True):
        if not is_invisible(attributes):
            parts.add_edge(tail, head, marks_of(attributes))
    parts = parts.with_labels()
    if odd := [node for node in parts.attributes if not isinstance(node, str)]:
        raise ArgumentTypeError(f"names of variables are text; given {odd}: networkx.relabel_nodes(graph, str) helps")
    return parts


def read_causal_learn(graph: Any) -> Parts:
    """The contents of a graph of causal-learn, or of a search's result, which holds one.

    Raises:
        ArgumentError: if the direction of an edge is open.
    """
    graph = getattr(graph, "G", graph)
    marks = {"TAIL": TAIL, "ARROW": ARROW}
    parts = Parts()
    for node in graph.get_nodes():
        parts.add_node(node.get_name(), {"latent": "yes"} if node.get_node_type().name == "LATENT" else {})
    for edge in graph.get_graph_edges():
        ends = (marks.get(end.name, CIRCLE) for end in (edge.get_endpoint1(), edge.get_endpoint2()))
        parts.add_edge(edge.get_node1().get_name(), edge.get_node2().get_name(), (next(ends), next(ends)))
    return parts


def read_pairs(pairs: Iterable[Any]) -> Parts:
    """The contents of a list of pairs ``(cause, effect)``.

    Raises:
        ArgumentTypeError: if it holds anything but pairs of strings.
    """
    parts = Parts()
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise ArgumentTypeError(f"a list of edges has pairs of names, (cause, effect); given {shown(pair)}")
        for name in pair:
            parts.add_node(name, {})
        parts.add_edge(pair[0], pair[1], (TAIL, ARROW))
    return parts


def read_pgmpy(model: Any) -> Parts:
    """The contents of a model of pgmpy: a DAG, a Bayesian network or another class with ``latents``.

    Raises:
        ArgumentTypeError: if it has no ``latents``, or as :func:`read_networkx`.
    """
    if not hasattr(model, "latents"):
        raise ArgumentTypeError(f"a model of pgmpy is a graph with 'latents'; given {type(model).__name__}")
    return read_networkx(model, model.latents)


def read_dowhy(model: Any) -> Parts:
    """The contents of a model of DoWhy: a ``CausalModel``, or a model of ``dowhy.gcm``.

    Raises:
        ArgumentTypeError: if it has no graph, or as :func:`read_networkx`.
    """
    graph = getattr(model, "graph", None)  # of dowhy.gcm
    graph = getattr(getattr(model, "_graph", graph), "_graph", graph)  # of CausalModel, and of its CausalGraph
    if not isinstance(graph, nx.Graph):
        raise ArgumentTypeError(f"a model of DoWhy is a CausalModel, or one of dowhy.gcm; given {type(model).__name__}")
    return read_networkx(graph)


def read_any(source: Any) -> Parts:
    """The contents of a diagram in any of these forms, or of a list of pairs, or of a text.

    Raises:
        ArgumentTypeError: if it has another form.
        ArgumentError: as those that read the form.
    """
    if isinstance(source, str):
        return read_text(source)
    if isinstance(source, list | tuple | set | frozenset):
        return read_pairs(source)
    if hasattr(getattr(source, "G", source), "get_graph_edges"):
        return read_causal_learn(source)
    if hasattr(source, "latents"):
        return read_pgmpy(source)
    if isinstance(source, nx.Graph):
        return read_networkx(source)
    if hasattr(source, "graph"):
        return read_dowhy(source)
    raise ArgumentTypeError(
        "a causal diagram is a text of DAGitty or DOT, a CausalDiagram, a graph of networkx, pgmpy, DoWhy or "
        f"causal-learn, or a list of pairs (cause, effect); given {shown(source)}{_hint(source)}"
    )


def _hint(source: Any) -> str:
    if isinstance(source, PurePath):
        return "; give what is in the file: path.read_text()"
    # networkx takes the values of a mapping for effects, other libraries for causes.
    if isinstance(source, Mapping):
        return "; a mapping does not say which are the causes: networkx.DiGraph takes one from causes to effects"
    return ""


def write_networkx(nodes: Sequence[str], directed: Iterable[Edge], bidirected: Iterable[Edge]) -> nx.DiGraph:
    """A directed graph in which each pair has a common cause, a node of its own with ``observed="no"``."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes, observed="yes")
    graph.add_edges_from(directed)
    for a, b in bidirected:
        cause = free_name(f"U_{a}_{b}", graph)
        graph.add_node(cause, observed="no")
        graph.add_edges_from([(cause, a), (cause, b)])
    return graph

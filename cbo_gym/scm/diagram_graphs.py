"""Causal diagrams as the graph objects of other libraries. None of these is imported: their graphs are networkx's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import networkx as nx

from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.scm.diagram_parts import Edge, Parts, add_edge, free_name, is_hidden


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
        raise ArgumentTypeError(f"a causal diagram has directed edges; given an undirected {type(graph).__name__}")
    if odd := [node for node in graph if not isinstance(node, str)]:
        raise ArgumentTypeError(f"names of variables are text; given {odd}: networkx.relabel_nodes(graph, str) helps")
    hidden = set(latents)
    if unknown := sorted(hidden.difference(graph)):
        raise ArgumentError(f"unknown latent variables {unknown}; the graph has {list(graph)}")
    hidden |= {node for node, attributes in graph.nodes(data=True) if is_hidden(attributes)}
    parts = Parts(list(graph), [], [], [node for node in graph if node in hidden])
    for tail, head, attributes in graph.edges(data=True):
        add_edge(parts, tail, head, attributes)
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

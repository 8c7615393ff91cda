"""Causal diagrams from the graph objects of networkx, pgmpy, DoWhy and causal-learn; only networkx is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from cbo_gym.errors import ArgumentError, ArgumentTypeError, short_repr
from cbo_gym.scm.diagram_code import read_code
from cbo_gym.scm.diagram_parts import ARROW, CIRCLE, TAIL, Parts, is_invisible, marks_of


def read_networkx(graph: Any, latents: Iterable[str] = ()) -> Parts:
    """Read a ``DiGraph`` or ``MultiDiGraph``; see :meth:`CausalDiagram.from_networkx`."""
    if not isinstance(graph, nx.Graph):
        raise ArgumentTypeError(f"a diagram is read from a graph of networkx; given {type(graph).__name__}")
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
    if wrong := [node for node in parts.attributes if not isinstance(node, str)]:
        raise ArgumentTypeError(
            f"names of variables are strings; given {wrong}; try networkx.relabel_nodes(graph, str)"
        )
    return parts


def _read_causal_learn(graph: Any) -> Parts:
    """Read a graph of causal-learn, or the result of a search, which has one."""
    graph = getattr(graph, "G", graph)
    marks = {"TAIL": TAIL, "ARROW": ARROW}
    parts = Parts()
    for node in graph.get_nodes():
        parts.add_node(node.get_name(), {"latent": "yes"} if node.get_node_type().name == "LATENT" else {})
    for edge in graph.get_graph_edges():
        ends = (marks.get(edge.get_endpoint1().name, CIRCLE), marks.get(edge.get_endpoint2().name, CIRCLE))
        parts.add_edge(edge.get_node1().get_name(), edge.get_node2().get_name(), ends)
    return parts


def _read_pairs(pairs: Iterable[Any]) -> Parts:
    parts = Parts()
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise ArgumentTypeError(f"a list of edges has pairs of names, (cause, effect); given {short_repr(pair)}")
        for name in pair:
            parts.add_node(name, {})
        parts.add_edge(pair[0], pair[1], (TAIL, ARROW))
    return parts


def read_pgmpy(model: Any) -> Parts:
    """Read a DAG, a Bayesian network or another class of pgmpy with ``latents``."""
    if not hasattr(model, "latents"):
        raise ArgumentTypeError(f"a model of pgmpy is a graph with 'latents'; given {type(model).__name__}")
    return read_networkx(model, model.latents)


def read_dowhy(model: Any) -> Parts:
    """Read a ``CausalModel`` of DoWhy, or a model of ``dowhy.gcm``."""
    # dowhy.gcm has model.graph, and CausalModel has model._graph, a CausalGraph with another _graph.
    graph = getattr(model, "graph", None)
    graph = getattr(getattr(model, "_graph", graph), "_graph", graph)
    if not isinstance(graph, nx.Graph):
        raise ArgumentTypeError(f"a model of DoWhy is a CausalModel, or one of dowhy.gcm; given {type(model).__name__}")
    return read_networkx(graph)


def read_any(source: Any) -> Parts:
    """Read a string, a list of pairs or a graph of a library. Raise ArgumentTypeError for other forms."""
    if isinstance(source, str):
        return read_code(source)
    if isinstance(source, list | tuple | set | frozenset):
        return _read_pairs(source)
    if hasattr(getattr(source, "G", source), "get_graph_edges"):
        return _read_causal_learn(source)
    if hasattr(source, "latents"):
        return read_pgmpy(source)
    if isinstance(source, nx.Graph):
        return read_networkx(source)
    if hasattr(source, "graph"):
        return read_dowhy(source)
    # In networkx the values of a mapping are effects, in other libraries causes.
    ambiguous = "; a mapping does not say which are the causes: give networkx.DiGraph(mapping) if its keys are"
    hint = ambiguous if isinstance(source, Mapping) else ""
    raise ArgumentTypeError(
        "a causal diagram is code of DAGitty, DOT, GML, BIF or Tetrad, the pathlib.Path of a file with it, a "
        "CausalDiagram, a graph of networkx, pgmpy, DoWhy or causal-learn, "
        f"or a list of pairs (cause, effect); given {short_repr(source)}{hint}"
    )

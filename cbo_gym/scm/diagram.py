"""Causal diagrams: directed edges for mechanisms, bidirected edges for latent confounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self

import networkx as nx

from cbo_gym._util.files import replacing, require_file
from cbo_gym.errors import ArgumentError, did_you_mean, naming_the_extra
from cbo_gym.scm import diagram_code, diagram_graphs
from cbo_gym.scm.diagram_formats import read_file, read_format
from cbo_gym.scm.diagram_parts import Edge, Parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".svg", ".png", ".pdf", ".eps", ".jpg")


class CausalDiagram:
    """An acyclic directed mixed graph over named variables (Pearl, *Causality*, 2009, ch. 3).

    Args:
        nodes: the variables; :attr:`nodes` keeps their order.
        directed: edges ``(cause, effect)``.
        bidirected: pairs of variables that share an unobserved cause; the order in a pair is immaterial.
        allow_cycles: accept directed cycles (separable SEMs have them). Self loops are never accepted.

    Raises:
        ArgumentError: for a repeated node, an edge to an unknown node, a self loop, or a cycle that is not allowed.
    """

    def __init__(
        self,
        nodes: Iterable[str],
        directed: Iterable[Edge],
        bidirected: Iterable[Iterable[str]] = (),
        *,
        allow_cycles: bool = False,
    ) -> None:
        self.nodes: tuple[str, ...] = tuple(nodes)
        self.directed: frozenset[Edge] = frozenset((a, b) for a, b in directed)
        self.bidirected: frozenset[frozenset[str]] = frozenset(frozenset(pair) for pair in bidirected)
        self.allow_cycles = allow_cycles
        self._check()

    @classmethod
    def read(cls, source: Any, *, allow_cycles: bool = False) -> Self:
        """Read a diagram in any of the forms below.

        Args:
            source: a diagram; code of DAGitty, DOT, GML, BIF or Tetrad, or the ``pathlib.Path`` of a file with it; a
                graph of networkx, pgmpy, DoWhy or causal-learn; or a list of pairs ``(cause, effect)``.
            allow_cycles: as for the class.

        Raises:
            ArgumentTypeError: for another form.
            ArgumentError: as :meth:`from_dot` and :meth:`from_networkx`, and if an edge has no known direction.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, PurePath):
            source = read_file(source)
        parts = read_format(source) if isinstance(source, str) else None
        return cls._from_parts(parts or diagram_graphs.read_any(source), None, allow_cycles)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, latents: Iterable[str] = (), nodes: Iterable[str] | None = None, allow_cycles: bool = False
    ) -> Self:
        """Read a networkx graph and project latent nodes out (:meth:`latent_projection`).

        Args:
            graph: a ``DiGraph`` or ``MultiDiGraph``. A node is latent if it is among ``latents`` or has the attribute
                ``observed="no"`` (DoWhy's) or ``latent=True``; an edge is bidirected with ``dir="both"`` (DOT's),
                ``type="bidirected"`` (pgmpy's) or ``bidirected=True``.
            latents: latent nodes.
            nodes: the observed variables in the order wanted, perhaps more than the graph has; None for the graph's.
            allow_cycles: as for the class.

        Raises:
            ArgumentTypeError: if it is not a directed graph of networkx, or a name is not a string.
            ArgumentError: for a cycle that is not allowed, a self loop, or an unknown variable.
        """
        return cls._from_parts(diagram_graphs.read_networkx(graph, latents), nodes, allow_cycles)

    @classmethod
    def from_pgmpy(cls, model: Any, *, nodes: Iterable[str] | None = None, allow_cycles: bool = False) -> Self:
        """Read a DAG, an ADMG or a Bayesian network of pgmpy and project its ``latents`` out.

        Arguments and errors are those of :meth:`from_networkx`.
        """
        return cls._from_parts(diagram_graphs.read_pgmpy(model), nodes, allow_cycles)

    @classmethod
    def from_dowhy(cls, model: Any, *, nodes: Iterable[str] | None = None, allow_cycles: bool = False) -> Self:
        """Read DoWhy's ``CausalModel`` or a model of ``dowhy.gcm`` and project unobserved nodes out.

        Arguments and errors are those of :meth:`from_networkx`.
        """
        return cls._from_parts(diagram_graphs.read_dowhy(model), nodes, allow_cycles)

    @classmethod
    def from_dot(cls, code: str, *, nodes: Iterable[str] | None = None, allow_cycles: bool = False) -> Self:
        """Read code in the DOT language of Graphviz, or in DAGitty's, see :meth:`from_dagitty`.

        ``A -> B [dir=both]`` is a bidirected edge, and so is ``A <-> B``, which Graphviz does not know; ``arrowhead``
        and ``arrowtail`` count as well. Nodes with ``observed=no`` (DoWhy's) or ``latent`` are projected out. If all
        nodes are numbers, their labels are the names, as causal-learn writes them.

        Args:
            code: ``digraph { ... }``.
            nodes: the observed variables in the order wanted, perhaps more than the code has; None for the code's.
            allow_cycles: as for the class.

        Raises:
            ArgumentError: for code that cannot be read (naming the line), more than 500 variables or 5,000 edges, an
                edge without a direction, a cycle that is not allowed, a self loop, or an unknown variable.
        """
        return cls._from_parts(diagram_code.read_code(code), nodes, allow_cycles)

    @classmethod
    def from_dagitty(cls, code: str, *, nodes: Iterable[str] | None = None, allow_cycles: bool = False) -> Self:
        """Read code in the language of DAGitty, ``dag { ... }``; ``[latent]`` nodes are projected out.

        As in DAGitty, ``dag { }`` may be missing, and code from before version 3 is read. Arguments and errors are
        those of :meth:`from_dot`. Textor, van der Zander, Gilthorpe, Liskiewicz & Ellison (2016), Robust causal
        inference using directed acyclic graphs: the R package 'dagitty'.
        """
        return cls.from_dot(code, nodes=nodes, allow_cycles=allow_cycles)

    @classmethod
    def _from_parts(cls, parts: Parts, nodes: Iterable[str] | None, allow_cycles: bool) -> Self:
        diagram = cls(parts.attributes, parts.directed, parts.bidirected, allow_cycles=allow_cycles)
        projected = diagram.latent_projection(parts.latents)
        parts.require_edge_limit(len(projected.directed) + len(projected.bidirected))
        names = projected.nodes if nodes is None else tuple(nodes)
        if unknown := [name for name in projected.nodes if name not in names]:
            hints = "".join(did_you_mean(name, names) for name in unknown)
            raise ArgumentError(f"unknown variables {unknown}; the variables are {list(names)}{hints}")
        return cls(names, projected.directed, projected._sorted_bidirected, allow_cycles=allow_cycles)

    def to_networkx(self) -> nx.DiGraph:
        """Return a directed graph in which each confounded pair has a latent common cause, a node ``observed="no"``.

        DoWhy and the algorithms of networkx accept this graph, whereas DoWhy reads bidirected edges of DOT code as
        directed ones. :meth:`from_networkx` is the inverse.
        """
        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes, observed="yes")
        graph.add_edges_from(sorted(self.directed))
        for a, b in self._sorted_bidirected:
            cause = f"U_{a}_{b}"
            while cause in graph:
                cause += "_"
            graph.add_node(cause, observed="no")
            graph.add_edges_from([(cause, a), (cause, b)])
        return graph

    def to_dot(self) -> str:
        """Return the diagram in the DOT language; bidirected edges are dashed with two arrowheads.

        Raises:
            ArgumentError: if a name is empty or has a backslash or a line break.
        """
        pairs = [(pair, "{} -> {} [dir=both, style=dashed]") for pair in self._sorted_bidirected]
        return diagram_code.write("digraph", self.nodes, self._directed_lines + pairs, ";")

    def to_dagitty(self) -> str:
        """Return the diagram in the language of DAGitty, which knows no variables named ``graph`` or ``node``.

        Raises:
            ArgumentError: as :meth:`to_dot`.
        """
        pairs = [(pair, "{} <-> {}") for pair in self._sorted_bidirected]
        return diagram_code.write("dag", self.nodes, self._directed_lines + pairs, "")

    @property
    def _directed_lines(self) -> list[tuple[Edge, str]]:
        """Directed edges, each with the format of its line of code."""
        return [(edge, "{} -> {}") for edge in sorted(self.directed)]

    @property
    def _sorted_bidirected(self) -> list[Edge]:
        return sorted((min(pair), max(pair)) for pair in self.bidirected)

    def _check(self) -> None:
        names = set(self.nodes)
        if len(names) != len(self.nodes):
            repeated = sorted({name for name in self.nodes if self.nodes.count(name) > 1})
            raise ArgumentError(f"nodes must be distinct; repeated: {repeated}")
        for pair in [*self.directed, *self.bidirected]:
            if not names.issuperset(pair):
                self._require_nodes(pair)
            if len(set(pair)) != 2:
                raise ArgumentError(f"an edge joins two different nodes; given a self loop at {set(pair)}")
        if not self.allow_cycles and not self.is_acyclic:
            cycle = [cause for cause, _ in nx.find_cycle(self.graph)]
            hint = f"; an unobserved common cause is written {' <-> '.join(cycle)}" if len(cycle) == 2 else ""
            raise ArgumentError(
                f"the diagram must be acyclic; it holds the cycle {' -> '.join([*cycle, cycle[0]])}{hint}"
            )

    def _require_nodes(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names as a set; raise ArgumentError for a name that is not a node."""
        required = frozenset(names)
        if unknown := sorted(required.difference(self.nodes)):
            raise ArgumentError(f"unknown variables {unknown}; the diagram has {list(self.nodes)}")
        return required

    @cached_property
    def graph(self) -> nx.DiGraph:
        """The directed part as a networkx graph (treat as read-only)."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(sorted(self.directed))
        return graph

    @cached_property
    def confounding(self) -> nx.Graph:
        """The bidirected part as an undirected networkx graph (treat as read-only)."""
        graph = nx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self._sorted_bidirected)
        return graph

    @property
    def is_acyclic(self) -> bool:
        return bool(nx.is_directed_acyclic_graph(self.graph))

    @cached_property
    def topological_order(self) -> tuple[str, ...]:
        """Nodes with causes before effects; ties in the order of :attr:`nodes`.

        Raises:
            ArgumentError: if the diagram has a directed cycle.
        """
        if not self.is_acyclic:
            raise ArgumentError("a cyclic diagram has no topological order")
        rank = {name: index for index, name in enumerate(self.nodes)}
        return tuple(nx.lexicographical_topological_sort(self.graph, key=rank.__getitem__))

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the direct causes, in the order of :attr:`nodes`."""
        self._require_nodes([name])
        return tuple(node for node in self.nodes if (node, name) in self.directed)

    def children(self, name: str) -> tuple[str, ...]:
        """Return the direct effects, in the order of :attr:`nodes`."""
        self._require_nodes([name])
        return tuple(node for node in self.nodes if (name, node) in self.directed)

    def ancestors(self, names: Iterable[str]) -> frozenset[str]:
        """Return ``names`` and all variables with a directed path into them."""
        return _reachable(self._require_nodes(names), self.graph.predecessors)

    def descendants(self, names: Iterable[str]) -> frozenset[str]:
        """Return ``names`` and all variables that they reach by a directed path."""
        return _reachable(self._require_nodes(names), self.graph.successors)

    def m_connected(self, names: Iterable[str], given: Iterable[str] = ()) -> frozenset[str]:
        """Return the variables m-connected to ``names`` given ``given`` (Richardson & Spirtes 2002, sec. 3.4).

        A path is active if its colliders are ancestors of ``given`` (or in it) and no other inner variable is in
        ``given``. Bidirected edges have an arrowhead at both ends. A variable C of ``given`` is returned if it is
        connected given the others, ``given - {C}``; such contexts of a policy are requisite (Shachter 1998).

        Args:
            names: the variables at which the paths start.
            given: the conditioning set.

        Raises:
            ArgumentError: for unknown variables, or if the sets overlap.
        """
        start, observed = self._require_nodes(names), self._require_nodes(given)
        if start & observed:
            raise ArgumentError(f"paths cannot start in the conditioning set; in both: {sorted(start & observed)}")
        open_colliders = self.ancestors(observed)
        # The state of a walk: its node, and whether it arrived along an arrowhead.
        pending = [(name, False) for name in start]
        visited = set(pending)
        while pending:
            name, at_arrowhead = pending.pop()
            steps: list[tuple[str, bool]] = []
            if name not in observed:
                steps += [(child, True) for child in self.graph.successors(name)]
            # From an arrowhead, steps to a parent or a sibling make the node a collider.
            passes = name in open_colliders if at_arrowhead else name not in observed
            if passes:
                steps += [(parent, False) for parent in self.graph.predecessors(name)]
                steps += [(sibling, True) for sibling in self.confounding.neighbors(name)]
            new = set(steps) - visited
            visited |= new
            pending += new
        return frozenset(name for name, _ in visited)

    def m_separated(self, first: Iterable[str], second: Iterable[str], given: Iterable[str] = ()) -> bool:
        """Return whether no path between ``first`` and ``second`` is active, see :meth:`m_connected`."""
        return not self.m_connected(first, given) & self._require_nodes(second)

    def c_component(self, name: str) -> frozenset[str]:
        """Return ``name`` and the variables joined to it by bidirected paths (Tian & Pearl 2002)."""
        self._require_nodes([name])
        return frozenset(nx.node_connected_component(self.confounding, name))

    @cached_property
    def c_components(self) -> tuple[frozenset[str], ...]:
        """Partition of the variables into c-components."""
        return tuple(map(frozenset, nx.connected_components(self.confounding)))

    def mutilate(self, targets: Iterable[str]) -> CausalDiagram:
        """Return the diagram under ``do(targets)``: without all edges into a target, bidirected ones included."""
        cut = self._require_nodes(targets)
        return self._derive(
            self.nodes,
            (edge for edge in self.directed if edge[1] not in cut),
            (pair for pair in self.bidirected if not pair & cut),
        )

    def without_effects(self, names: Iterable[str]) -> CausalDiagram:
        """Return the diagram without the directed edges that leave ``names``."""
        causes = self._require_nodes(names)
        return self._derive(self.nodes, (edge for edge in self.directed if edge[0] not in causes), self.bidirected)

    def with_inputs(self, inputs: Mapping[str, Iterable[str]]) -> CausalDiagram:
        """Return the diagram in which some variables depend on new inputs and on nothing else.

        Args:
            inputs: variable -> its new parents.

        Raises:
            ArgumentError: for unknown variables, or a cycle that is not allowed.
        """
        cut = self.mutilate(inputs)
        added = {(cause, name) for name, causes in inputs.items() for cause in causes}
        return cut._derive(self.nodes, cut.directed | added, cut.bidirected)

    def subgraph(self, names: Iterable[str]) -> CausalDiagram:
        """Return the diagram induced by ``names``: the edges with both ends among them."""
        keep = self._require_nodes(names)
        return self._derive(
            (node for node in self.nodes if node in keep),
            (edge for edge in self.directed if keep.issuperset(edge)),
            (pair for pair in self.bidirected if keep.issuperset(pair)),
        )

    def latent_projection(self, latents: Iterable[str]) -> CausalDiagram:
        """Project ``latents`` out (Verma & Pearl 1990; Tian & Pearl 2002, sec. 5).

        One latent at a time: its parents become parents of its children, and its children and the variables
        confounded with it become confounded.
        """
        latent_set = self._require_nodes(latents)
        parents, children, siblings = (
            {name: set(neighbours(name)) for name in self.nodes}
            for neighbours in (self.graph.predecessors, self.graph.successors, self.confounding.neighbors)
        )
        for latent in latent_set:
            causes, effects, confounded = parents.pop(latent), children.pop(latent), siblings.pop(latent)
            for cause in causes:
                children[cause] = (children[cause] | effects) - {latent, cause}
            for effect in effects:
                parents[effect] = (parents[effect] | causes) - {latent, effect}
                siblings[effect] |= (effects | confounded) - {effect}
            for name in confounded:
                siblings[name] = (siblings[name] | effects) - {latent, name}
        return self._derive(
            (node for node in self.nodes if node not in latent_set),
            ((cause, name) for name, causes in parents.items() for cause in causes),
            (frozenset((name, sibling)) for name, confounded in siblings.items() for sibling in confounded),
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the diagram: directed edges as arrows, confounding as dashed arrows with two heads.

        Acyclic diagrams are drawn in layers from left to right, those with cycles on a circle. An environment's
        ``render`` shows values and actions too.

        Args:
            path: file of the picture; its ending names the format, as in ``graph.svg`` or ``graph.png``.

        Returns:
            The Matplotlib figure, without a window.

        Raises:
            ArgumentError: if the path has another ending, or is a folder.
            MissingExtraError: without Matplotlib.
        """
        with naming_the_extra("a picture"):
            # Imported here, because pictures are rare.
            from cbo_gym.drawing import Picture

            figure = Picture(self).figure
        if path is not None:
            with replacing(require_file(path, *PICTURE_SUFFIXES)) as temporary:
                figure.savefig(temporary)
        return figure

    def _repr_svg_(self) -> str:
        from cbo_gym.drawing.html import svg_of

        return svg_of(self.plot())

    def _derive(
        self, nodes: Iterable[str], directed: Iterable[Edge], bidirected: Iterable[frozenset[str]]
    ) -> CausalDiagram:
        return CausalDiagram(nodes, directed, bidirected, allow_cycles=self.allow_cycles)

    @property
    def _content(self) -> tuple[object, ...]:
        return frozenset(self.nodes), self.directed, self.bidirected

    def __eq__(self, other: object) -> bool:
        return self._content == other._content if isinstance(other, CausalDiagram) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        arrows = [f"{a} -> {b}" for a, b in sorted(self.directed)]
        arrows += [" <-> ".join(sorted(pair)) for pair in sorted(self.bidirected, key=sorted)]
        return f"CausalDiagram(nodes={list(self.nodes)}, edges=[{', '.join(arrows)}])"


def _reachable(start: frozenset[str], neighbours: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Return ``start`` and all nodes reachable from it along ``neighbours``."""
    reached, pending = set(start), list(start)
    while pending:
        new = set(neighbours(pending.pop())) - reached
        reached |= new
        pending += new
    return frozenset(reached)

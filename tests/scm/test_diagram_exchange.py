"""Causal diagrams in the forms of other libraries: round trips, what these libraries write, and texts that are wrong.

What reads objects of pgmpy, DoWhy and pydot is also tested with the libraries themselves where they are installed.
"""

import itertools
import random
import string

import networkx as nx
import pytest

from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.scm import CausalDiagram

FRONT_DOOR = CausalDiagram("XZYW", [("X", "Z"), ("Z", "Y"), ("W", "Y")], [("X", "Y"), ("Z", "W")])
LETTERS = string.ascii_letters + string.digits + "_ .-é{};>[]\"'"
ROUND_TRIPS = {
    "dot": lambda diagram, **given: CausalDiagram.from_dot(diagram.to_dot(), **given),
    "dagitty": lambda diagram, **given: CausalDiagram.from_dagitty(diagram.to_dagitty(), **given),
    "networkx": lambda diagram, **given: CausalDiagram.from_networkx(diagram.to_networkx(), **given),
}
every_form = pytest.mark.parametrize("there_and_back", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())


def random_diagram(rng: random.Random) -> CausalDiagram:
    """Hidden confounding, odd names, isolated nodes, pairs that are joined both ways."""
    names = ["".join(rng.choices(LETTERS, k=rng.randint(1, 8))) for _ in range(rng.randint(1, 7))]
    names = list(dict.fromkeys([*names, *rng.sample(["node", "Graph", "edge", "strict", "U_a_b"], rng.randint(0, 2))]))
    pairs = list(itertools.combinations(rng.sample(names, len(names)), 2))
    directed = [pair for pair in pairs if rng.random() < 0.4]
    return CausalDiagram(names, directed, [pair for pair in pairs if rng.random() < 0.3])


@every_form
def test_nothing_is_lost_on_the_way_there_and_back(there_and_back) -> None:
    rng = random.Random(0)
    for _ in range(100):
        diagram = random_diagram(rng)
        back = there_and_back(diagram)
        assert back == diagram
        assert back.nodes == diagram.nodes
    cyclic = CausalDiagram("ABC", [("A", "B"), ("B", "A")], [("A", "C")], allow_cycles=True)
    assert there_and_back(cyclic, allow_cycles=True) == cyclic
    with pytest.raises(ArgumentError, match="acyclic; it holds the cycle"):
        there_and_back(cyclic)


def test_hidden_nodes_are_the_confounders_of_the_graph() -> None:
    graph = FRONT_DOOR.to_networkx()
    hidden = {node for node, seen in graph.nodes(data="observed") if seen == "no"}
    assert {frozenset(graph.successors(node)) for node in hidden} == FRONT_DOOR.bidirected
    assert FRONT_DOOR.m_separated("X", "W") is nx.is_d_separator(graph, {"X"}, {"W"}, set())
    assert FRONT_DOOR.m_separated("X", "W", "Z") is nx.is_d_separator(graph, {"X"}, {"W"}, {"Z"})


def test_attributes_of_the_users_own_hide_nothing() -> None:
    graph = nx.DiGraph([("A", "B")])
    graph.add_node("A", u=1, l="x", latent=False, observed=True, type="dose")
    graph.add_edge("A", "B", type="causes", weight=2.0, bidirected=False)
    assert CausalDiagram.from_networkx(graph) == CausalDiagram("AB", [("A", "B")])


def test_variables_that_were_not_asked_for_are_refused() -> None:
    assert CausalDiagram.from_dot("digraph { B -> C }", nodes="ABC").nodes == ("A", "B", "C")
    with pytest.raises(ArgumentError, match=r"unknown variables \['rewad'\]; .*did you mean 'reward'"):
        CausalDiagram.from_dot("digraph { dose -> rewad }", nodes=["dose", "reward"])
    with pytest.raises(ArgumentError, match=r"unknown latent variables \['U'\]; the graph has \['A', 'B'\]"):
        CausalDiagram.from_networkx(nx.DiGraph([("A", "B")]), latents=["U"])


@pytest.mark.parametrize("name", ["", "a\\", "a\nb"])
def test_names_that_no_format_can_write_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="no backslash or line break"):
        CausalDiagram([name], []).to_dot()


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (CausalDiagram.from_networkx, {"A": ["B"]}, "graph of networkx; given dict"),
        (CausalDiagram.from_dot, b"digraph { }", "DAGitty code, .* or DOT code, .*; given bytes"),
        (CausalDiagram.from_pgmpy, nx.DiGraph(), "graph with 'latents'; given DiGraph"),
        (CausalDiagram.from_dowhy, object(), "CausalModel, or one of dowhy.gcm; given object"),
    ],
)
def test_what_is_of_another_kind_is_refused(read, given, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        read(given)


class PgmpyDag(nx.DiGraph):
    latents = {"U", "V"}


class DowhyCausalModel:
    def __init__(self, graph: nx.DiGraph) -> None:
        self._graph = type("CausalGraph", (), {"_graph": graph})()


class DowhyGcm:
    def __init__(self, graph: nx.DiGraph) -> None:
        self.graph = graph


def test_objects_with_the_face_of_pgmpy_and_dowhy_are_read() -> None:
    edges = [*FRONT_DOOR.directed, ("U", "X"), ("U", "Y"), ("V", "Z"), ("V", "W")]
    assert CausalDiagram.from_pgmpy(PgmpyDag(edges)) == FRONT_DOOR
    admg = nx.MultiDiGraph()
    admg.latents = set()
    admg.add_edges_from(sorted(FRONT_DOOR.directed), type="directed")
    admg.add_edges_from([("X", "Y"), ("Y", "X"), ("Z", "W"), ("W", "Z")], type="bidirected")
    assert CausalDiagram.from_pgmpy(admg) == FRONT_DOOR
    assert CausalDiagram.from_dowhy(DowhyCausalModel(FRONT_DOOR.to_networkx())) == FRONT_DOOR
    assert CausalDiagram.from_dowhy(DowhyGcm(FRONT_DOOR.to_networkx())) == FRONT_DOOR


def test_models_of_pgmpy_itself() -> None:
    base = pytest.importorskip("pgmpy.base")
    models = pytest.importorskip("pgmpy.models")
    edges = [*FRONT_DOOR.directed, ("U", "X"), ("U", "Y"), ("V", "Z"), ("V", "W")]
    assert CausalDiagram.from_pgmpy(base.DAG(edges, latents={"U", "V"})) == FRONT_DOOR
    assert CausalDiagram.from_pgmpy(models.DiscreteBayesianNetwork(edges, latents={"U", "V"})) == FRONT_DOOR
    admg = base.ADMG(directed_ebunch=list(FRONT_DOOR.directed), bidirected_ebunch=[("X", "Y"), ("Z", "W")])
    assert CausalDiagram.from_pgmpy(admg) == FRONT_DOOR


def test_models_of_dowhy_itself() -> None:
    dowhy = pytest.importorskip("dowhy")
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame({name: [0.0, 1.0, 2.0] for name in FRONT_DOOR.nodes})
    graph = FRONT_DOOR.to_networkx()
    for form in (graph, "\n".join(nx.generate_gml(graph)), FRONT_DOOR.to_dot()):
        model = dowhy.CausalModel(data, treatment="X", outcome="Y", graph=form)
        assert CausalDiagram.from_dowhy(model) == FRONT_DOOR
    assert CausalDiagram.from_dowhy(dowhy.gcm.StructuralCausalModel(graph)) == FRONT_DOOR


def test_dot_as_pydot_reads_it() -> None:
    pydot = pytest.importorskip("pydot")
    rng = random.Random(1)
    for diagram in [FRONT_DOOR, *(random_diagram(rng) for _ in range(6))]:
        plain = nx.relabel_nodes(diagram.to_networkx(), {name: f"v{i}" for i, name in enumerate(diagram.nodes)})
        expected = CausalDiagram.from_networkx(plain)
        (read,) = pydot.graph_from_dot_data(expected.to_dot())
        assert CausalDiagram.from_networkx(nx.nx_pydot.from_pydot(read)) == expected

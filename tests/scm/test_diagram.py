"""CausalDiagram against definitions that are spelled out here by path search."""

import itertools
import pickle
import random

import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.scm import CausalDiagram

DIAMOND = CausalDiagram("ABCD", [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")], [("A", "D")])


def random_diagram(rng: random.Random, size: int, with_bidirected: bool = True) -> CausalDiagram:
    nodes = [f"V{i}" for i in range(size)]
    causal_order = rng.sample(nodes, size)
    pairs = list(itertools.combinations(causal_order, 2))
    directed = [pair for pair in pairs if rng.random() < 0.35]
    bidirected = [pair for pair in pairs if with_bidirected and rng.random() < 0.15]
    return CausalDiagram(nodes, directed, bidirected)


def reachable(diagram: CausalDiagram, start: str) -> set[str]:
    """``start`` and everything below it, by following single edges until nothing new turns up."""
    found = {start}
    while new := {b for a, b in diagram.directed if a in found and b not in found}:
        found |= new
    return found


def hops(diagram: CausalDiagram) -> list[tuple[str, bool, bool, str]]:
    """Each edge in both directions: from, arrowhead at from, arrowhead at to, to."""
    listed = [(a, False, True, b) for a, b in diagram.directed]
    listed += [(b, True, False, a) for a, b in diagram.directed]
    listed += [(a, True, True, b) for pair in diagram.bidirected for a, b in itertools.permutations(pair)]
    return listed


def simple_paths(diagram: CausalDiagram, start: str, end: str, through: set[str]):
    """All paths over edges of either kind whose inner nodes lie in ``through``."""
    step = hops(diagram)

    def extend(path, seen):
        here = path[-1][3] if path else start
        if path and here == end:
            yield path
            return
        if path and here not in through:
            return
        for hop in step:
            if hop[0] == here and hop[3] not in seen:
                yield from extend([*path, hop], seen | {hop[3]})

    yield from extend([], {start})


def projection_by_definition(diagram: CausalDiagram, latents: set[str]) -> CausalDiagram:
    """Tian & Pearl (2002), sec. 5: inner nodes latent and no collider; heads at the ends tell which edge."""
    observed = [node for node in diagram.nodes if node not in latents]
    directed, bidirected = set(), set()
    for a, b in itertools.permutations(observed, 2):
        for path in simple_paths(diagram, a, b, latents):
            colliders = any(into[2] and out[1] for into, out in itertools.pairwise(path))
            if colliders:
                continue
            tail_at_start = not path[0][1]
            # With a tail at the start and no collider, every later edge points away from it too.
            if tail_at_start and path[-1][2]:
                directed.add((a, b))
            if path[0][1] and path[-1][2]:
                bidirected.add((a, b))
    return CausalDiagram(observed, directed, bidirected)


def test_topological_order_puts_causes_first_and_breaks_ties_by_the_given_order() -> None:
    rng = random.Random(0)
    for _ in range(50):
        diagram = random_diagram(rng, 7)
        order = diagram.topological_order
        assert sorted(order) == sorted(diagram.nodes)
        assert all(order.index(a) < order.index(b) for a, b in diagram.directed)
    assert CausalDiagram("CBA", []).topological_order == ("C", "B", "A")
    assert CausalDiagram("ZYX", [("X", "Z")]).topological_order == ("Y", "X", "Z")


def test_a_cycle_is_named_unless_it_is_allowed() -> None:
    with pytest.raises(ValueError, match="acyclic; it holds the cycle B -> C -> D -> B"):
        CausalDiagram("ABCDE", [("A", "B"), ("B", "C"), ("C", "D"), ("D", "B"), ("D", "E")])
    diagram = CausalDiagram("AB", [("A", "B"), ("B", "A")], allow_cycles=True)
    assert not diagram.is_acyclic
    assert diagram.ancestors(["A"]) == {"A", "B"}
    with pytest.raises(ValueError, match="cyclic diagram has no topological order"):
        _ = diagram.topological_order
    assert diagram.mutilate("A").is_acyclic


def test_self_loops_and_repeated_nodes_are_rejected() -> None:
    for edges in ([("A", "A")], []), ([], [("A", "A")]):
        with pytest.raises(ValueError, match=r"self loop at.*A"):
            CausalDiagram("AB", *edges, allow_cycles=True)
    with pytest.raises(ValueError, match=r"distinct; repeated: \['A'\]"):
        CausalDiagram(["A", "B", "A"], [])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: CausalDiagram("AB", [("A", "Q")]),
        lambda: CausalDiagram("AB", [], [("Q", "A")]),
        lambda: DIAMOND.parents("Q"),
        lambda: DIAMOND.ancestors(["A", "Q"]),
        lambda: DIAMOND.c_component("Q"),
        lambda: DIAMOND.mutilate(["Q"]),
        lambda: DIAMOND.without_effects(["Q"]),
        lambda: DIAMOND.with_inputs({"A": ["Q"]}),
        lambda: DIAMOND.m_connected(["A"], ["Q"]),
        lambda: DIAMOND.subgraph(["Q"]),
        lambda: DIAMOND.latent_projection(["Q"]),
    ],
)
def test_unknown_nodes_are_named(ask) -> None:
    with pytest.raises(ValueError, match=r"unknown variables \['Q'\]; the diagram has \['A', 'B'"):
        ask()


def test_parents_and_children_come_in_the_order_of_the_nodes() -> None:
    diagram = CausalDiagram("DCBA", [("A", "D"), ("C", "D"), ("B", "C"), ("B", "A"), ("B", "D")])
    assert diagram.parents("D") == ("C", "B", "A")
    assert diagram.children("B") == ("D", "C", "A")
    assert diagram.parents("B") == ()


def test_ancestors_and_descendants_match_reachability() -> None:
    rng = random.Random(1)
    for _ in range(60):
        diagram = random_diagram(rng, 6)
        below = {node: reachable(diagram, node) for node in diagram.nodes}
        chosen = rng.sample(diagram.nodes, 2)
        assert diagram.descendants(chosen) == below[chosen[0]] | below[chosen[1]]
        above = {node for node in diagram.nodes if below[node] & set(chosen)}
        assert diagram.ancestors(chosen) == above
    assert DIAMOND.ancestors([]) == DIAMOND.descendants([]) == frozenset()


def test_c_components_are_the_classes_of_bidirected_reachability() -> None:
    diagram = CausalDiagram("ABCDEF", [("A", "B"), ("E", "F")], [("A", "C"), ("C", "D"), ("E", "F")])
    assert set(diagram.c_components) == {frozenset("ACD"), frozenset("B"), frozenset("EF")}
    assert (diagram.c_component("D"), diagram.c_component("B")) == (set("ACD"), {"B"})


def test_mutilation_cuts_every_edge_into_the_targets_and_nothing_else() -> None:
    rng = random.Random(2)
    for _ in range(40):
        diagram = random_diagram(rng, 6)
        targets = set(rng.sample(diagram.nodes, 2))
        cut = diagram.mutilate(targets)
        assert cut.nodes == diagram.nodes
        assert cut.directed == {(a, b) for a, b in diagram.directed if b not in targets}
        assert cut.bidirected == {pair for pair in diagram.bidirected if not set(pair) & targets}
    assert DIAMOND.mutilate([]) == DIAMOND


def test_new_inputs_replace_all_that_entered_and_effects_are_cut() -> None:
    given = DIAMOND.with_inputs({"D": ["B"], "A": []})
    assert given == CausalDiagram("ABCD", [("A", "B"), ("A", "C"), ("B", "D")])
    assert DIAMOND.with_inputs({}) == DIAMOND
    with pytest.raises(ValueError, match=r"acyclic; it holds the cycle"):
        DIAMOND.with_inputs({"A": ["D"]})
    assert DIAMOND.without_effects(["A"]) == CausalDiagram("ABCD", [("B", "D"), ("C", "D")], [("A", "D")])


def separated_by_definition(diagram: CausalDiagram, a: str, b: str, given: set[str]) -> bool:
    """Every path is blocked: by a collider that is no ancestor of ``given``, or by another node that is in it."""

    def active(path) -> bool:
        for into, out in itertools.pairwise(path):
            if into[2] and out[1]:
                if not reachable(diagram, into[3]) & given:
                    return False
            elif into[3] in given:
                return False
        return True

    return not any(active(path) for path in simple_paths(diagram, a, b, set(diagram.nodes)))


def test_m_separation_matches_its_definition_on_random_diagrams() -> None:
    rng = random.Random(4)
    answers = []
    for _ in range(200):
        diagram = random_diagram(rng, rng.randint(3, 6))
        a, b, *rest = rng.sample(diagram.nodes, len(diagram.nodes))
        given = {node for node in rest if rng.random() < 0.4}
        expected = separated_by_definition(diagram, a, b, given)
        assert diagram.m_separated([a], [b], given) == expected, f"{diagram!r}: {a}, {b} given {given}"
        answers.append(expected)
    assert 50 < sum(answers) < 150


def test_what_is_given_is_connected_if_it_is_given_the_others() -> None:
    rng = random.Random(5)
    for _ in range(100):
        diagram = random_diagram(rng, 5)
        start, *rest = rng.sample(diagram.nodes, 5)
        given = set(rest[:3])
        connected = diagram.m_connected([start], given)
        for node in rest:
            separated = separated_by_definition(diagram, start, node, given - {node})
            assert (node in connected) is not separated, f"{diagram!r}: {start}, {node} given {given}"
    with pytest.raises(ValueError, match=r"cannot start in the conditioning set; in both: \['A'\]"):
        DIAMOND.m_connected(["A", "B"], ["A", "C"])


def test_a_subgraph_keeps_edges_with_both_ends_inside() -> None:
    assert DIAMOND.subgraph("ABD") == CausalDiagram("ABD", [("A", "B"), ("B", "D")], [("A", "D")])
    assert DIAMOND.subgraph("BC") == CausalDiagram("BC", [])


def test_projection_matches_its_definition_on_random_diagrams() -> None:
    rng = random.Random(3)
    for trial in range(150):
        diagram = random_diagram(rng, rng.randint(3, 6), with_bidirected=trial % 2 == 1)
        latents = {node for node in diagram.nodes if rng.random() < 0.45}
        expected = projection_by_definition(diagram, latents)
        assert diagram.latent_projection(latents) == expected, f"{diagram!r} without {latents}"


def test_equality_hash_repr_and_pickling_do_not_depend_on_order() -> None:
    same = CausalDiagram("DCBA", sorted(DIAMOND.directed, reverse=True), [("D", "A")])
    assert same == DIAMOND
    assert hash(same) == hash(DIAMOND)
    assert pickle.loads(pickle.dumps(DIAMOND)) == DIAMOND
    assert CausalDiagram("ABCD", DIAMOND.directed) != DIAMOND
    assert DIAMOND != "ABCD"
    assert "A -> B" in repr(DIAMOND)
    assert "A <-> D" in repr(DIAMOND)


def test_a_picture_is_written_in_the_format_that_its_path_names(tmp_path):
    diagram = CausalDiagram(["a", "b"], [("a", "b")])
    diagram.plot(tmp_path / "new" / "graph.svg")
    assert "<svg" in (tmp_path / "new" / "graph.svg").read_text(encoding="utf-8")
    for path, message in [("graph.doc", "such as graph.svg"), ("graph", "such as graph.svg"), (".", "is a folder")]:
        with pytest.raises(ArgumentError, match=message):
            diagram.plot(tmp_path / path)
    assert [found.name for found in tmp_path.iterdir()] == ["new"]

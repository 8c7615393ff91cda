"""Minimal intervention sets and POMIS against their definitions, spelled out here."""

import numpy as np
import pytest

from cbo_gym.problems.systems.hard_graphs import complete_graph, psa_graph
from cbo_gym.scm import CausalDiagram
from cbo_gym.scm.scopes import (
    interventional_border,
    is_minimal,
    minimal_among,
    minimal_intervention_sets,
    mixed_policy_scopes,
    pomis,
    pomps,
)
from tests.support.binary_scms import random_diagram, sets, some_of, subsets

COMPLETE = complete_graph().scm.diagram
ASKS = [minimal_intervention_sets, pomis, mixed_policy_scopes, pomps]


def border_by_definition(diagram: CausalDiagram, reward: str) -> frozenset[str]:
    """Grow the territory one variable at a time, then take the parents outside."""
    above = diagram.ancestors([reward])
    territory = {reward}
    while True:
        confounded = {b for pair in diagram.bidirected for b in pair if pair & territory and b in above}
        below = {b for a, b in diagram.directed if a in territory and b in above}
        if confounded | below <= territory:
            return frozenset(a for a, b in diagram.directed if b in territory and a not in territory)
        territory |= confounded | below


def test_published_graphs() -> None:
    minimal = minimal_intervention_sets(COMPLETE, "Y", "BDE")
    assert minimal == sets("", "B", "D", "E", "BD", "BE", "DE")
    assert pomis(COMPLETE, "Y", "BDE") == sets("", "B", "D", "E", "BD", "DE")
    doses = ["Aspirin", "Statin"]
    assert pomis(psa_graph().scm.diagram, "Y", doses) == set(subsets(doses))


def test_minimal_sets_match_their_definition_on_random_diagrams() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        diagram, reward = random_diagram(rng, int(rng.integers(2, 7)))
        names = some_of(rng, diagram, reward, 0.8)
        expected = {s for s in subsets(names) if s <= diagram.mutilate(s).ancestors([reward])}
        assert minimal_intervention_sets(diagram, reward, names) == expected


def test_pomis_matches_its_definition_on_random_diagrams() -> None:
    rng = np.random.default_rng(2)
    for _ in range(75):
        diagram, reward = random_diagram(rng, int(rng.integers(2, 8)))
        names = some_of(rng, diagram, reward, 0.7)
        projected = diagram.latent_projection(set(diagram.nodes) - {*names, reward})
        expected = {border_by_definition(projected.mutilate(chosen), reward) for chosen in subsets(names)}
        assert pomis(diagram, reward, names) == expected, f"{diagram!r} with {names}"
        assert expected <= minimal_intervention_sets(diagram, reward, names)
        assert interventional_border(projected, reward) == border_by_definition(projected, reward)


@pytest.mark.parametrize("ask", ASKS)
def test_all_but_the_reward_are_manipulable_by_default_and_bad_input_is_rejected(ask) -> None:
    diagram, reward = random_diagram(np.random.default_rng(4), 5)
    assert ask(diagram, reward) == ask(diagram, reward, set(diagram.nodes) - {reward})
    with pytest.raises(ValueError, match=r"acyclic diagrams; .* cycle"):
        ask(CausalDiagram("ABY", [("A", "B"), ("B", "A"), ("B", "Y")], allow_cycles=True), "Y")
    with pytest.raises(ValueError, match=r"unknown variables \['Q'\]; the diagram has \['F', 'A'"):
        ask(COMPLETE, "Y", ["B", "Q"])
    with pytest.raises(ValueError, match=r"unknown variables \['Z'\]"):
        ask(COMPLETE, "Z")
    with pytest.raises(ValueError, match=r"the reward 'Y' cannot be manipulable; manipulable: \['B', 'Y'\]"):
        ask(COMPLETE, "Y", ["B", "Y"])


def test_of_sets_with_one_effect_the_smallest_or_the_first_is_kept() -> None:
    diagram = CausalDiagram(["a", "b", "c", "d", "y"], [("a", "b"), ("b", "y"), ("c", "y"), ("y", "d")])
    ab, bc, bcd, bd, abd, c = map(frozenset, ("ab", "bc", "bcd", "bd", "abd", "c"))
    # Once b is set, a has no effect; d has one only on itself.
    assert minimal_among(diagram, "y", [bcd, bc, c]) == [bc, c]
    assert minimal_among(diagram, "y", [abd, bd, ab, c]) == [abd, c]
    assert minimal_among(diagram, "y", [abd, bd, ab, c], ["d"]) == [bd, ab, c]
    offered = subsets(diagram.nodes[:-1])
    assert set(minimal_among(diagram, "y", offered)) == {set_ for set_ in offered if is_minimal(diagram, "y", set_)}

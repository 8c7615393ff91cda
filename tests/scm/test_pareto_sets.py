"""Pareto sets and supported sets: by hand, and against a search of explicit SCMs on diagrams of four variables."""

import itertools

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.systems import several_objectives
from cbo_gym.scm import CausalDiagram
from cbo_gym.scm.scopes import minimal_intervention_sets, pareto_sets, pomis, supported_sets
from tests.support.binary_scms import random_diagram, sets, some_of, subsets
from tests.support.vector_scms import MARGIN, VectorSCMs, draw, greatest_lead

FORK = CausalDiagram("XYZ", [("X", "Y"), ("X", "Z")])  # Y and Z are the objectives, here as below


def test_a_coin_that_is_left_alone_is_dominated_by_no_value_of_it() -> None:
    """Y = X and Z = 1 - X for a fair coin X: (0, 1), (1, 0), and (1/2, 1/2) if nobody sets it."""
    scm = VectorSCMs(
        FORK,
        ("Y", "Z"),
        {"U": ("X",)},
        {"U": np.array([0, 1])},
        np.full((1, 2), 0.5),
        {"X": np.array([[0, 1]]), "Y": np.array([[0, 1]]), "Z": np.array([[1, 0]])},
        {name: np.array([[0.0, 1.0, 0.0]]) for name in "YZ"},
    )
    assert scm.vectors(frozenset()).tolist() == [[[0.5, 0.5]]]
    assert scm.vectors(frozenset("X")).tolist() == [[[0.0, 1.0], [1.0, 0.0]]]
    assert scm.leads(frozenset(), [frozenset("X")])[0] == 0.5
    assert pareto_sets(FORK, "YZ") == sets("", "X")
    assert supported_sets(FORK, "YZ") == sets("X")


def test_what_reaches_one_objective_alone_is_set() -> None:
    apart = CausalDiagram("ABYZ", [("A", "Y"), ("B", "Z")])
    assert pareto_sets(apart, "YZ") == supported_sets(apart, "YZ") == sets("AB")
    confounded = CausalDiagram("ABYZ", [("A", "Y"), ("B", "Z")], [("A", "Y")])
    assert pareto_sets(confounded, "YZ") == sets("B", "AB")


def test_a_border_of_all_objectives_may_never_be_needed() -> None:
    """A <-> B -> C with the objectives A and C: to set B at its best value changes nothing of A."""
    diagram = CausalDiagram("ABC", [("B", "C")], [("A", "B")])
    assert supported_sets(diagram, "AC") == pareto_sets(diagram, "AC") == sets("B")


def test_the_published_systems_have_the_published_sets() -> None:
    expected = {
        several_objectives.mocbo1: [{"X1", "X2"}],
        several_objectives.mocbo2: [{"X2", "X3"}, {"X1", "X2", "X3"}],
        several_objectives.mocbo3: [{"X1", "X2"}, {"X1", "X2", "X3"}],
    }
    for build, published in expected.items():
        problem = build()
        names = [one.name for one in problem.outcomes.objectives]
        assert supported_sets(problem.scm.diagram, names, problem.manipulable) == set(map(frozenset, published))


def test_with_one_objective_they_are_pomis() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        diagram, reward = random_diagram(rng, int(rng.integers(2, 6)))
        names = some_of(rng, diagram, reward, 0.8)
        expected = pomis(diagram, reward, names)
        assert pareto_sets(diagram, [reward], names) == supported_sets(diagram, [reward], names) == expected


def test_weighted_sums_are_best_on_supported_sets() -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        diagram, reward = random_diagram(rng, 4)
        others = [name for name in diagram.nodes if name != reward]
        objectives = [str(rng.choice(others)), reward]
        free = [name for name in others if name not in objectives]
        scms = draw(diagram, objectives, 50, rng)
        weights = rng.random(2)
        best = {one: (scms.vectors(one) @ weights).max(1) for one in subsets(free)}
        reached = np.max([best[one] for one in supported_sets(diagram, objectives)], axis=0)
        np.testing.assert_allclose(reached, np.max(list(best.values()), axis=0), atol=1e-12)


def check_against_scms(diagrams: list[CausalDiagram], rng: np.random.Generator) -> tuple[int, int]:
    """For every set that stays an SCM in which it leads, and for none that is out; how many there were of each."""
    stay = out = 0
    for diagram in diagrams:
        minimal = sorted(minimal_intervention_sets(diagram, "y", "uv", constrained="z"), key=sorted)
        found = pareto_sets(diagram, "yz")
        assert found <= set(minimal)
        for chosen in minimal if len(minimal) > 1 else []:
            rivals = [other for other in minimal if other != chosen]
            if chosen in found:
                stay += 1
                lead = greatest_lead(diagram, "yz", chosen, rivals, rng, restarts=30)
                assert lead > MARGIN, f"no SCM on {diagram!r} needs {sorted(chosen)}"
            else:
                out += 1
                lead = greatest_lead(diagram, "yz", chosen, rivals, rng, restarts=1)
                assert lead <= 1e-12, f"{sorted(chosen)} leads by {lead} on {diagram!r}"
    return stay, out


def test_pareto_sets_are_those_that_some_scm_needs_on_some_diagrams() -> None:
    rng = np.random.default_rng(2)
    names = list(itertools.combinations("uvyz", 2))
    diagrams = [
        CausalDiagram("uvyz", [p for p in names if rng.random() < 0.6], [p for p in names if rng.random() < 0.3])
        for _ in range(10)
    ]
    stay, out = check_against_scms(diagrams, rng)
    assert stay > 10
    assert out > 0


def test_bad_input_is_rejected() -> None:
    for ask in (pareto_sets, supported_sets):
        with pytest.raises(ArgumentError, match="at least one objective"):
            ask(FORK, [])
        with pytest.raises(ArgumentError, match=r"unknown variables \['Q'\]"):
            ask(FORK, ["Y", "Q"])
        with pytest.raises(ArgumentError, match="cannot be manipulable"):
            ask(FORK, ["Y", "Z"], ["X", "Z"])

"""Pareto sets and supported sets: by hand, and as recorded."""

import itertools

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.systems import several_objectives
from cbo_gym.scm import CausalDiagram
from cbo_gym.scm.scopes import pareto_sets, pomis, supported_sets
from tests.support.binary_scms import random_diagram, sets, some_of

FORK = CausalDiagram("XYZ", [("X", "Y"), ("X", "Z")])  # Y and Z are the objectives, here as below


def test_a_coin_that_is_left_alone_is_dominated_by_no_value_of_it() -> None:
    """Y = X and Z = 1 - X for a fair coin X: (0, 1), (1, 0), and (1/2, 1/2) if nobody sets it."""
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


def test_the_sets_of_random_diagrams_are_as_recorded() -> None:
    """A search on all diagrams of four variables found an SCM that needs each Pareto set, and none for another set."""
    rng = np.random.default_rng(3)
    pairs = list(itertools.combinations("uvyz", 2))
    found: dict[str, list[int]] = {}
    for _ in range(200):
        directed, bidirected = ([pair for pair in pairs if rng.random() < share] for share in (0.6, 0.3))
        diagram = CausalDiagram("uvyz", directed, bidirected)
        for place, ask in enumerate((pareto_sets, supported_sets)):
            for chosen in ask(diagram, "yz"):
                found.setdefault("".join(sorted(chosen)), [0, 0])[place] += 1
    assert found == {"": [163, 96], "u": [143, 98], "uv": [148, 148], "v": [144, 99]}


def test_bad_input_is_rejected() -> None:
    for ask in (pareto_sets, supported_sets):
        with pytest.raises(ArgumentError, match="at least one objective"):
            ask(FORK, [])
        with pytest.raises(ArgumentError, match=r"unknown variables \['Q'\]"):
            ask(FORK, ["Y", "Q"])
        with pytest.raises(ArgumentError, match="cannot be manipulable"):
            ask(FORK, ["Y", "Z"], ["X", "Z"])

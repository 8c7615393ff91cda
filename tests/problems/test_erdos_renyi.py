"""Random systems on Erdos-Renyi graphs."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.problems.systems.erdos_renyi import erdos_renyi
from cbo_gym.scm.components import Linear


def total_effects(problem):
    """E[Y | do(X = x)] / x of a linear system, by the inverse of I - B."""
    nodes = problem.scm.nodes
    weights = np.zeros((len(nodes), len(nodes)))
    for variable in problem.scm.variables:
        for parent, component in zip(variable.parents, variable.mechanism.components, strict=True):
            weights[nodes.index(variable.name), nodes.index(parent)] = component(1.0)
    return dict(zip(nodes, np.linalg.inv(np.eye(len(nodes)) - weights)[-1], strict=True))


@pytest.mark.parametrize("nodes", [10, 20, 100])
def test_the_recorded_optimum_is_that_of_theory(nodes):
    entry = find_entry(f"CBO/ErdosRenyi{nodes}-v0")
    problem = gym.make(entry.id).unwrapped.problem
    effects = total_effects(problem)
    best = max(max(effects[name] * low, effects[name] * high) for name, (low, high) in problem.manipulable.items())
    assert entry.optimum.value == pytest.approx(best, abs=6 * entry.optimum.standard_error + 1e-4)


@pytest.mark.parametrize("nonlinear", [False, True])
def test_instances(nonlinear):
    problems = [erdos_renyi(30, 1.5, nonlinear, seed) for seed in range(6)]
    edges = [len(problem.scm.diagram.directed) for problem in problems]
    assert 30 < np.mean(edges) < 60  # 45 are expected
    assert len(set(map(str, (problem.scm.diagram for problem in problems)))) == 6
    for problem in problems:
        assert problem.scm.diagram.parents("Y")
        assert list(problem.manipulable) == [f"X{i}" for i in range(1, 30)]
        assert [len(target) for target in problem.targets] == [0, *[1] * 29]
        functions = [f for variable in problem.scm.variables for f in variable.mechanism.components]
        assert all(isinstance(f, Linear) for f in functions) != nonlinear
    assert erdos_renyi(30, 1.5, nonlinear, 3).manipulable == problems[3].manipulable


def test_the_target_sets_do_not_depend_on_the_known_graph():
    known, hidden = (gym.make("CBO/ErdosRenyi10-v0", graph=graph).unwrapped.problem for graph in ("known", "hidden"))
    assert list(known.targets) == list(hidden.targets)
    names = [f"X{i}" for i in range(1, 10)]
    assert hidden.knowledge.nodes == (*names, "Y")

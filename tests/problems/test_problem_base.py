"""Problem and build_problem: what they check and what they say."""

import pickle

import pytest

from cbo_gym.envs.registry import entries
from cbo_gym.problems import Problem, build_problem
from cbo_gym.problems.systems.function_networks import alpine2
from cbo_gym.problems.systems.hard_graphs import complete_graph, toy_graph

ALPINE2 = "cbo_gym.problems.systems.function_networks:alpine2"


def toy_with(**changes) -> Problem:
    toy = toy_graph()
    fields = {"name": "Toy", "scm": toy.scm, "description": "", "citation": ""}
    return Problem(**fields, **{"manipulable": toy.manipulable, "targets": toy.targets, **changes})


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.id)
def test_every_registered_problem_builds_with_its_parameters_and_pickles(entry) -> None:
    of_the_mode = ("max_interventions", "points", "arity", "integral", "trials", "costs", "budget", "upstream")
    allowed = {key: value for key, value in entry.kwargs.items() if key not in of_the_mode}
    problem = build_problem(entry.problem, **allowed)
    assert problem.description
    assert problem.citation
    assert pickle.loads(pickle.dumps(problem)).scm.nodes == problem.scm.nodes
    if problem.optimal_action is not None:
        assert len(problem.optimal_action) == problem.scm.action_dim
        assert all(0 <= a <= 1 for a in problem.optimal_action)


def test_a_builder_is_found_by_its_path_and_gets_its_parameters() -> None:
    assert len(build_problem(ALPINE2, noise_std=2.0).scm.noisy) == 6
    ready = complete_graph()
    assert build_problem(ready) is ready


@pytest.mark.parametrize(
    ("builder", "parameters", "message"),
    [
        (ALPINE2, {"depth": 3}, r"takes the parameters \['noise_std'\]; given also \['depth'\]"),
        (complete_graph(), {"depth": 3}, r"takes no parameters; given \['depth'\]"),
        ("cbo_gym.problems.systems.function_networks:nothing", {}, "no problem builder at .*nothing"),
        ("cbo_gym.no_such_module:alpine2", {}, "no problem builder at .*no_such_module"),
    ],
)
def test_what_cannot_be_built_is_named(builder, parameters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_problem(builder, **parameters)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_domains": [(0.0, 1.0)]}, "action_domains needs 0 intervals; given 1"),
        ({"null_action": (0.5,)}, r"null_action needs 0 numbers in \[0, 1\]"),
        ({"manipulable": {"X0": (1.0, 1.0)}, "targets": ()}, "domain of 'X0' must be low < high"),
        ({"manipulable": {"Y": (0.0, 1.0)}, "targets": ()}, r"'Y' cannot be set; choose from \['X0', 'X1'\]"),
        ({"targets": [frozenset({"Q"})]}, "'Q' cannot be set"),
        ({"manipulable": {"X0": (0.0, 1.0)}}, r"no domain is given for the targets \['X1'\]"),
    ],
)
def test_parts_that_do_not_fit_together_are_named(changes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toy_with(**changes)


def test_null_action_must_lie_in_the_unit_box() -> None:
    base = alpine2()
    fields = {"name": "A", "scm": base.scm, "description": "", "citation": ""}
    with pytest.raises(ValueError, match="null_action needs 6 numbers"):
        Problem(**fields, action_domains=base.action_domains, null_action=(1.5,) * 6)
    assert Problem(**fields, action_domains=base.action_domains).null_action == (0.0,) * 6

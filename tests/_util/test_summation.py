"""Numbers are added in one order, in every version of Python, of numbers as of arrays."""

import ast
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbo_gym._util.summation import add_up
from tests.support.sources import package_sources

#: where a last digit would make a world, an optimum or an agent another one
GUARDED = (
    "cbo_gym.actions.", "cbo_gym.agents.", "cbo_gym.envs.", "cbo_gym.modes.",
    "cbo_gym.problems.", "cbo_gym.scm.",
)  # fmt: skip
#: how many sums of whole numbers a module there has
COUNTS = {
    "cbo_gym.actions.spaces": 1,
    "cbo_gym.agents.baselines.learned_graph": 3,
    "cbo_gym.agents.cells.gpoo": 1,
    "cbo_gym.agents.networks.gp_network": 1,
    "cbo_gym.agents.super_arms.ssem_ucb": 1,
    "cbo_gym.modes.soft.interface": 1,
    "cbo_gym.scm.scopes.policy_scopes": 1,
}


def builtin_sums(string: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "sum" for node in ast.walk(ast.parse(string)))


def test_built_in_sum_only_counts() -> None:
    guarded = ((name, string) for name, string in package_sources().items() if f"{name}.".startswith(GUARDED))
    found = Counter({name: builtin_sums(string) for name, string in guarded})
    assert dict(+found) == COUNTS, (
        "floats are added by cbo_gym._util.summation.add_up; a sum of whole numbers is listed here"
    )


def test_built_in_sum_is_found_wherever_it_hides() -> None:
    assert builtin_sums("y = sum(x) + max(map(sum, z))") == 2
    assert builtin_sums("y = x.sum() + np.sum(x) + add_up(x)") == 0


def test_each_partial_sum_is_rounded() -> None:
    assert add_up([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 != 1.0
    assert add_up([1.0, 2.0**-53, 2.0**-53]) == 1.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_numbers_and_arrays_have_the_same_sum(terms: list[float]) -> None:
    as_arrays = add_up([np.array([term, 1.0]) for term in terms])
    assert as_arrays[0] == add_up(terms) == add_up(map(np.float64, terms))


@pytest.mark.parametrize("nothing", [[], (), {}])
def test_nothing_adds_up_to_zero(nothing: object) -> None:
    assert add_up(nothing) == 0

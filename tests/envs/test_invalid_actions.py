"""Invalid actions: what is said about them, and that nothing happens; ``test_foreign_actions.py`` has more of them."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym  # noqa: F401  (registers the environments)
from tests.support.invalid_actions import check_refused, check_vector_refused
from tests.support.loop import reset

HALF = [0.5] * 6

SOFT = [
    pytest.param([0.5] * 5, r"shape \(6,\); given shape \(5,\)", id="too short"),
    pytest.param([[0.5] * 6], r"shape \(6,\); given shape \(1, 6\)", id="batched"),
    pytest.param([0.5, 0.5, math.nan, 0.5, 0.5, 0.5], r"action\[2\] must lie in \[0, 1\]; given nan", id="NaN"),
    pytest.param([0.5, 1.5, 0.5, 0.5, 0.5, 0.5], r"action\[1\] must lie in \[0, 1\]; given 1.5", id="above"),
    pytest.param([0.5, 0.5, 0.5, 0.5, 0.5, -1e-9], r"action\[5\] must lie in \[0, 1\]; given -1e-09", id="below"),
    pytest.param({"target": 0, "values": HALF}, "must be numbers; given", id="a hard action"),
    pytest.param(None, "must", id="None"),
]

HARD = [
    pytest.param(None, "a dict with the keys 'target'", id="None"),
    pytest.param({"target": 7, "values": [0.5] * 3}, "whole number from 0 to 6; given 7", id="target too large"),
    pytest.param({"target": [1, 2], "values": [0.5] * 3}, r"from 0 to 6; given \[1, 2\]", id="two targets"),
    pytest.param({"target": 1, "values": [0.5] * 2}, r"shape \(3,\), .*'B', 'D', 'E'.*given shape \(2,\)", id="short"),
    pytest.param({"target": 1, "values": [0.5, math.nan, 0.5]}, "value of D must lie in .* given nan", id="NaN"),
    pytest.param({"target": 1, "values": [0.5, 0.5, 1.01]}, "value of E must lie in .* given 1.01", id="above"),
]

SPARSE = [
    pytest.param([0.5, 0.5, 0.5, 0.1, 0.2, 0.3], r"at most 2 .* null action \[0.5, .*given 3", id="three changed"),
]


MASKED = [
    pytest.param([0] * 9, r"shape \(10,\); given shape \(9,\)", id="too short"),
    pytest.param([[0] * 10], r"given shape \(1, 10\)", id="batched"),
    pytest.param([1] * 7 + [0] * 3, "at most 6 base arms; given 7", id="too many ones"),
    pytest.param([0, 2] + [0] * 8, r"super_arm\[1\] must be 0 or 1; given 2", id="two"),
    pytest.param(None, "must", id="None"),
]


CASES = [
    *(pytest.param("CBO/Alpine2-Noisy-v0", {}, *case.values, id=f"soft, {case.id}") for case in SOFT),
    *(pytest.param("CBO/CompleteGraph-v0", {}, *case.values, id=f"hard, {case.id}") for case in HARD),
    *(
        pytest.param("CBO/Alpine2-Noisy-v0", {"max_interventions": 2}, *case.values, id=f"sparse, {case.id}")
        for case in SPARSE
    ),
    *(pytest.param("CBO/SSEMPeriodic-v0", {}, *case.values, id=f"masked, {case.id}") for case in MASKED),
]


@pytest.mark.parametrize(("env_id", "keywords", "action", "message"), CASES)
def test_an_invalid_action_is_refused(env_id: str, keywords: dict[str, Any], action: Any, message: str) -> None:
    check_refused(env_id, action, message, **keywords)


def test_as_many_interventions_as_allowed_are_fine() -> None:
    env = reset(gym.make("CBO/Alpine2-Noisy-v0", max_interventions=2).unwrapped)
    env.step([0.5, 0.0, 0.5, 1.0, 0.5, 0.5])
    env.step([0.5] * 6)


def with_row(batch: Any, row: Any) -> Any:
    """A valid batch of three actions with ``row`` in the middle."""
    return [batch[0], row, batch[2]]


VECTOR_SOFT = [
    pytest.param(np.full((3, 5), 0.5), r"shape \(n, 6\); given \(3, 5\)", id="too short"),
    pytest.param(np.full((2, 6), 0.5), "one action for each of 3 environments; given 2", id="too few"),
    pytest.param(np.full(6, 0.5), r"shape \(n, 6\); given \(6,\)", id="no batch"),
    pytest.param(with_row([HALF] * 3, [0.5, 2.0, 0.5, 0.5, 0.5, 0.5]), r"actions\[1\] is outside .*2\.", id="above"),
    pytest.param(with_row([HALF] * 3, [math.nan] * 6), r"actions\[1\] is outside .*nan", id="NaN"),
    pytest.param(None, "must", id="None"),
]

NO_ARM, SEVEN = [0] * 10, [1] * 7 + [0] * 3
VECTOR_MASKED = [
    pytest.param(np.zeros((3, 9)), r"shape \(n, 10\); given \(3, 9\)", id="too short"),
    pytest.param(np.zeros((2, 10)), "one action for each of 3 environments; given 2", id="too few"),
    pytest.param(np.zeros(10), r"shape \(n, 10\); given \(10,\)", id="no batch"),
    pytest.param([NO_ARM, SEVEN, NO_ARM], "super arm 1 is outside SuperArmSpace", id="too many ones"),
    pytest.param([[math.nan] * 10, NO_ARM, NO_ARM], "super arm 0 is outside .*nan", id="NaN"),
]

VECTOR_HARD = [
    pytest.param({"target": [0, 1, 2], "values": np.full((3, 2), 0.5)}, r"\(n, 3\); given .*\(3, 2\)", id="short"),
    pytest.param({"target": [0, 1], "values": np.full((2, 3), 0.5)}, "each of 3 environments; given 2", id="too few"),
    pytest.param({"target": [0, 7, 2], "values": np.full((3, 3), 0.5)}, "action 1 .*target 7", id="target"),
    pytest.param({"target": [0, math.nan, 2], "values": np.full((3, 3), 0.5)}, "whole number.*nan", id="NaN"),
    pytest.param({"target": [0, 1, 2], "values": [[0.5] * 3, [0.5] * 3, [2.0] * 3]}, "action 2 .*2\\.", id="above"),
]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("env_id", "actions", "message"),
    [
        pytest.param(env_id, *case.values, id=f"{env_id}, {case.id}")
        for env_id, cases in (
            ("CBO/Alpine2-Noisy-v0", VECTOR_SOFT),
            ("CBO/CompleteGraph-v0", VECTOR_HARD),
            ("CBO/SSEMPeriodic-v0", VECTOR_MASKED),
        )
        for case in cases
    ],
)
def test_an_invalid_batch_is_refused(env_id: str, actions: Any, message: str) -> None:
    check_vector_refused(env_id, actions, message)

"""Causal bandits with finitely many arms: what they earn, against probabilities that are summed here."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cbo_gym
from cbo_gym.errors import ArgumentError
from cbo_gym.modes import make_dynamics, oracle_for
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems import Arms, Problem
from cbo_gym.problems.modes.discrete import arms_of
from cbo_gym.problems.systems.causal_bandits import (
    confounded_bandit,
    iv_bandit,
    markovian_bandit,
    parallel_bandit,
    xyzw_bandit,
    xyzwst_bandit,
)
from cbo_gym.scm import Discrete, Normal, StructuralCausalModel, Variable
from cbo_gym.scm.scopes import pomis

Bits = dict[str, int]


def sets(*written: str) -> set[frozenset[str]]:
    return {frozenset(word.split()) for word in written}


def expected(problem: Problem) -> np.ndarray:
    """Of every arm."""
    return oracle_for(make_dynamics(problem, "discrete")).expected_rewards(list(range(len(arms_of(problem))))).value


def summed(
    problem: Problem, indices: range, chances: dict[str, float], mechanisms: dict[str, Callable[[Bits], int]]
) -> list[float]:
    """E[Y | arm] of some arms by going through all exogenous bits, with exclusive or as Python has it."""

    def states() -> Iterator[tuple[Bits, float]]:
        for bits in itertools.product((0, 1), repeat=len(chances)):
            weights = [p if bit else 1 - p for bit, p in zip(bits, chances.values(), strict=True)]
            yield dict(zip(chances, bits, strict=True)), float(np.prod(weights))

    totals = []
    for arm in (arms_of(problem)[index] for index in indices):
        total = 0.0
        for bits, weight in states():
            for name, mechanism in mechanisms.items():
                bits[name] = int(arm[name]) if name in arm else mechanism(bits)
            total += weight * bits["Y"]
        totals.append(total)
    return totals


GRAPHS = [
    (
        markovian_bandit(),
        {"uX1": 0.54, "uX2": 0.67, "uY": 0.58, "uZ1": 0.54, "uZ2": 0.44},
        {
            "Z1": lambda v: v["uZ1"],
            "Z2": lambda v: v["uZ2"],
            "X1": lambda v: v["uX1"] ^ v["Z1"] ^ v["Z2"],
            "X2": lambda v: 1 ^ v["uX2"] ^ v["Z1"] ^ v["Z2"],
            "Y": lambda v: v["uY"] | (v["X1"] & v["X2"]),
        },
        sets("X1 X2"),
    ),
    (
        iv_bandit(),
        {"uX": 0.11, "uY": 0.15, "uZ": 0.6, "U": 0.51},
        {
            "Z": lambda v: v["uZ"],
            "X": lambda v: v["uX"] ^ v["U"] ^ v["Z"],
            "Y": lambda v: 1 ^ v["uY"] ^ v["U"] ^ v["X"],
        },
        sets("X", "Z"),
    ),
    (
        xyzw_bandit(),
        {"UWX": 0.51, "UYZ": 0.54, "uX": 0.06, "uY": 0.06, "uZ": 0.05, "uW": 0.07},
        {
            "W": lambda v: v["uW"] ^ v["UWX"],
            "Z": lambda v: v["uZ"] ^ v["UYZ"],
            "X": lambda v: 1 ^ v["uX"] ^ v["Z"] ^ v["UWX"],
            "Y": lambda v: v["uY"] ^ v["UYZ"] ^ v["X"] ^ v["W"],
        },
        sets("", "W", "W X"),
    ),
    (
        xyzwst_bandit(),
        {"UWX": 0.51, "UYZ": 0.54, "uX": 0.06, "uY": 0.06, "uZ": 0.05, "uW": 0.07, "uS": 0.45, "uT": 0.81},
        {
            "S": lambda v: v["uS"],
            "T": lambda v: v["uT"],
            "W": lambda v: v["uW"] ^ v["UWX"] ^ v["S"],
            "Z": lambda v: v["uZ"] ^ v["UYZ"],
            "X": lambda v: 1 ^ v["uX"] ^ v["Z"] ^ v["UWX"] ^ v["T"],
            "Y": lambda v: v["uY"] ^ v["UYZ"] ^ v["X"] ^ v["W"] ^ v["T"],
        },
        sets("S T", "T W", "T W X"),
    ),
]


@pytest.mark.parametrize(("problem", "chances", "mechanisms", "optimal"), GRAPHS, ids=lambda p: getattr(p, "name", ""))
def test_the_graphs_of_lee_and_bareinboim(
    problem: Problem, chances: dict[str, float], mechanisms: dict[str, Callable[[Bits], int]], optimal: set
) -> None:
    found = expected(problem)
    some = range(0, len(arms_of(problem)), 1 + len(arms_of(problem)) // 50)
    np.testing.assert_allclose(found[some], summed(problem, some, chances, mechanisms), atol=1e-12)
    assert len(arms_of(problem)) == 3 ** (len(problem.scm.nodes) - 1)
    assert pomis(problem.scm.diagram, "Y") == optimal
    best = {frozenset(arm) for arm, value in zip(arms_of(problem), found, strict=True) if value > found.max() - 1e-12}
    assert best & optimal


@pytest.mark.parametrize("build", [parallel_bandit, confounded_bandit])
def test_one_arm_of_a_parallel_bandit_is_better_than_one_half(build: Callable[..., Problem]) -> None:
    problem = build(causes=7, rare=2, epsilon=0.2)
    found = expected(problem)
    assert arms_of(problem)[int(found.argmax())] == {"X1": 1.0}
    assert found.max() == pytest.approx(0.7, abs=1e-12)
    others = [value for arm, value in zip(arms_of(problem), found, strict=True) if "X1" not in arm]
    np.testing.assert_allclose(others, 0.5, atol=1e-12)
    assert problem.scm.diagram.parents("Y") == tuple(f"X{i}" for i in range(1, 8))
    assert problem.scm.diagram.parents("X1") == (("Z",) if build is confounded_bandit else ())


def test_causes_are_as_frequent_as_they_should_be() -> None:
    rng = np.random.default_rng(0)
    drawn = parallel_bandit(causes=4, rare=1, q=0.1, epsilon=0.3).scm.sample(40_000, rng)
    assert [drawn[f"X{i}"].mean() for i in range(1, 5)] == pytest.approx([0.1, 0.5, 0.5, 0.5], abs=0.01)
    chosen = drawn["X1"] == 1.0
    assert [drawn["Y"][chosen].mean(), drawn["Y"].mean()] == pytest.approx([0.8, 0.5], abs=0.03)
    drawn = confounded_bandit(causes=4).scm.sample(40_000, rng)
    assert [drawn["X3"][drawn["Z"] == z].mean() for z in (0.0, 1.0)] == pytest.approx([0.4, 0.65], abs=0.02)


def system(noise: Discrete | Normal) -> StructuralCausalModel:
    variables = [
        Variable("X", lambda u: u, noise=Discrete([0.0, 1.0], [0.25, 0.75])),
        Variable("W", lambda x, u: x + u, ("X",), noise=Normal()),  # no cause of Y
        Variable("Y", lambda x, u: x * u, ("X",), noise=noise),
    ]
    return StructuralCausalModel(variables, "Y")


def test_expectations_over_finite_noise_are_exact_and_others_are_not() -> None:
    arms = [{}, {"X": 0.0}, {"X": 0.5, "W": 3.0}]
    for noise, is_exact in ((Discrete([0.0, 0.5, 1.0], [0.5, 0.2, 0.3]), True), (Normal(0.4, 0.01), False)):
        oracle = Oracle(make_dynamics(Problem("P", system(noise), "", "", modes=[Arms(arms)]), "discrete"))
        found = oracle.expected_rewards([2, 0, 1, 0], tolerance=1.0)
        assert (found.standard_error.max() == 0.0) == is_exact
        assert found.value == pytest.approx([0.2, 0.3, 0.0, 0.3], abs=1e-12 if is_exact else 0.01)
        assert oracle.expected_rewards([0, 0], tolerance=1.0).value.tolist() == found.value[[1, 1]].tolist()
        if is_exact:
            best = oracle.optimum
            assert (best.action, best.value, best.random_value) == (0, pytest.approx(0.3), pytest.approx(0.5 / 3))
            assert best.standard_error == best.random_standard_error == 0.0


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([{"Q": 0.0}], r"'Q' cannot be set; choose from \['W', 'X'\]"),
        ([{"Y": 0.0}], "'Y' cannot be set"),
        ([{}, {"X": np.inf}], "arm 1 must set variables to finite numbers"),
        ([{"X": 1.0}, {"X": 1}], "the arms must be different interventions"),
        ([{"X": float(i)} for i in range(2**14 + 1)], "at most 16384 arms"),
    ],
)
def test_bad_arms_are_named(arms: list[dict[str, float]], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Problem("P", system(Normal()), "", "", modes=[Arms(arms)])


def test_a_custom_system_has_arms_in_python_and_in_yaml(tmp_path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "name: Own\nreward: Y\nvariables:\n"
        "  X: {equation: u, noise: {Discrete: [[0, 1], [0.7, 0.3]]}}\n"
        "  Y: {equation: (X + u) / 2, noise: {Discrete: [[0, 1], [0.5, 0.5]]}}\n"
        "arms: [{}, {X: 0}, {X: 1}]\n"
    )
    run = cbo_gym.evaluate("UCB", f"CBO/Custom-Discrete-v0(problem={str(path)!r})", 0, horizon=40)
    assert run.optimum == pytest.approx(0.75)
    assert run.choices == ("{}", "{X}")
    assert run.table["simple_regret"][-1] == pytest.approx(0.0, abs=1e-12)
    mechanisms = {"X": lambda u: u, "Y": lambda X: X}  # noqa: N803
    noise = {"X": Discrete([0.0, 1.0], [0.5, 0.5])}
    own = cbo_gym.custom_problem(mechanisms, reward="Y", noise=noise, arms=[{}, {"X": 1.0}])
    assert expected(own).tolist() == [0.5, 1.0]
    with pytest.raises(ArgumentError, match="Custom lists no arms that set variables, so it has no discrete mode"):
        make_dynamics(cbo_gym.custom_problem(mechanisms, reward="Y", noise=noise), "discrete")
    with pytest.raises(ArgumentError, match="arms must be a list of mappings"):
        cbo_gym.custom_problem(mechanisms, reward="Y", noise=noise, arms={"X": 1.0})
    one = make_dynamics(cbo_gym.custom_problem(mechanisms, reward="Y", noise=noise, arms=[{"X": 1.0}]), "discrete")
    with pytest.raises(ArgumentError, match="has no arm that only observes; give observational=0"):
        one.initial_actions(np.random.default_rng(0), 1, 0)

"""The contextual problems: their equations, the noise given the contexts, and what their papers derive."""

import numpy as np
import pytest

from cbo_gym.problems import Contexts, Problem
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.problems.systems.contextual import (
    BYSTANDERS,
    BYSTANDING_CONTEXTS,
    coca_aligned,
    coca_fig1,
    coca_large,
    contextual_network,
    make_scope,
    psa_contextual_1,
    psa_contextual_2,
    truncated_normal,
)
from cbo_gym.scm import Intervention, Normal, StructuralCausalModel, Uniform

NETWORKS = "cbo_gym.problems.systems.function_networks:"
PROBLEMS = [
    psa_contextual_1(),
    psa_contextual_2(),
    coca_fig1(),
    coca_aligned(),
    coca_large(),
    contextual_network(f"{NETWORKS}dropwave", noise_std=0.1),
    contextual_network(f"{NETWORKS}alpine2", contexts=(1, 4), noise_std=1.0),
    contextual_network(f"{NETWORKS}rosenbrock"),
    contextual_network(f"{NETWORKS}ackley"),
]
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)


def noise_given(problem: Problem, contexts: dict, uniforms: np.ndarray) -> tuple:
    numbers = {v.name: row for v, row in zip(problem.scm.noisy, uniforms, strict=True)}
    exogenous = problem.data(Contexts).noise_given(contexts, numbers)
    return tuple(
        exogenous[v.name] if v.name in exogenous else v.noise.from_uniform(numbers[v.name]) for v in problem.scm.noisy
    )


def joint_draws(problem: Problem, count: int, seed: int) -> tuple[dict, tuple, tuple]:
    """Natural contexts, the noise that they came from, and noise drawn anew given them."""
    rng = np.random.default_rng(seed)
    noise = problem.scm.draw_noise(rng, count)
    values = problem.scm.propagate(noise)
    contexts = {name: values[name] for name in problem.data(Contexts).names}
    return contexts, noise, noise_given(problem, contexts, rng.random((len(noise), count)))


@every_problem
def test_noise_given_the_contexts_gives_these_contexts(problem: Problem) -> None:
    contexts, _, redrawn = joint_draws(problem, 2000, seed=0)
    natural = problem.scm.propagate(redrawn)
    for name, seen in contexts.items():
        np.testing.assert_allclose(natural[name], seen, rtol=1e-9, atol=1e-9)


@every_problem
def test_contexts_and_noise_given_them_have_the_joint_distribution_of_contexts_and_noise(problem: Problem) -> None:
    """First and second moments of (contexts, noise), which a wrong conditional distribution would change."""
    count = 10_000
    contexts, noise, redrawn = joint_draws(problem, count, seed=1)
    _, other, _ = joint_draws(problem, count, seed=2)  # independent, so that both samples have their own error
    seen = np.stack(list(contexts.values()))

    def moments(draws: tuple) -> np.ndarray:
        scaled = (np.stack(np.broadcast_arrays(*draws)) - rows_mean[:, None]) / rows_std[:, None]
        return np.concatenate([scaled, scaled**2, np.abs(scaled) ** 3])

    rows = np.stack(other)
    rows_mean, rows_std = rows.mean(axis=1), rows.std(axis=1)
    ours, theirs = moments(redrawn), moments(noise)
    spread = np.sqrt((ours.var(axis=1) + theirs.var(axis=1)) / count) + 1e-12
    assert (np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) < 5.5 * spread).all()
    centred = (seen - seen.mean(axis=1, keepdims=True)) / seen.std(axis=1, keepdims=True)
    for context in centred[:8]:
        difference = (ours - theirs) * context
        error = difference.std(axis=1) / np.sqrt(count) + 1e-12
        assert (np.abs(difference.mean(axis=1)) < 5.5 * error).all()


@pytest.mark.parametrize("mean", [-2.5, 0.0, 0.95])
def test_truncated_normal_by_its_distribution_function(mean: float) -> None:
    from scipy.stats import kstest, truncnorm

    draws = truncated_normal(np.full(4000, mean), 0.1, 1.0, (np.arange(4000) + 0.5) / 4000)
    assert (np.abs(draws) <= 1.0).all()
    exact = truncnorm((-1.0 - mean) / 0.1, (1.0 - mean) / 0.1, mean, 0.1)
    assert kstest(draws, exact.cdf).statistic < 0.01


def test_psa_contextual_2_by_hand() -> None:
    """Eq. 33: the reward is the negated squared distance of both doses from AgeBMI."""
    problem = psa_contextual_2()
    noise = problem.scm.draw_noise(np.random.default_rng(0), 100)
    values = problem.scm.propagate(noise, Intervention.do({"Aspirin": 0.3, "Statin": 0.8}))
    risk = (values["Age"] - 55) / 21 * np.abs((values["BMI"] - 27) / 4)
    expected = -((0.3 - risk) ** 2 + (0.8 - risk) ** 2 + noise[-1])
    np.testing.assert_allclose(values["Y"], expected, atol=1e-12)


def test_noise_y_is_that_of_the_reward() -> None:
    assert {v.name: v.noise.std for v in coca_aligned(noise_y=6.25).scm.noisy}["Y"] == 6.25


def test_coca_large_by_hand() -> None:
    problem = coca_large()
    scm = problem.scm
    assert len(problem.data(Contexts).names) == 57
    assert len(problem.manipulable) == 29
    assert len(scm.nodes) == 87
    noise = dict(zip([v.name for v in scm.noisy], scm.draw_noise(np.random.default_rng(3), 50), strict=True))
    values = scm.propagate(tuple(noise.values()))
    chain = noise["C0"] - noise["U1"] + noise["C1"]
    np.testing.assert_allclose(values["C1"], chain)
    for name in ("C2", "C3", "C4"):
        chain = chain + noise[name]
        np.testing.assert_allclose(values[name], chain)
    upper = 1.0 + 0.1 * np.mean([noise[name] for name in BYSTANDING_CONTEXTS], axis=0)
    bystanders = [-1.0 + (upper + 1.0) * noise[name] for name in BYSTANDERS]
    c6 = chain + 0.01 * np.mean(bystanders, axis=0) + noise["C5"] + noise["C6"]
    np.testing.assert_allclose(values["C6"], c6)
    x2 = 0.5 * (values["C1"] + c6) + noise["U1"] + noise["X1"] + 0.3 * np.abs(noise["U2"]) + noise["X2"]
    np.testing.assert_allclose(values["Y"], np.cos(values["C1"] - x2) + 0.1 * noise["U2"] + noise["Y"])


def test_a_network_with_contexts_is_the_network() -> None:
    from cbo_gym.problems.systems.function_networks import rosenbrock

    soft, contextual = rosenbrock(), contextual_network(f"{NETWORKS}rosenbrock", contexts=(2,))
    assert contextual.data(Contexts).names == ("A2",)
    assert list(contextual.manipulable) == ["A0", "A1", "A3", "A4"]
    assert [v.noise for v in contextual.scm.noisy] == [Uniform(-2.0, 2.0)] * 5
    native = np.random.default_rng(0).uniform(-2, 2, (20, 5))
    expected = soft.scm.propagate((), Intervention.parameters(native))
    noise = tuple(native.T)  # of A0 to A4: the coordinates themselves
    values = contextual.scm.propagate(noise)
    for name in soft.scm.nodes:
        np.testing.assert_array_equal(values[name], expected[name])


# Bad input ---------------------------------------------------------------------------------------------------


def chain_problem(scopes, contexts=("C",), manipulable=("X", "Z")) -> Problem:
    equations = {"C": "u", "X": "C + u", "M": "X + u", "Z": "M + u", "Y": "Z + u"}
    return Problem(
        name="Chain",
        scm=StructuralCausalModel(read_equations(equations, Normal()), reward="Y"),
        description="",
        citation="",
        manipulable=dict.fromkeys(manipulable, (-1.0, 1.0)),
        modes=[Contexts(contexts, [make_scope(scope) for scope in scopes], lambda contexts, uniforms: {})],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scopes": [{"X": ["M"]}], "contexts": ("C", "M")}, r"X.*M.*cycle"),
        ({"scopes": [{"Z": ["M"], "X": ["Q"]}]}, r"\['Q'\] cannot be contexts of X; choose from \['C'\]"),
        ({"scopes": [{"Q": ["C"]}]}, r"a scope cannot set 'Q'; choose from \['X', 'Z'\]"),
        (
            {"scopes": [{"X": ["C"]}], "manipulable": ("X", "Y")},
            r"'Y' cannot be set; choose from \['C', 'M', 'X', 'Z'\]",
        ),
        ({"scopes": [{}], "contexts": ("X",)}, r"\['X'\] cannot be contexts; choose from \['C', 'M'\]"),
        ({"scopes": []}, "at least one scope"),
    ],
)
def test_scopes_that_do_not_fit(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){message}"):
        chain_problem(**arguments)


def test_coca_large_offers_other_scopes_on_request() -> None:
    problem = coca_large(scopes=[{"X2": ["C1", "C2"]}])
    assert problem.data(Contexts).scopes == [frozenset({("X2", frozenset({"C1", "C2"}))})]

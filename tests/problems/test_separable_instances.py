"""The random separable SEMs: their constants, and the acceptance test by a simulation of its own."""

import numpy as np
import pytest

from cbo_gym.problems import SuperArms
from cbo_gym.problems.systems.ssem import ssem_arcsine, ssem_periodic, ssem_tanh
from cbo_gym.scm import Arcsine, Intervention, Linear, Periodic, Polynomial, Tanh, TruncatedNormal

SEEDS = range(3)
BUILDERS = {
    "SSEMPeriodic": (ssem_periodic, 10, 0.2, (0.4, 0.7), {Linear, Periodic}),
    "SSEMTanh": (ssem_tanh, 10, 0.2, (0.4, 0.7), {Linear, Polynomial, Tanh}),
    "SSEMArcsine": (ssem_arcsine, 15, 0.15, (0.05, 0.15), {Linear, Polynomial, Tanh}),
}
each = pytest.mark.parametrize("name", BUILDERS)


def given(problem):
    return problem.scm.arguments


def coefficient_of(component):
    match component:
        case Linear(slope):
            return slope
        case Periodic(amplitude, frequency):
            assert frequency == 1.0
            return amplitude
        case Polynomial((first, second)):
            assert first == 0.0
            return second
        case Tanh(amplitude, scale, shift):
            assert (scale, shift) == (1.0, 0.0)
            return amplitude
    raise AssertionError(component)


@each
def test_constants_of_the_instances(name):
    build, arms, density, (low, high), kinds = BUILDERS[name]
    edges, coefficients, seen = [], [], set()
    for seed in SEEDS:
        problem = build(instance_seed=seed)
        assert problem.name == name
        assert problem.data(SuperArms).size == 6
        assert problem.scm.action_dim == arms
        assert problem.scm.diagram.is_acyclic
        components = given(problem)["components"]
        assert all(i > j for i, j in components)
        edges.append(len(components))
        coefficients += [coefficient_of(c) for c in components.values()]
        seen |= {type(c) for c in components.values()}
        for signal in problem.scm.signals:
            lowest, highest = problem.data(SuperArms).signal_range
            low_signal, high_signal = signal.from_uniform(np.array([1e-9, 1 - 1e-9]))
            assert lowest <= low_signal < high_signal <= highest
            if name == "SSEMArcsine":
                assert isinstance(signal, Arcsine)
                assert 1.0 <= signal.mean <= 1.5
                assert 0.2 <= signal.std <= 0.6
            else:
                assert isinstance(signal, TruncatedNormal)
                assert 0.3 <= signal.location <= 0.7
                assert 0.1 <= signal.scale <= 0.4
    assert seen == kinds
    assert low <= min(coefficients) < max(coefficients) <= high
    assert np.mean(coefficients) == pytest.approx((low + high) / 2, abs=0.25 * (high - low))
    expected = density * arms * (arms - 1) / 2  # acceptance prefers denser graphs
    assert expected - 2 < np.mean(edges) < 2 * expected


def test_errors_of_observation():
    problem = ssem_periodic()
    rng = np.random.default_rng(0)
    arms = (rng.random((10, 4000)).argsort(axis=0) < 6).astype(float)
    draws = problem.scm.draw_noise(rng, 4000)
    rewards = problem.scm.propagate(draws, Intervention(tuple(arms)))["Y"]
    stds = {v.name: v.noise.std for v in problem.scm.noisy if v.name.startswith("error")}
    assert {stds[f"error of z{i}"] for i in range(1, 11)} == {0.02}
    (of_nodes,) = {stds[f"error of y{i}"] for i in range(1, 11)}
    assert of_nodes == pytest.approx(0.02 * rewards.mean(), rel=0.03)

"""SeparableSEM against a re-implementation that knows nothing of it: scalar loops and SciPy's root finder."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import root

from cbo_gym.errors import ArgumentError
from cbo_gym.scm import (
    Intervention,
    Linear,
    Normal,
    Periodic,
    Polynomial,
    SeparableSEM,
    Sum,
    Tanh,
    Total,
    Uniform,
)

UNITS = [Uniform()] * 4
ACYCLIC = {(1, 0): Linear(0.5), (3, 1): Periodic(0.6), (2, 3): Tanh(0.7, 2.0), (2, 0): Polynomial((0.1, 0.4))}
CYCLIC = {
    (0, 1): Tanh(0.3, 2.0, -0.5),
    (1, 0): Sum((Linear(0.2), Periodic(0.05))),
    (2, 1): Linear(-0.4),
    (0, 2): Linear(0.3),
    (3, 2): Polynomial((0.2, 0.0, 0.01)),
    (2, 3): Tanh(-0.2),
}


def equations(y, driving, components):
    """F(y) + driving, written out for one sample."""
    result = list(driving)
    for (i, j), component in components.items():
        result[i] += float(component(float(y[j])))
    return np.array(result)


def solved(driving, components):
    found = root(lambda y: y - equations(y, driving, components), np.zeros(len(driving)), tol=1e-13)
    assert found.success
    return found.x


def nodes_of(values):
    return np.array([values[f"y{i}"] for i in range(1, 5)])


@pytest.mark.parametrize("components", [ACYCLIC, CYCLIC], ids=["acyclic", "cyclic"])
@pytest.mark.parametrize("super_arm", [(1, 1, 1, 1), (1, 0, 0, 1), (0, 0, 0, 0)])
def test_nodes_solve_the_equations(components, super_arm):
    sem = pickle.loads(pickle.dumps(SeparableSEM(UNITS, components)))
    signals = sem.draw_noise(np.random.default_rng(0), 30)
    values = sem.propagate(signals, Intervention([float(x) for x in super_arm]))
    for sample in range(30):
        z = np.array(super_arm) * np.array([column[sample] for column in signals])
        expected = solved(z, components)
        np.testing.assert_allclose(nodes_of(values)[:, sample], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose([values[f"z{i}"][sample] for i in range(1, 5)], z)
        assert values["Y"][sample] == pytest.approx(expected.sum(), rel=1e-9)
        one = sem.propagate(tuple(float(c[sample]) for c in signals), Intervention([float(x) for x in super_arm]))
        np.testing.assert_allclose(nodes_of(one), nodes_of(values)[:, sample], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("components", [ACYCLIC, CYCLIC], ids=["acyclic", "cyclic"])
def test_batches_of_super_arms_broadcast_against_draws(components):
    sem = SeparableSEM(UNITS, components)
    signals = sem.draw_noise(np.random.default_rng(1), 5000)  # more than a block of the solver
    arms = np.array([[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 1]], dtype=float)
    together = sem.propagate(signals, Intervention(tuple(arms.T[:, :, None])))
    assert together["Y"].shape == (3, 5000)
    for row, arm in zip(together["Y"], arms, strict=True):
        alone = sem.propagate(signals, Intervention(tuple(arm)))["Y"]
        np.testing.assert_allclose(row, alone, rtol=1e-10, atol=1e-11)  # cycles settle to 1e-12


def test_arms_keep_their_order_whatever_the_edges():
    sem = SeparableSEM(UNITS, ACYCLIC)
    assert sem.nodes == ("y1", "y2", "y3", "y4", "Y")
    assert sem.diagram.parents("y3") == ("y1", "y4")
    assert sem.diagram.is_acyclic
    assert not sem.diagram.allow_cycles
    assert SeparableSEM(UNITS, CYCLIC).diagram.allow_cycles
    named = SeparableSEM(UNITS, ACYCLIC, names="ABCD")
    assert named.nodes == ("A", "B", "C", "D", "Y")
    assert named.exogenous == ("z(A)", "z(B)", "z(C)", "z(D)")
    assert sem.action_nodes == {"y1": (0,), "y2": (1,), "y3": (2,), "y4": (3,)}


@pytest.mark.parametrize("components", [ACYCLIC, CYCLIC], ids=["acyclic", "cyclic"])
def test_activations_and_model_noise_enter_the_equations(components):
    activations = [Polynomial((1.0, 0.5)), Tanh(2.0), Linear(0.5), Linear(1.0)]
    sem = SeparableSEM(UNITS, components, activations=activations, model_noise=Normal(0.0, 0.1))
    draws = sem.draw_noise(np.random.default_rng(2), 10)
    signals, noise = draws[:4], draws[4:]
    values = sem.propagate(draws, Intervention((1.0, 0.0, 1.0, 1.0)))
    for sample in range(10):
        z = [signals[0][sample], 0.0, signals[2][sample], signals[3][sample]]
        g = [z[0] + 0.5 * z[0] ** 2, 2 * math.tanh(z[1]), 0.5 * z[2], z[3]]
        expected = solved(np.array(g) + [column[sample] for column in noise], components)
        np.testing.assert_allclose(nodes_of(values)[:, sample], expected, rtol=1e-9, atol=1e-9)


def test_the_payoff_is_a_function_of_the_nodes():
    payoff = Total(("y2", "y4"), Polynomial((0.0, 1.0)))
    sem = SeparableSEM(UNITS, ACYCLIC, payoff=payoff)
    values = sem.sample(20, np.random.default_rng(3), Intervention((1.0,) * 4))
    np.testing.assert_allclose(values["Y"], values["y2"] ** 2 + values["y4"] ** 2)


def test_a_mask_on_the_nodes():
    sem = SeparableSEM(UNITS, CYCLIC, mask="endogenous")
    full = SeparableSEM(UNITS, CYCLIC)
    draws = sem.draw_noise(np.random.default_rng(4), 20)
    ours = sem.propagate(draws, Intervention((1.0, 0.0, 0.0, 1.0)))
    theirs = full.propagate(draws, Intervention((1.0,) * 4))
    for name in (*sem.exogenous, "y1", "y2", "y3", "y4"):
        np.testing.assert_allclose(ours[name], theirs[name])
    np.testing.assert_allclose(ours["Y"], theirs["y1"] + theirs["y4"])
    assert sem.action_nodes == {"Y": (0, 1, 2, 3)}


def test_feedback_of_selected_nodes_alone_leaves_the_reward_as_it_is():
    draws = SeparableSEM(UNITS, ACYCLIC).draw_noise(np.random.default_rng(5), 20)
    super_arm = Intervention((1.0, 0.0, 0.0, 1.0))
    ours = SeparableSEM(UNITS, ACYCLIC, feedback="selected").propagate(draws, super_arm)
    theirs = SeparableSEM(UNITS, ACYCLIC).propagate(draws, super_arm)
    assert not ours["y2"].any()
    assert theirs["y2"].any()
    np.testing.assert_allclose(ours["y4"], theirs["y4"])
    np.testing.assert_allclose(ours["Y"], theirs["Y"])


def test_errors_of_observation_do_not_reach_the_system():
    noisy = SeparableSEM(UNITS, ACYCLIC, signal_noise=Normal(0.0, 0.1), node_noise=Normal(0.0, 0.2))
    clean = SeparableSEM(UNITS, ACYCLIC)
    draws = noisy.draw_noise(np.random.default_rng(6), 50_000)
    super_arm = Intervention((1.0, 1.0, 0.0, 1.0))
    seen, true = noisy.propagate(draws, super_arm), clean.propagate(draws[:4], super_arm)
    for name, std in [("z1", 0.1), ("z3", 0.0), ("y1", 0.2), ("y3", 0.2)]:
        error = np.broadcast_to(seen[name] - true[name], 50_000)
        assert error.std() == pytest.approx(std, rel=0.02, abs=1e-12)
        assert abs(error.mean()) <= 5 * std / np.sqrt(50_000)
    np.testing.assert_allclose(seen["Y"], nodes_of(seen).sum(axis=0))
    independent = np.corrcoef([seen[name] - true[name] for name in ("z1", "y1", "y2")])
    assert np.abs(independent - np.eye(3)).max() < 0.03


def ring(first, second):
    return SeparableSEM([Uniform()] * 2, {(0, 1): first, (1, 0): second})


@pytest.mark.parametrize(("slope", "rate"), [(0.3, 0.3), (-0.6, 0.6), (0.99, 0.99)])
def test_the_contraction_rate_of_a_linear_ring(slope, rate):
    sem = ring(Linear(slope), Linear(rate))
    assert sem.contraction == pytest.approx(rate)
    b = np.array([0.4, 0.9])
    values = sem.propagate(tuple(b), Intervention((1.0, 1.0)))
    expected = np.linalg.solve(np.array([[1.0, -slope], [-rate, 1.0]]), b)
    assert [values["y1"], values["y2"]] == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize(
    "pair",
    [
        (Linear(1.0), Linear(1.0)),
        (Periodic(0.4), Periodic(0.4)),
        (Polynomial((0.1, 0.0, 2.0)), Polynomial((0.1, 0.0, 2.0))),
        (Polynomial((0.0, 40.0)), Polynomial((0.0, 40.0))),
    ],
)
def test_a_cyclic_system_that_is_no_contraction_is_refused(pair):
    with pytest.raises(ValueError, match=r"make the components .*flatter"):
        ring(*pair)


def test_slopes_count_where_the_system_can_be_only():
    """A cubic is steep far out; with small signals the system never gets there."""
    cubic = Polynomial((0.0, 0.0, 0.5))
    with pytest.raises(ValueError, match="flatter"):
        SeparableSEM([Uniform(0.0, 2.0)] * 2, {(0, 1): cubic, (1, 0): cubic})
    sem = SeparableSEM([Uniform(0.0, 0.5)] * 2, {(0, 1): cubic, (1, 0): cubic})
    assert sem.contraction < 0.8


def test_solutions_outside_the_proven_box_are_refused():
    sem = ring(Linear(0.5), Tanh(0.5))
    with pytest.raises(RuntimeError, match="outside the ranges of their distributions"):
        sem.propagate((5.0, 0.5), Intervention((1.0, 1.0)))


def test_steep_edges_off_the_cycles_are_fine():
    components = {(0, 1): Linear(0.5), (1, 0): Linear(0.5), (2, 0): Linear(50.0), (3, 2): Periodic(10.0)}
    assert SeparableSEM(UNITS, components).contraction == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signals": []}, "at least one signal"),
        ({"components": {(1, 1): Linear()}}, r"two different nodes from 0 to 3; given \(1, 1\)"),
        ({"components": {(0, -1): Linear()}}, r"given \(0, -1\)"),
        ({"names": "ABC"}, "one name for each of 4 nodes; given 3"),
        ({"activations": [Linear()]}, "one activation for each of 4 nodes; given 1"),
        ({"mask": "both"}, "mask must be one of .*; given 'both'"),
        ({"feedback": "none"}, "feedback must be one of .*; given 'none'"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        SeparableSEM(**{"signals": UNITS, "components": ACYCLIC, **arguments})


@pytest.mark.parametrize("components", [ACYCLIC, CYCLIC], ids=["acyclic", "cyclic"])
def test_nodes_that_are_set_have_no_equation(components):
    """Set far outside of what they would be, one for all samples and one in each, against the equations written out."""
    sem = SeparableSEM(UNITS, components, model_noise=Normal(0.0, 0.1))
    noise, natural = sem.draw_noise(np.random.default_rng(0), 20), sem.propagate
    each = np.linspace(-3.0, 4.0, 20)
    before = nodes_of(natural(noise, Intervention((1.0,) * 4)))
    values = natural(noise, Intervention((1.0,) * 4, {"y2": (True, 7.0), "y3": (True, each)}))
    found = sem.stack(values)
    rest = {(i, j): component for (i, j), component in components.items() if i not in (1, 2)}
    for k in range(20):
        driving = [noise[0][k] + noise[4][k], 7.0, each[k], noise[3][k] + noise[7][k]]
        expected = solved(driving, rest)
        np.testing.assert_allclose(found[k], [*expected, expected.sum()], atol=1e-9)
        one = sem.propagate(tuple(c[k] for c in noise), Intervention((1.0,) * 4, {"y2": (True, 7.0)}))
        assert one["y2"] == 7.0
    np.testing.assert_array_equal(nodes_of(natural(noise, Intervention((1.0,) * 4))), before)


def test_a_node_is_set_in_the_whole_batch_or_not_at_all():
    sem = SeparableSEM(UNITS, ACYCLIC)
    with pytest.raises(ArgumentError, match=r"in the whole batch or not at all; given a mask of \['y2'\]"):
        sem.propagate((0.5,) * 4, Intervention((1.0,) * 4, {"y2": (np.array([True, False]), 0.0)}))


def test_a_cycle_that_is_set_out_of_its_proof_is_refused():
    """The slope of y + y^3 / 10 is below 1 / 0.6 between -1 and 1 alone."""
    steep = {(1, 0): Polynomial((0.3, 0.0, 0.1)), (2, 1): Linear(0.6), (1, 2): Polynomial((0.2, 0.0, 0.1))}
    sem = SeparableSEM([Uniform(-0.1, 0.1)] * 3, steep)
    with pytest.raises(ArgumentError, match=r"not proven to be a contraction|is not a contraction"):
        sem.propagate((0.0,) * 3, Intervention((1.0,) * 3, {"y1": (True, 50.0)}))

"""StructuralCausalModel against a scalar interpreter of the same equations in plain Python."""

import math
import pickle

import numpy as np
import pytest

from cbo_gym import scm as package
from cbo_gym.problems.systems.erdos_renyi import Additive
from cbo_gym.scm import (
    Arcsine,
    GaussianMixture,
    Intervention,
    Linear,
    Normal,
    StructuralCausalModel,
    Tanh,
    Uniform,
    Variable,
)
from cbo_gym.scm.formula import Formula

# Mechanisms live at the module's top level, where pickle finds them.


def own_noise(u):
    return u


def sine_of_hidden(hidden, a, u):
    return np.sin(hidden) * a + u


def product(hidden, x, a, b, u):
    return hidden * x + a * np.exp(-b) + 0.5 * u


def total(*args):
    return sum(args)


def halved(x, u):
    return 0.5 * x + u


def small_model() -> StructuralCausalModel:
    """Hidden H confounds X and Z; two actions, one of them shared. Variables are given effects first."""
    variables = [
        Variable("Y", total, ("X", "Z"), (), Normal(0.0, 0.3)),
        Variable("Z", product, ("H", "X"), (0, 1), Uniform(-1.0, 1.0)),
        Variable("X", sine_of_hidden, ("H",), (1,), GaussianMixture([0.4, 0.6], [-1.0, 1.0], [0.2, 0.3])),
        Variable("H", own_noise, noise=Arcsine(0.2, 1.0), observed=False),
    ]
    return StructuralCausalModel(variables, reward="Y")


def scalar_small_model(noise: dict[str, float], actions: list[float], do: dict[str, float]) -> dict[str, float]:
    """The equations of :func:`small_model` once more, with math instead of NumPy and one draw at a time."""
    a, b = actions
    h = noise["H"]
    x = do.get("X", math.sin(h) * b + noise["X"])
    z = do.get("Z", h * x + a * math.exp(-b) + 0.5 * noise["Z"])
    return {"H": h, "X": x, "Z": z, "Y": x + z + noise["Y"]}


def noise_of(scm: StructuralCausalModel, seed: int, n: int) -> list[dict[str, float]]:
    """The exogenous draws that ``sample`` uses for ``seed``, one dictionary a draw."""
    rng = np.random.default_rng(seed)
    columns = {v.name: v.noise.sample(rng, n) for v in scm.noisy}
    return [{name: float(column[i]) for name, column in columns.items()} for i in range(n)]


def assert_equals_scalar(samples, noise, actions, interventions) -> None:
    for i, draw in enumerate(noise):
        expected = scalar_small_model(draw, actions[i], interventions[i])
        for name, value in expected.items():
            assert samples[name][i] == pytest.approx(value, rel=1e-12, abs=1e-12), (name, i)


N = 200
ACTIONS = np.random.default_rng(5).uniform(-1.0, 2.0, (N, 2))
VALUES = np.random.default_rng(6).uniform(-3.0, 3.0, N)
MASK = np.random.default_rng(7).random(N) < 0.5


def test_order_nodes_and_diagram() -> None:
    scm = small_model()
    assert [v.name for v in scm.variables] == ["H", "X", "Z", "Y"]
    assert scm.nodes == ("X", "Z", "Y")
    assert [v.name for v in scm.noisy] == ["H", "X", "Z", "Y"]
    assert scm.action_dim == 2
    assert scm.diagram.bidirected == {frozenset("XZ")}
    assert scm.diagram.nodes == scm.nodes
    assert list(scm.sample(3, np.random.default_rng(0), Intervention([0.0, 0.0]))) == ["H", "X", "Z", "Y"]


def test_the_reward_comes_last_even_where_another_sink_could() -> None:
    variables = [Variable("Y", own_noise), Variable("A", own_noise), Variable("B", total, ("A",))]
    assert StructuralCausalModel(variables, "Y").nodes == ("A", "B", "Y")


@pytest.mark.parametrize("actions", [np.array([0.7, -0.4]), ACTIONS], ids=["one", "batch"])
def test_soft_interventions_equal_the_scalar_equations(actions) -> None:
    scm = small_model()
    samples = scm.sample(N, np.random.default_rng(1), Intervention.parameters(actions))
    assert_equals_scalar(samples, noise_of(scm, 1, N), np.broadcast_to(actions, (N, 2)).tolist(), [{}] * N)


@pytest.mark.parametrize(
    ("hard", "interventions"),
    [
        ({"X": (True, 1.5)}, [{"X": 1.5}] * N),
        ({"X": (True, VALUES)}, [{"X": v} for v in VALUES]),
        ({"X": (MASK, VALUES)}, [{"X": v} if m else {} for m, v in zip(MASK, VALUES, strict=True)]),
        (
            {"X": (MASK, VALUES), "Z": (~MASK, 2.0 * VALUES)},
            [{"X": v} if m else {"Z": 2.0 * v} for m, v in zip(MASK, VALUES, strict=True)],
        ),
    ],
    ids=["scalar", "batched", "masked", "mixture"],
)
def test_hard_interventions_equal_the_scalar_equations(hard, interventions) -> None:
    scm = small_model()
    intervention = Intervention([*ACTIONS.T], hard)
    samples = scm.sample(N, np.random.default_rng(3), intervention)
    assert_equals_scalar(samples, noise_of(scm, 3, N), ACTIONS.tolist(), interventions)


def test_scalars_in_give_scalars_out_and_agree_with_the_batch() -> None:
    scm = small_model()
    noise = noise_of(scm, 4, 5)
    batch = scm.sample(5, np.random.default_rng(4), Intervention([0.3, 0.1], {"X": (True, 0.25)}))
    for i, draw in enumerate(noise):
        one = scm.propagate(tuple(draw.values()), Intervention([0.3, 0.1], {"X": (True, 0.25)}))
        assert all(np.ndim(value) == 0 for value in one.values())
        assert {name: float(value) for name, value in one.items()} == {k: v[i] for k, v in batch.items()}


def test_expanded_batches_meet_every_noise_draw() -> None:
    scm = small_model()
    noise = scm.draw_noise(np.random.default_rng(0), 50)
    mask = np.array([True, False, True])
    batch = Intervention([*ACTIONS[:3].T], {"X": (mask, VALUES[:3])})
    together = scm.propagate(noise, batch.expand())["Y"]
    assert together.shape == (3, 50)
    for i in range(3):
        hard = {"X": (True, VALUES[i])} if mask[i] else {}
        alone = scm.propagate(noise, Intervention(list(ACTIONS[i]), hard))["Y"]
        np.testing.assert_allclose(together[i], alone, rtol=1e-13)


def test_noise_from_uniform_takes_one_row_a_noisy_variable() -> None:
    scm = small_model()
    uniforms = np.random.default_rng(0).random((4, 6))
    noise = scm.noise_from_uniform(uniforms)
    for column, variable, row in zip(noise, scm.noisy, uniforms, strict=True):
        np.testing.assert_array_equal(column, variable.noise.from_uniform(row))
    with pytest.raises(ValueError, match="zip"):
        scm.noise_from_uniform(uniforms[:3])


def test_a_model_without_noise_and_parents_still_fills_the_batch() -> None:
    scm = StructuralCausalModel([Variable("Y", total, (), (0,))], "Y")
    samples = scm.sample(4, np.random.default_rng(0), Intervention([2.5]))
    np.testing.assert_array_equal(samples["Y"], np.full(4, 2.5))
    assert scm.noisy == ()


def test_pickling_keeps_every_draw() -> None:
    scm = small_model()
    again = pickle.loads(pickle.dumps(scm))
    assert (again.nodes, again.diagram) == (scm.nodes, scm.diagram)
    ours, theirs = (one.sample(9, np.random.default_rng(8), Intervention([1.0, 0.5])) for one in (scm, again))
    assert str(ours) == str(theirs)


def test_names_are_never_read_as_code() -> None:
    variables = [Variable('it\'s "x"\n', own_noise, noise=Normal()), Variable("import os", halved, ('it\'s "x"\n',))]
    samples = StructuralCausalModel(variables, "import os").sample(3, np.random.default_rng(0))
    np.testing.assert_array_equal(samples["import os"], 0.5 * samples['it\'s "x"\n'])


@pytest.mark.parametrize(
    ("variables", "reward", "message"),
    [
        ([Variable("A", own_noise), Variable("A", own_noise)], "A", r"repeated: \['A'\]"),
        ([Variable("A", halved, ("B",))], "A", r"unknown variables \['B'\]"),
        ([Variable("A", halved, ("B",)), Variable("B", halved, ("A",))], "A", "cycle"),
        ([Variable("A", halved, ("A",))], "A", "self loop"),
        ([Variable("A", own_noise)], "Y", r"reward 'Y' is not one of the variables \['A'\]"),
        ([Variable("A", own_noise, observed=False)], "A", "reward 'A' must be an observed variable"),
        ([Variable("A", own_noise), Variable("B", halved, ("A",))], "A", r"no children; it has \('B',\)"),
        ([Variable("A", total, (), (0, 2))], "A", r"without gaps; the mechanisms use \[0, 2\]"),
    ],
)
def test_invalid_models_say_what_is_wrong(variables, reward: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StructuralCausalModel(variables, reward)


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        (None, "takes 2 soft parameters; given 0"),
        (Intervention([0.0, math.nan]), "soft parameter 1 must be finite"),
        (Intervention([0.0, np.zeros(4)]), r"soft parameter 1 has shape \(4,\), which does not fit \(5,\)"),
        (Intervention([0.0, 0.0], {"Y": (True, 1.0)}), r"cannot set \['Y'\]; a hard intervention may set \['X', 'Z'\]"),
        (Intervention([0.0, 0.0], {"H": (True, 1.0)}), r"cannot set \['H'\]"),
        (Intervention([0.0, 0.0], {"X": (True, math.inf)}), "the value of X must be finite"),
        (Intervention([0.0, 0.0], {"X": (True, np.ones(3))}), r"the value of X has shape \(3,\)"),
        (Intervention([0.0, 0.0], {"X": (np.ones(3, bool), 1.0)}), r"the mask of X has shape \(3,\)"),
    ],
)
def test_sample_refuses_what_does_not_fit(intervention, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_model().sample(5, np.random.default_rng(0), intervention)
    with pytest.raises(ValueError, match="n must be at least 1; given 0"):
        small_model().sample(0, np.random.default_rng(0), intervention)


@pytest.mark.parametrize(
    "mechanism",
    [
        Formula(("x", "a", "u"), "x**2 - a * exp(-x) / 1e1 + u if pi > 3 else u"),
        Additive((Linear(0.1), Linear(-1.0 / 3.0))),
        Additive((Linear(0.1), Tanh())),
    ],
)
def test_mechanisms_that_are_inlined_give_the_values_of_their_calls(mechanism) -> None:
    variables = [
        Variable("X", package.own_noise, noise=Normal()),
        Variable("Y", mechanism, ("X",), (0,), noise=Normal()),
    ]
    scm = StructuralCausalModel(variables, reward="Y")
    for x, a, u in np.random.default_rng(0).normal(size=(20, 3)).tolist():
        values = scm.propagate((x, u), Intervention((a,)))
        assert values == {"X": x, "Y": mechanism(x, a, u)}
        assert scm.propagate((x, u), Intervention((a,), {"X": (True, 2.0)}))["Y"] == mechanism(2.0, a, u)

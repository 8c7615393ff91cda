"""The Causal Chambers, against their package where it is installed, and their optima by another search."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy import optimize

from cbo_gym.envs.oracle import oracle_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.problems.systems.chambers import light_tunnel, wind_tunnel
from cbo_gym.scm import Intervention, StructuralCausalModel
from tests.support.problems import monte_carlo_agrees

IDS = [f"CBO/{name}-v0" for name in ("WindTunnel", "WindTunnel-Hard", "LightTunnel", "LightTunnel-Hard")]
# Actuators that the models keep constant, at the settings of the fits.
LIGHT_SETTINGS = {f"diode_{kind}_{i}": size for kind, size in (("ir", 2), ("vis", 1)) for i in (1, 2, 3)}
LIGHT_SETTINGS |= {f"t_{kind}_{i}": 3 for kind in ("ir", "vis") for i in (1, 2, 3)}
LIGHT_SETTINGS |= {"v_c": 5, "v_angle_1": 5, "v_angle_2": 5}
# Arrows of the published graphs without a counterpart in the models.
WITHOUT_MODEL = {("hatch", "rpm_in"), ("hatch", "rpm_out")} | {
    (f"load_{fan}", f"{sensor}_{other}")
    for fan, other in (("in", "out"), ("out", "in"))
    for sensor in ("rpm", "current")
}


def noiseless(scm: StructuralCausalModel, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Values of all nodes without noise; ``actions`` has shape (q, n) and native units."""
    zeros = tuple(np.zeros(actions.shape[1]) for _ in scm.noisy)
    return scm.propagate(zeros, Intervention.parameters(actions.T))


def draw(build: Callable[..., Any]) -> np.ndarray:
    low, high = np.transpose(build().action_domains)
    return np.random.default_rng(0).uniform(low, high, (50, len(low))).T


def test_the_pressure_is_where_a_fans_characteristic_meets_the_impedance() -> None:
    """By bisection of the two curves of model C3, for each fan."""
    load_in, load_out, hatch = actions = draw(wind_tunnel)
    ratio, flow = 0.75 + 0.15 * hatch / 45, 186.7 / 3600

    def pressure(load: float, ratio: float) -> float:
        def impedance(airflow: float) -> float:
            return 74.82473949999999 / flow**2 * (1 - ratio) / ratio**2 * airflow**2

        def gap(airflow: float) -> float:
            return impedance(airflow) - 74.82473949999999 * (load**2 - load * airflow / flow)

        return impedance(optimize.brentq(gap, 0, flow, xtol=1e-15))

    expected = [pressure(i, r) - pressure(o, r) for i, o, r in zip(load_in, load_out, ratio, strict=True)]
    np.testing.assert_allclose(noiseless(wind_tunnel().scm, actions)["pressure_downwind"], expected, atol=1e-9)


def test_the_models_are_those_of_the_package() -> None:
    wt = pytest.importorskip("causalchamber.simulators.wt", reason="needs the extra chambers")
    models = pytest.importorskip("causalchamber.models")
    lt = pytest.importorskip("causalchamber.simulators.lt")
    actions = draw(wind_tunnel)
    values = noiseless(wind_tunnel().scm, actions)
    for fan, load in zip(("in", "out"), actions, strict=False):
        speed = wt.ModelA1(L_min=0.1, omega_max=3000)._simulate(load, 0.1, 3000)
        np.testing.assert_allclose(values[f"rpm_{fan}"], speed)
        np.testing.assert_allclose(values[f"current_{fan}"], models.wind_tunnel_models.model_b1(load, 0.166, 0.27, 0.1))
    expected = models.model_c3(
        actions[0] * 3000, actions[1] * 3000, actions[2], 0.0, 74.82473949999999, 3000, 186.7 / 3600, 0.75, 0.15
    )
    np.testing.assert_allclose(values["pressure_downwind"], expected, atol=1e-9)

    simulator = lt.Deterministic(
        S=np.array([[4.34165202, 2.8594438, 1.91565691], [0.89410569, 1.58679242, 2.68477163]]),
        d1=0.1,
        d2=0.17,
        d3=0.25,
        Ts=np.array([0.42685688, 0.41231782, 0.46652526]),
        Tp=np.array([0.2909342, 0.29624314, 0.30526271]),
        Tc=np.array([0.00431032, 0.01447611, 0.02041075]),
        Q=np.array([0.12834946, 0.12870338, 0.13078523]),
        C0=58.13307318503893,
        A=1.42261211,
        a1=506.8049747171294,
        a2=510.98343062774353,
    )
    actions = draw(light_tunnel)
    settings = dict(zip(("red", "green", "blue", "pol_1", "pol_2"), actions, strict=True)) | LIGHT_SETTINGS
    outputs = simulator._simulate(**settings, **simulator.parameters())
    values = noiseless(light_tunnel().scm, actions)
    for name, expected in zip(simulator.outputs_names, outputs, strict=True):
        if name in values:
            np.testing.assert_allclose(values[name], expected, err_msg=name)


@pytest.mark.parametrize(("build", "chamber"), [(wind_tunnel, "wt"), (light_tunnel, "lt")])
def test_the_arrows_are_those_of_the_published_graph(build: Callable[..., Any], chamber: str) -> None:
    truth = pytest.importorskip("causalchamber.ground_truth.main", reason="needs the extra chambers")
    scm = build(hard=True).scm
    arrows = {(cause, effect) for cause, effect in scm.diagram.directed if effect != "Y"}
    published = {edge for edge in truth.edges(chamber, "standard") if set(edge) <= set(scm.nodes)}
    assert arrows == published - WITHOUT_MODEL
    assert published - arrows == (WITHOUT_MODEL if chamber == "wt" else set())


@pytest.mark.parametrize(
    "env_id",
    [pytest.param(env_id, marks=[] if env_id == "CBO/WindTunnel-v0" else [pytest.mark.slow]) for env_id in IDS],
)
def test_no_search_without_noise_beats_the_recorded_optimum(env_id: str) -> None:
    """Noise enters the reward through squares alone, so that its part of the mean is the same for all actions."""
    build, noise = (wind_tunnel, 0.2**2 / 2**2) if "Wind" in env_id else (light_tunnel, 75**2 / 300**2 + 75**2 / 100**2)
    best, problem = find_entry(env_id).optimum, build()
    found = optimize.differential_evolution(
        lambda actions: -noiseless(problem.scm, actions)["Y"],
        problem.action_domains,
        vectorized=True,
        updating="deferred",
        rng=0,
        tol=1e-10,
        popsize=8,
    )
    assert best.value == pytest.approx(-found.fun - noise, abs=1e-3)


@pytest.mark.parametrize("env_id", IDS)
def test_plain_monte_carlo_agrees_with_the_oracle(env_id: str) -> None:
    env = gym.make(env_id).unwrapped
    env.action_space.seed(0)
    monte_carlo_agrees(env, [oracle_of(env).optimum.action, env.action_space.sample()])

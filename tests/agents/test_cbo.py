import math
from dataclasses import replace
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
import torch
from gymnasium import spaces
from scipy.stats import norm

from cbo_gym import Mode, Round
from cbo_gym.actions import ChoiceCodec, Domains
from cbo_gym.agents.intervention_sets.acquisition import log_augmented_ei_factor, log_expected_improvement
from cbo_gym.agents.intervention_sets.causal_prior import (
    CausalGP,
    ObservationalModel,
    adjustment_set,
    can_be_simulated,
)
from cbo_gym.agents.intervention_sets.cbo import CBO, coverage
from cbo_gym.agents.intervention_sets.ccbo import CCBO
from cbo_gym.agents.intervention_sets.evidence import residual_std
from cbo_gym.agents.intervention_sets.set_models import EmptySetModel, SetModel
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import GraphKnowledge, HardTask
from tests.support.loop import begin_agent, make, play

TOY, COMPLETE = "CBO/ToyGraph-v0", "CBO/CompleteGraph-v0"
X0, X1 = frozenset({"X0"}), frozenset({"X1"})


@cache
def observed(env_id: str, count: int) -> ObservationalModel:
    """The observational model after ``count`` observations."""
    env, task = make(env_id, 0, 1)
    model = ObservationalModel(task)
    env.reset(seed=0)
    action = {"target": task.targets.index(frozenset()), "values": np.full(len(task.manipulable), 0.5)}
    for _ in range(count):
        observation, reward, *_ = env.step(action)
        model.add(action, observation, float(reward))
    return model


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"targets": [{"Y"}]}, r"targets must be among .* given \[\['Y'\]\]"),
        ({"costs": {"Z": 1.0}}, r"costs name \['Z'\]"),
        ({"costs": {"x0": 1.0}}, r"costs name \['x0'\]; .* be set; did you mean 'X0'"),
    ],
)
def test_parameters_that_do_not_fit_the_task(parameters: dict, message: str) -> None:
    _, task = make(TOY, 0, 1)
    with pytest.raises(ArgumentError, match=message):
        CBO(**parameters).reset(task, 0)


# The observational prior.


def toy_effect(target: frozenset[str], values: np.ndarray) -> np.ndarray:
    """E[Y | do(values)] by brute force, in native units."""
    rng = np.random.default_rng(0)
    x1 = values[:, None]
    if target == X0:
        x1 = np.exp(-values)[:, None] + rng.normal(size=(1, 200_000))
    return (np.exp(-0.05 * x1) - np.cos(x1)).mean(axis=1)


@pytest.mark.parametrize(("target", "low", "high"), [(X0, -1.5, 2.0), (X1, -1.0, 4.0)])
def test_causal_prior_is_the_interventional_mean_where_there_are_observations(
    target: frozenset[str], low: float, high: float
) -> None:
    """The noise of Y has deviation 1. With 300 observations and a smooth curve of about 8 degrees of freedom the
    root mean squared error is about sqrt(8 / 300) = 0.16; twice that is allowed for the mean, and 0.5 anywhere."""
    model = observed(TOY, 300)
    assert model.rule(target) == "simulation"
    domain = {X0: (-5.0, 5.0), X1: (-5.0, 20.0)}[target]
    natives = np.linspace(low, high, 15)
    values = torch.tensor((natives - domain[0]) / (domain[1] - domain[0]))[:, None]
    mean, std = model.effect(target, values)
    error = np.abs(mean.numpy() - toy_effect(target, natives))
    assert np.sqrt((error**2).mean()) < 0.33
    assert error.max() < 0.5
    _, unobserved = model.effect(target, torch.tensor([[0.02 if target == X0 else 0.95]], dtype=torch.float64))
    assert (std > 0.0).all()
    assert unobserved > 2.0 * std.max()


def test_rules_of_the_confounded_graph() -> None:
    """B <-> Y cannot be blocked for do(B); A and C block the back doors of D and E."""
    _, task = make(COMPLETE, 0, 1)
    expected = {
        ("B",): None, ("D",): {"C"}, ("E",): {"A", "C"}, ("B", "D"): None, ("B", "E"): None, ("D", "E"): {"A", "C"},
    }  # fmt: skip
    for target, chosen in expected.items():
        assert adjustment_set(task.diagram, frozenset(target), "Y") == chosen
        assert not can_be_simulated(task.diagram, frozenset(target), "Y")
    model = observed(COMPLETE, 5)
    assert model.rule(frozenset({"B"})) == "none"
    assert model.rule(frozenset({"D", "E"})) == "adjustment"
    chain = CausalDiagram("WXY", [("W", "X"), ("X", "Y")], [("W", "X")])  # confounded before the target, not behind it
    assert can_be_simulated(chain, frozenset("X"), "Y")
    assert not can_be_simulated(chain, frozenset("W"), "Y")
    assert adjustment_set(chain, frozenset("W"), "Y") is None


def small_task(diagram: CausalDiagram, domain: tuple[float, float]) -> HardTask:
    """A hard task in which X can be set or not."""
    targets = (frozenset(), frozenset("X"))
    space = spaces.Dict({"target": spaces.Discrete(2), "values": spaces.Box(0.0, 1.0, (1,), np.float64)})
    return HardTask(
        env_id="Small",
        mode=Mode.HARD,
        graph=GraphKnowledge(diagram.nodes, diagram),
        nodes=diagram.nodes,
        reward="Y",
        horizon=5,
        action_space=space,
        observation_space=spaces.Dict({"nodes": spaces.Box(-np.inf, np.inf, (len(diagram.nodes),), np.float64)}),
        codec=ChoiceCodec(space, Domains({"X": domain}), "target", targets, ("{}", "{X}")),
        manipulable={"X": domain},
        targets=targets,
    )


def test_back_door_adjustment_removes_confounding() -> None:
    """Z confounds X and Y; a latent joins Z and Y. Y = X + 2 Z + U, Z = U + u: regression on X alone has slope
    well above 1, E[Y | do(x)] has slope 1."""
    task = small_task(CausalDiagram("ZXY", [("Z", "X"), ("Z", "Y"), ("X", "Y")], [("Z", "Y")]), (-2.0, 2.0))
    model = ObservationalModel(task)
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=200)
    z = hidden + 0.5 * rng.normal(size=200)
    x = 0.8 * z + 0.5 * rng.normal(size=200)
    y = x + 2.0 * z + hidden + 0.1 * rng.normal(size=200)
    assert np.polyfit(x, y, 1)[0] > 2.5
    for row in np.stack([z, x, y], axis=1):
        model.add({"target": 0, "values": [0.5]}, {"nodes": row}, float(row[-1]))
    target = frozenset("X")
    assert model.rule(target) == "adjustment"
    mean, _ = model.effect(target, torch.tensor([[0.25], [0.75]], dtype=torch.float64))  # do(-1), do(1)
    assert float(mean[1] - mean[0]) / 2.0 == pytest.approx(1.0, abs=0.25)


# The GP of a set.


def test_the_gp_starts_from_its_prior_a_new_prior_takes_effect_and_data_overrule_it() -> None:
    level = {"mean": 0.25}

    def effect(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.full_like(values[:, 0], level["mean"]), torch.full_like(values[:, 0], 0.5)

    gp = CausalGP("Y", 1, effect)
    gp.unit = 2.0
    grid = torch.linspace(0.0, 1.0, 30, dtype=torch.float64)[:, None]
    mean, std = gp.predict(grid)
    assert mean.tolist() == [0.25] * 30
    assert std.tolist() == pytest.approx([math.sqrt(4.0 + 0.25)] * 30)
    for value in grid:
        gp.observe(value, 3.0)
    before = gp.predict(grid)[0]
    assert (before - 3.0).abs().max() < 0.2
    level["mean"] = 2.0
    gp.refresh()
    after = gp.predict(grid)[0]
    assert (after - 3.0).abs().max() < (before - 3.0).abs().max()
    torch.testing.assert_close(gp.means_at_data(), after)


# Expected improvement and epsilon.


def test_the_units_of_rewards_change_nothing_but_units():
    """In a hundredfold unit means and standard deviations are a hundredfold, those of the causal prior included."""

    def predicted(factor: float):
        def effect(values):
            return factor * values[:, 0], factor * (0.2 + values[:, 0])

        gp = CausalGP("Y", 1, effect)
        gp.unit = factor * 0.5
        for value, reward in ((0.1, 0.3), (0.5, 0.1), (0.6, 0.4), (0.9, 1.2)):
            gp.observe(torch.tensor([value], dtype=torch.float64), factor * reward)
        with torch.no_grad():
            return torch.stack(gp.predict(torch.linspace(0.0, 1.0, 5, dtype=torch.float64)[:, None]))

    torch.testing.assert_close(predicted(100.0) / 100.0, predicted(1.0), rtol=1e-4, atol=1e-6)


def test_expected_improvement_is_the_closed_form_also_far_below_the_best() -> None:
    mean, std, best = np.array([0.0, 3.0, -2.0, 1.0]), np.array([1.0, 0.5, 1.5, 1e-3]), 1.0
    z = (mean - best) / std
    expected = (mean - best) * norm.cdf(z) + std * norm.pdf(z)
    found = log_expected_improvement(torch.from_numpy(mean), torch.from_numpy(std), best).exp()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    z = -torch.tensor([1e5, 1e3, 100.0, 30.0, 10.0, 1.0 + 1e-9, 1.0 - 1e-9], dtype=torch.float64)
    found = log_expected_improvement(z, torch.ones_like(z), 0.0)
    assert found.isfinite().all()
    assert (found.diff() > 0.0).all()
    tail = -0.5 * z[1:4] ** 2 - 0.5 * math.log(2 * math.pi) - 2.0 * z[1:4].abs().log()  # phi(z) / z^2
    torch.testing.assert_close(found[1:4], tail, atol=0.01, rtol=0.0)


@pytest.mark.parametrize("std", [3.0, 0.5, 1e-2, 1e-9])
@pytest.mark.parametrize("noise", [2.0, 0.1])
def test_the_factor_is_the_share_of_uncertainty_that_one_observation_removes(std: float, noise: float) -> None:
    precision = 1 / Decimal(std) ** 2
    after = 1 / (precision + 1 / Decimal(noise) ** 2).sqrt()  # of the posterior, in exact enough arithmetic
    found = log_augmented_ei_factor(torch.tensor(std, dtype=torch.float64), noise)
    assert float(found) == pytest.approx(float((1 - after / Decimal(std)).ln()), rel=1e-6)


def test_coverage_by_hand() -> None:
    box = np.array([[0.0, 2.0], [0.0, 4.0]])
    triangle = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
    assert coverage(triangle, box) == pytest.approx(0.5)
    assert coverage(np.array([[-9.0, -9.0], [9.0, -9.0], [-9.0, 9.0], [9.0, 9.0]]), box) == pytest.approx(1.0)
    assert coverage(np.array([[1.0], [3.0], [1.5]]), np.array([[0.0, 8.0]])) == pytest.approx(0.25)
    line = np.linspace([0.0, 0.0], [2.0, 4.0], 5)
    assert coverage(line, box) == 0.0
    assert coverage(triangle[:2], box) == 0.0
    assert coverage(np.empty((0, 2)), box) == 0.0
    assert coverage(np.ones((6, 2)), box) == 0.0


def toy_rounds(points: list[tuple[float, float]]) -> tuple[Round, ...]:
    """Observing rounds with these X0 and X1."""
    action = {"target": np.int64(0), "values": np.full(2, 0.5)}
    return tuple(Round(action, {"nodes": np.array([x0, x1, 1.0])}, 1.0) for x0, x1 in points)


@pytest.mark.parametrize(
    ("scaling", "count", "epsilon"), [("multiply", 8, 0.25), ("divide", 5, 0.5), ("divide", 40, 0.0)]
)
def test_epsilon_by_hand_and_how_it_is_used(
    scaling: str, count: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hull of half of the domain from 4 of at most 8 observations: 0.5 x 4 / 8; divided it is at most 1/2."""
    _, task = make(TOY, 0, 1)
    corners = [(-5.0, -5.0), (5.0, -5.0), (-5.0, 20.0), (-4.0, -4.0)]
    if not epsilon:  # a hull of a hundredth, after 40 of 80 observations
        corners = [(-5.0, -5.0), (-4.0, -5.0), (-5.0, 0.0)] + 37 * [(-4.9, -4.9)]
    task = replace(task, initial_data=toy_rounds(corners))
    agent = begin_agent(CBO(scaling=scaling, max_observations=count if epsilon else 80), task)
    expected = epsilon or 0.01 / (40 / 80)
    assert agent.epsilon == pytest.approx(expected)
    if epsilon:
        # The search of the models costs time and is not what is tested.
        for kind in (SetModel, EmptySetModel):
            monkeypatch.setattr(kind, "maximise", lambda *_: ({"target": 1}, 0.0))
        observing = [not task.targets[agent.act({})["target"]] for _ in range(80)]
        assert np.mean(observing) == pytest.approx(expected, abs=3 * math.sqrt(expected * (1 - expected) / 80))
    agent = begin_agent(CBO(scaling=scaling, max_observations=4), task)
    assert agent.epsilon == 0.0


def test_the_empty_set_is_exploited_where_it_is_best() -> None:
    """X = U and Y = 1 - (X - U)^2: what nature does cannot be improved upon."""
    task = small_task(CausalDiagram("XY", [("X", "Y")], [("X", "Y")]), (-1.0, 1.0))
    agent = begin_agent(CBO(targets="POMIS"), task)
    assert agent.explored == set(task.targets)
    rng, empty = np.random.default_rng(0), []
    for _ in range(40):
        action, u = agent.act({}), rng.uniform(-1.0, 1.0)
        x = 2.0 * action["values"][0] - 1.0 if action["target"] else u
        reward = 1.0 - (x - u) ** 2
        empty.append(not action["target"])
        agent.update(action, {"nodes": np.array([x, reward])}, reward, {})
    assert np.mean(empty[20:]) >= 0.9
    assert not agent.recommend()["target"]


def test_rewards_of_the_empty_set_after_the_last_observation_change_no_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    _, task = make(TOY, 0, 1)
    known = sum(not task.targets[int(past.action["target"])] for past in task.initial_data)
    make_effects, effects = CBO.make_effects, []
    monkeypatch.setattr(CBO, "make_effects", lambda self: effects.append(make_effects(self)) or effects[-1])
    agent = begin_agent(CBO(max_observations=known + 1), task)
    for past in toy_rounds([(0.0, 0.0)] * 3):
        agent.update(*past, {})
    assert len(agent.history) == len(task.initial_data) + 3
    assert len(effects[-1].observations) == known + 1


def test_observations_give_the_noise_of_rewards() -> None:
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.normal(size=(400, 2)))
    rewards = 3.0 + 2.0 * values[:, 0] - values[:, 1] ** 2 + 0.7 * torch.from_numpy(rng.normal(size=400))
    assert residual_std(values, rewards) == pytest.approx(0.7, rel=0.1)
    assert residual_std(values[:, :1], rewards) == pytest.approx((0.7**2 + 2.0) ** 0.5, rel=0.15)  # X1 is left free
    assert residual_std(values[:29], rewards[:29]) is None
    constant = torch.ones((40, 1), dtype=torch.float64)
    assert residual_std(constant, rewards[:40]) == pytest.approx(float(rewards[:40].std()), rel=0.05)


def test_a_lucky_reward_is_no_peak_if_observations_are_noisy() -> None:
    def nothing(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0])

    rng = np.random.default_rng(1)
    values, rewards = torch.from_numpy(rng.random((12, 3))), rng.normal(size=12)
    highest = {}
    for expected in (None, 1.0):
        gp = CausalGP("Y", 3, nothing)
        gp.expected_noise = expected
        for point, reward in zip(values, rewards, strict=True):
            gp.observe(point, float(reward))
        highest[expected] = float(gp.means_at_data().max())
        assert expected is None or gp.noise_of_rewards == pytest.approx(1.0, rel=0.3)
    assert highest[1.0] < 0.8 * highest[None]


# Playing.


def test_only_the_given_targets_are_explored_and_costs_steer() -> None:
    env, task = make(TOY, 0, 3)

    def played(agent: CBO) -> set[frozenset[str]]:
        return {task.targets[action["target"]] for action in play(agent, env, task, 0)[0]}

    assert played(CBO(targets=[{"X0"}])) <= {frozenset(), X0}
    assert played(CBO(targets=[[]])) == {frozenset()}
    for agent in (CBO(costs={"X1": 1e9}), CBO(costs={("X1",): 1e9}), CCBO(costs={frozenset({"X1"}): 1e9})):
        assert X1 not in played(agent)


def test_possibly_optimal_or_minimal_targets_are_explored_by_name() -> None:
    _, task = make(COMPLETE, 0, 1)
    b_and_e = frozenset("BE")
    task = replace(task, targets=(*task.targets, frozenset("BDE")))
    for targets, excluded in [
        ("POMIS", {b_and_e, frozenset("BDE")}),
        ("MIS", {frozenset("BDE")}),
        (None, set()),
    ]:
        assert begin_agent(CBO(targets=targets), task).explored == set(task.targets) - excluded


def test_an_early_round_leaves_what_was_played_often_for_what_may_be_better() -> None:
    """Plain expected improvement goes on at a known hill, whose own standard deviation keeps it improvable."""
    _, task = make(TOY, 0, 1)
    hill, target = 0.3, np.int64(task.targets.index(X1))
    values = [hill] * 20 + [(number + 0.5) / 10 for number in range(10)]
    for seed in range(2):
        noise = np.random.default_rng(seed).normal(0.0, 0.3, len(values))
        past = [*toy_rounds([(0.0, 0.0), (1.0, -1.0), (0.5, 2.0)])]
        for value, error in zip(values, noise, strict=True):
            reward = math.exp(-((value - hill) ** 2) / 0.02) + error
            action = {"target": target, "values": np.array([0.5, value])}
            past.append(Round(action, {"nodes": np.array([0.0, value, reward])}, reward))
        agent = begin_agent(CBO(targets=[X1], max_observations=3), replace(task, initial_data=tuple(past[:-1])))
        away = []
        for _ in range(2):  # the first round that is not initial data, and the second
            away.append(abs(float(agent.act({})["values"][1]) - hill))
            agent.update(*past[-1], {})
        assert away[0] > 0.05
        assert away[1] < 0.05


def test_sets_that_are_not_explored_are_judged_by_observations_alone() -> None:
    """A lucky first reward of X0, which is not explored, is no reason to recommend it."""
    _, task = make(TOY, 0, 1)
    lucky = [past._replace(reward=50.0) if task.targets[past.action["target"]] == {"X0"} else past
             for past in task.initial_data]  # fmt: skip
    for targets, believed in (([{"X1"}], False), (None, True)):
        agent = begin_agent(CBO(targets=targets), replace(task, initial_data=tuple(lucky)))
        assert (task.targets[agent.recommend()["target"]] == {"X0"}) == believed

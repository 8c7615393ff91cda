"""The agents of the masked mode: their contract, and their choices against slow formulas."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from cbo_gym import UnsupportedModeError, agents
from cbo_gym.agents.super_arms.mets import PARTICLES, SignalPrior
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.noise import DistributionFamily, Uniform
from tests.support.loop import make, play

PERIODIC = "CBO/SSEMPeriodic-v0"
STRUCTURAL = (agents.SSEMUCB, agents.SSEMUCBJO, agents.SSEMUCBNorm, agents.SEMUCB, agents.METS)


@pytest.mark.parametrize("build", STRUCTURAL)
def test_systems_that_are_not_separable_are_refused(build: Any) -> None:
    with pytest.raises(UnsupportedModeError, match="needs a separable system"):
        build().reset(make("CBO/Rosenbrock-Masked-v0", 0, 3)[1], 0)
    with pytest.raises(UnsupportedModeError, match="the mask is on the nodes"):
        build().reset(make(PERIODIC, 0, 3, mask="endogenous")[1], 0)


def test_tasks_without_a_family_or_with_too_many_super_arms_are_refused() -> None:
    _, task = make(PERIODIC, 0, 3)
    with pytest.raises(UnsupportedModeError, match="family of the signals"):
        agents.METS().reset(replace(task, signal_family=None), 0)
    space = type(task.action_space)(40, 8)  # type: ignore[call-arg]
    with pytest.raises(
        ArgumentError, match="give 100146724 super arms; IGP-UCB scores every one and takes at most 200000"
    ):
        agents.IGPUCB().reset(replace(task, action_space=space), 0)


def fitted(agent: Any, rounds: int, env_id: str = PERIODIC, **parameters: Any) -> Any:
    """The agent after rounds of random play, which it learns from together."""
    env, task = make(env_id, 0, rounds, **parameters)
    play(random := agents.Random(), env, task, 0)
    agent.reset(replace(task, initial_data=tuple(random.history)), 0)
    agent.act({})
    return agent


class TestSSEM:
    @pytest.mark.parametrize("build", [agents.SSEMUCB, agents.SSEMUCBJO, agents.SSEMUCBNorm])
    def test_first_rounds_cover_every_base_arm(self, build: Any) -> None:
        env, task = make(PERIODIC, 0, 5)
        actions, _ = play(build(), env, task, 0)
        np.testing.assert_array_equal(np.sum(actions, axis=0), 3)
        assert all(np.sum(action) == 6 for action in actions)

    @pytest.mark.parametrize(
        ("build", "external"),
        [(agents.SSEMUCB, "sum"), (agents.SSEMUCBJO, "max"), (agents.SSEMUCBNorm, "max")],
    )
    def test_plays_the_best_of_the_scores_written_out(self, build: Any, external: str) -> None:
        rounds = 16
        env, task = make(PERIODIC, 0, rounds, super_arm_size=2)
        agent = build(degree=2, internal_scale=0.2, external_scale=0.01, external=external)
        play(agent, env, task, 0)
        agent.model.system = None  # so that there is a new fit
        action = agent.act({})
        counts = np.sum([past.action for past in agent.history], axis=0)
        confidence = np.sqrt((2 + 1) * math.log(rounds) / counts)
        unsure = math.log(rounds) / counts + 4.0 * (math.log(rounds) / counts) ** 2
        moments = agent.moments.normal_moments() if build is agents.SSEMUCBNorm else agent.moments.moments()
        by_signals = agent.expansion.variances(moments, agent.moments.covariances(moments))
        expected = agent.expansion.expected_payoffs(moments)
        internal, outer = [], []
        for arm, payoff, variances in zip(agent.super_arms, expected, by_signals, strict=True):
            doubt = sum((variances[i] + 12.0 * 10 * agent.model.error * arm[i]) * unsure[i] for i in range(10))
            internal.append(payoff + 0.2 * math.sqrt(doubt))
            chosen = confidence[arm > 0]
            outer.append(0.0 if not len(chosen) else chosen.max() if external == "max" else chosen.sum() / 2)
        growth = math.sqrt(math.sqrt(rounds) / math.log(rounds)) if build is agents.SSEMUCBJO else 1.0
        weight = 0.01 * np.ptp(internal) * growth * 4.0 * math.sqrt(math.log(rounds))
        scores = np.array(internal) + weight * np.array(outer)
        np.testing.assert_array_equal(action, agent.super_arms[scores.argmax()])
        np.testing.assert_allclose(agent.scores(agent.expansion), scores)

    @pytest.mark.parametrize(
        ("remainders", "degree", "tried"),
        [([1.0, 1e-9], 2, [11, 66]), ([3.0, 5.0, 2.0, 4.0], 3, [11, 66, 286, 1001])],
        ids=["the first that is good enough", "else that of the least remainder"],
    )
    def test_the_degree_is_searched(self, remainders: list[float], degree: int, tried: list[int]) -> None:
        agent = fitted(agents.SSEMUCBJO(degree="search"), 40, super_arm_size=3)
        left, found = iter(remainders), []

        def remainder(expansion: Any, payoff: Any, samples: int) -> np.ndarray:
            found.append(expansion.coefficients.shape[1])
            return np.array([-next(left), 0.0])

        agent.corrected, agent.remainder = False, remainder  # type: ignore[method-assign]
        assert agent.expand().coefficients.shape[1] == math.comb(10 + degree, degree)
        assert found == tried

    def test_the_remainder_of_the_polynomials_is_added(self) -> None:
        """The mean payoffs under the fitted equations, over many draws of signals seen, where degree 4 misses much."""
        agent = fitted(agents.SSEMUCBJO(degree=4), 100, instance_seed=209)
        super_arms, exogenous, _ = agent.model.rounds()
        rng = np.random.default_rng(0)
        signals = np.stack(
            [rng.choice(z[x > 0], 20_000) for x, z in zip(super_arms.T, exogenous.T, strict=True)], axis=1
        )
        few = agent.super_arms[::20]
        means = np.array([agent.model.system.solve(arm * signals).sum(axis=-1).mean() for arm in few])
        errors = []
        for agent.corrected in (True, False):
            payoffs = agent.expand().expected_payoffs(agent.signal_moments())
            errors.append(np.sqrt(np.square(payoffs[::20] - means).mean()))
        assert errors[0] < 0.25 * errors[1]

    def test_systems_with_cycles_are_expanded_about_zero(self) -> None:
        options = {"rounds": 40, "super_arm_size": 3}
        cyclic, acyclic = (
            fitted(agents.SSEMUCBJO(degree=2), env_id=env_id, **options) for env_id in ("CBO/TrainDelay-v0", PERIODIC)
        )
        assert not cyclic.moments.centre.any()
        assert acyclic.moments.centre.all()
        assert np.isfinite(cyclic.estimated_rewards()).all()

    def test_sem_ucb_is_linear(self) -> None:
        agent = agents.SEMUCB(internal_scale=0.02)
        fitted(agent, 30)
        action = agent.act({})
        (edges,) = agent.model.system.coefficients
        weights = np.linalg.inv(np.eye(10) - edges).sum(axis=0)
        exogenous = np.array([past.observation["exogenous"] for past in agent.history])
        counts = agent.moments.counts
        means = exogenous.sum(axis=0) / counts
        radius = 2.0 * 0.02 * np.sqrt(7.0 * math.log(30) / counts)
        index = agent.super_arms @ (weights * means + np.abs(weights) * radius)
        np.testing.assert_array_equal(action, agent.super_arms[index.argmax()])


class TestSGB:
    def test_explores_in_phases_and_commits(self) -> None:
        env, task = make(PERIODIC, 0, 120)
        agent = agents.SGB()
        actions, rewards = play(agent, env, task, 0)
        sizes = np.sum(actions, axis=1)
        assert (np.diff(sizes) >= 0).all()
        assert sizes[0] == 1
        phases = [np.flatnonzero(sizes == size) for size in range(1, 6)]
        exploring = [phase for phase in phases if len(phase)]
        for phase, after in pairwise(exploring):
            tried = np.array(actions)[phase]
            arms, indices = np.unique(tried, axis=0, return_inverse=True)
            plays = np.bincount(indices.ravel())
            means = np.bincount(indices.ravel(), rewards[phase]) / plays
            assert plays.min() == agent.repetitions == plays.max()
            best = arms[means.argmax()]
            assert (np.array(actions)[after] >= best).all()
        assert len({tuple(action) for action in actions[-20:]}) == 1
        assert sizes[-1] == 6

    def test_initial_data_are_no_trials(self) -> None:
        env, task = make(PERIODIC, 0, 5)
        agent = agents.SGB()
        play(agent, env, task, 0)
        given = replace(task, initial_data=tuple(agent.history))
        actions, _ = play(agent, env, given, 0)
        assert np.sum(actions[0]) == 1


def test_igp_ucb_is_the_upper_bound_of_a_gaussian_process() -> None:
    env, task = make(PERIODIC, 0, 40, super_arm_size=2)
    agent = agents.IGPUCB(lengthscale=1.5, delta=0.2)
    play(agent, env, task, 0)
    action = agent.act({})
    rewards = np.array([past.reward for past in agent.history])
    first = rewards[:10]
    values = (rewards - first.mean()) / first.std()
    regulariser = np.abs(first - first.mean()).max() / first.std()
    arms = agent.super_arms.astype(float)
    kernel = np.exp(-0.5 * ((arms[:, None] - arms) ** 2).sum(axis=-1) / 1.5**2)
    seen = kernel[np.ix_(agent.played, agent.played)]
    weights = np.linalg.solve(seen + regulariser * np.eye(40), values)
    cross = kernel[:, agent.played]
    mean = cross @ weights
    variance = 1.0 - np.sum(cross * np.linalg.solve(seen + regulariser * np.eye(40), cross.T).T, axis=1)
    information = 0.5 * np.linalg.slogdet(np.eye(40) + seen / regulariser)[1]
    norm = math.sqrt(weights @ seen @ weights)
    beta = norm + math.sqrt(regulariser) * math.sqrt(2.0 * (information + 1.0 + math.log(1.0 / 0.2)))
    bounds = mean + beta * np.sqrt(variance)
    (row,) = np.flatnonzero((agent.super_arms == action).all(axis=1))
    assert bounds[row] == pytest.approx(bounds.max(), rel=1e-4)
    np.testing.assert_allclose(agent.estimated_rewards(), first.mean() + first.std() * mean[agent.played], rtol=1e-4)


class TestMETS:
    def test_the_posterior_finds_the_parameters(self) -> None:
        rng = np.random.default_rng(0)
        family = DistributionFamily(Uniform, {"low": (0.0, 0.4), "high": (0.6, 1.0)})
        prior = SignalPrior(family, (0.0, 1.0), rng)
        seen = rng.uniform(0.25, 0.8, 300)
        likelihood = prior.log_likelihoods(seen).sum(axis=0)
        assert likelihood.shape == (PARTICLES,)
        likely = likelihood.argmax()
        draws = prior.signals(np.array([likely]), np.linspace(0.0, 1.0, 11)[:, None])
        assert draws[0, 0] == pytest.approx(0.25, abs=0.04)
        assert draws[-1, 0] == pytest.approx(0.8, abs=0.04)

    def test_many_super_arms_are_compared_in_part(self) -> None:
        env, task = make("CBO/SSEMArcsine-v0", 0, 6)
        agent = agents.METS()
        actions, _ = play(agent, env, task, 0)
        rows = agent.candidates()
        assert len(rows) < 1000 < len(agent.super_arms)
        near = np.abs(agent.super_arms - actions[-1]).sum(axis=1) <= 2
        assert np.isin(np.flatnonzero(near), rows).all()

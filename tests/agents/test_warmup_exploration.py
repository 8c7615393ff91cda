"""Warm-up exploration of MCBO: its rounds, its target sets and its actions."""

import numpy as np
import pytest
import torch

from cbo_gym.agents import EIFN, MCBO
from cbo_gym.agents.common.search import best_first
from cbo_gym.agents.networks.novelty import information
from cbo_gym.agents.networks.warmup_exploration import FIRST_ROUNDS, LAST_ROUND, PERIOD, SAMPLES, WIDTH
from tests.support.loop import start_agent

COMPLETE = "CBO/CompleteGraph-v0"


def played_by(agent) -> list:
    return best_first(agent.history, agent.estimated_rewards())


@pytest.mark.parametrize(
    ("agent", "env_id"),
    [(MCBO(), "CBO/Dropwave-v0"), (MCBO(beta=0.5), COMPLETE), (MCBO(), "CBO/CCBOSynthetic2-v0")],
)
def test_there_is_none_without_noise_with_a_beta_or_under_constraints(agent: MCBO, env_id: str) -> None:
    assert start_agent(agent, env_id).warmup is None


@pytest.mark.parametrize("env_id", [COMPLETE, "CBO/Dropwave-Noisy-v0", "CBO/Dropwave-v0"])
def test_expected_improvement_explores_unless_it_chooses_among_noisy_target_sets(env_id: str) -> None:
    assert (start_agent(EIFN(), env_id).exploration is None) == (env_id == COMPLETE)


def test_every_second_of_the_first_rounds_explores_and_then_some() -> None:
    hard = start_agent(MCBO(), "CBO/ToyGraph-v0").warmup
    assert [rounds for rounds in range(2 * LAST_ROUND) if hard.due(rounds)] == list(range(1, FIRST_ROUNDS, 2))
    for env_id in ("CBO/Dropwave-Noisy-v0", COMPLETE):  # without target sets, or with latent causes
        warmup = start_agent(MCBO(), env_id).warmup
        due = [rounds for rounds in range(2 * LAST_ROUND) if warmup.due(rounds)]
        assert due == [*range(1, FIRST_ROUNDS, 2), *range(FIRST_ROUNDS, LAST_ROUND, PERIOD)]


def test_new_target_sets_come_first_with_their_most_informative_action() -> None:
    agent = start_agent(MCBO(), COMPLETE)
    network, task, played = agent.network, agent.task, played_by(agent)
    past: list = []
    rng = np.random.default_rng(0)
    for _ in range(2):
        fresh = set(network.minimal) - {task.targets[int(action["target"])] for action in past}
        action = agent.warmup.explore(past, played, seed=len(past))
        assert task.targets[int(action["target"])] in fresh
        others = [
            {"target": np.int64(task.targets.index(target)), "values": rng.random(3)}
            for target in fresh
            for _ in range(50)
        ]
        points = torch.stack([network.features.inputs(network.features.encode(a)) for a in [action, *others]])
        with torch.no_grad():
            gained = information(network, points)
        assert gained[0] >= 0.98 * gained[1:].max()
        past.append(action)


def test_information_is_of_the_nodes_that_are_left_to_their_mechanisms() -> None:
    agent = start_agent(MCBO(), COMPLETE)
    network, task = agent.network, agent.task
    d_and_e = {"target": np.int64(task.targets.index(frozenset("DE"))), "values": np.array([0.5, 0.3, 0.6])}
    inputs = network.features.inputs(network.features.encode(d_and_e))[None]
    expected = 0.0

    def learn(node, points, mean, std):
        nonlocal expected
        if node not in "DE":
            expected += float(torch.log1p((std / network.surrogates[node].noise_scale).square()))
        return mean

    with torch.no_grad():
        network.rollout(inputs, learn, {})
        assert float(information(network, inputs)) == pytest.approx(expected, rel=1e-6)


def test_then_the_best_within_wide_bounds_is_played() -> None:
    agent = start_agent(MCBO(), "CBO/Dropwave-Noisy-v0")
    network, warmup, played = agent.network, agent.warmup, played_by(agent)
    noise = network.draw_noise(SAMPLES, seed=0)  # as the search draws it

    def highest(points: torch.Tensor) -> torch.Tensor:
        """Over the sign of the one eta."""

        def bound(sign: float) -> torch.Tensor:
            def plausible(node: str, _: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
                return mean + WIDTH * std * (sign if node == "X0" else 1.0)

            return network.rollout(points, plausible, noise)["Y"].mean(-1)

        with torch.no_grad():
            return torch.stack([bound(-1.0), bound(0.0), bound(1.0)]).amax(0)

    found = torch.as_tensor(warmup.explore([], played, seed=0))[None]
    random = torch.rand(2000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert highest(found) > highest(random).max() - 0.01

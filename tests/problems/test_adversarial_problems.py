"""The games of CBO-MW against plain NumPy, written down again from the equations."""

from collections.abc import Callable
from itertools import product

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.problems import Adversary, Problem
from cbo_gym.scm import Normal, StructuralCausalModel, Uniform, Variable, own_noise
from tests.support.loop import reset

Nodes = list[float]
LEVELS = np.linspace(0.0, 1.0, 4)


def root_sine(x: float) -> float:
    return np.sqrt(x) * np.sin(x)


def valley(x: float, y: float) -> float:
    return -100.0 * (y - x**2) ** 2 - (1.0 - x) ** 2


def dropwave_penny(a: np.ndarray, m: np.ndarray) -> Nodes:
    radius = np.hypot(*(2.0 * a))
    sign = 10.0 * (0.99 * m[0] + 0.005 - 0.5)
    return [radius, sign * np.cos(3.0 * radius) / (2.0 + radius**2 / 2.0)]


def dropwave_perturb(a: np.ndarray, m: np.ndarray) -> Nodes:
    shift = 0.2 * (10.24 * m[0] - 5.12)
    radius = np.hypot(10.24 * a[0] - 5.12 - shift, 10.24 * a[1] - 5.12)
    return [radius, (1.0 + np.cos(3.0 * radius)) / (2.0 + radius**2 / 2.0)]


def alpine2_penny(a: np.ndarray, m: np.ndarray) -> Nodes:
    first = -root_sine(10.0 * a[0])
    second = root_sine(10.0 * a[1]) * first
    third = root_sine(10.0 * m[0] + 1.0) * second
    return [first, second, third, root_sine(10.0 * a[2]) * third]


def alpine2_perturb(a: np.ndarray, m: np.ndarray) -> Nodes:
    nodes = [-root_sine(10.0 * a[0] + 2.0 * m[0])]
    for i in (1, 2):
        nodes.append(root_sine(10.0 * a[i] + 2.0 * m[i]) * nodes[-1])
    return [*nodes, root_sine(10.0 * a[3]) * nodes[-1]]


def rosenbrock_penny(a: np.ndarray, m: np.ndarray) -> Nodes:
    shrink = 0.99 * m + 0.005
    nodes = [valley(a[0], a[1]) + 10.0]
    for i in (1, 2):
        nodes.append((valley(a[i], a[i + 1]) + 10.0 + nodes[-1]) * shrink[i - 1])
    return nodes


def rosenbrock_perturb(a: np.ndarray, m: np.ndarray) -> Nodes:
    x = 4.0 * (a - 0.5)
    x[1:3] -= 2.0 * (m - 0.5)
    return np.cumsum([valley(x[i], x[i + 1]) for i in range(3)]).tolist()


def ackley_of(x: np.ndarray, sign: float) -> Nodes:
    square, cosine = np.mean(x**2), np.mean(np.cos(2.0 * np.pi * x))
    return [square, cosine, 20.0 * np.exp(-0.2 * np.sqrt(square)) * sign + np.exp(cosine) - 20.0 - np.e]


def ackley_penny(a: np.ndarray, m: np.ndarray) -> Nodes:
    return ackley_of(4.0 * (a - 0.5), 2.0 * (0.99 * m[0] + 0.005 - 0.5))


def ackley_perturb(a: np.ndarray, m: np.ndarray) -> Nodes:
    x = 4.0 * (a - 0.5)
    x[:2] += 2.0 * (m - 0.5)
    return ackley_of(x, 1.0)


GAMES = {
    "CBO/Dropwave-Penny-v0": (dropwave_penny, 2, 1),
    "CBO/Dropwave-Perturb-v0": (dropwave_perturb, 2, 1),
    "CBO/Alpine2-Penny-v0": (alpine2_penny, 3, 1),
    "CBO/Alpine2-Perturb-v0": (alpine2_perturb, 4, 3),
    "CBO/Rosenbrock-Penny-v0": (rosenbrock_penny, 4, 2),
    "CBO/Rosenbrock-Perturb-v0": (rosenbrock_perturb, 4, 2),
    "CBO/Ackley-Penny-v0": (ackley_penny, 4, 1),
    "CBO/Ackley-Perturb-v0": (ackley_perturb, 4, 2),
}


@pytest.mark.parametrize(("env_id", "simulated", "q", "k"), [(i, *game) for i, game in GAMES.items()], ids=GAMES)
def test_rounds_are_those_of_the_equations(
    env_id: str, simulated: Callable[[np.ndarray, np.ndarray], Nodes], q: int, k: int
) -> None:
    every = [
        simulated(np.array(a), np.array(m))[-1] for a in product(LEVELS, repeat=q) for m in product(LEVELS, repeat=k)
    ]
    low, high = min(every), max(every)
    env = reset(gym.make(env_id, max_episode_steps=None), 0, 0)
    for _ in range(60):
        action = env.action_space.sample()
        observation, reward, _, _, _ = env.step(action)
        *others, last = simulated(action.copy(), observation["adversary"])
        np.testing.assert_allclose(observation["nodes"][:-1], others, rtol=1e-10, atol=1e-10)
        assert reward == pytest.approx((last - low) / (high - low), abs=1e-10)


def game(adversary: Adversary, noise: object = None, observed: bool = False) -> Problem:
    randomness = Variable("randomness", own_noise, noise=noise or Uniform(0.0, 1.0), observed=observed)
    scm = StructuralCausalModel([randomness, Variable("Y", lambda x, z, u: 0.5 * (x + z) + u, (), (0, 1))], "Y")
    return Problem("Sum", scm, "A sum.", "None.", action_domains=[(0.0, 1.0)] * 2, modes=[adversary])


def test_a_custom_game() -> None:
    env = reset(gym.make("CBO/Custom-Adversarial-v0", problem=game(Adversary(1, levels=3)), adversary="fixed"))
    observation, reward, _, _, info = env.step(np.array([0.5]))
    assert (reward, observation["adversary"].tolist()) == (0.25, [0.0])
    assert info["intervention"] == {"Y": 0.5}


@pytest.mark.parametrize(
    ("adversary", "keywords", "message"),
    [
        (Adversary(0), {}, "the adversary's coordinates must be at least 1; given 0"),
        (Adversary(2), {}, "may have all but one; given 2"),
        (Adversary(1, levels=1), {}, "levels must be at least 2; given 1"),
        (Adversary(1, levels=2**11), {}, "make 4194304 pairs of an action and a move"),
        (Adversary(1, randomness="Y"), {}, "'Y' must be a latent variable"),
        (Adversary(1), {"noise": Normal(0.0, 1.0)}, "'randomness' must be a latent variable"),
        (Adversary(1), {"observed": True}, "'randomness' must be a latent variable"),
    ],
)
def test_what_cannot_be_played_is_refused(adversary: Adversary, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        game(adversary, **keywords)

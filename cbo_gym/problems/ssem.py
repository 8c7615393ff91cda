"""Random separable SEMs of Bauschmann & Maghsudi (2026): masked problems on acyclic graphs, by instance seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import Interval, Problem, SuperArms, gaussian_noise
from cbo_gym.scm import (
    Arcsine,
    Component,
    Distribution,
    DistributionFamily,
    Intervention,
    Linear,
    Periodic,
    Polynomial,
    SeparableSEM,
    Tanh,
    Total,
    TruncatedNormal,
)

CITATION = "Bauschmann & Maghsudi (2026), Graph structured combinatorial semi-bandit, sec. V-A and appendix G1"
SUPER_ARM_SIZE = 6
SIGNAL_ERROR = 0.02
NODE_ERROR = 0.02  # of the mean reward
LEAST_REMAINDER = 0.1  # of the largest mean reward
MOST_ATTEMPTS = 1000
TRIED_ARMS, TRIED_SIGNALS = 256, 64  # in the acceptance test
STEP = 1e-4  # of the central differences there

Mask = Literal["exogenous", "endogenous"]
Feedback = Literal["all", "selected"]


@dataclass(frozen=True, eq=False)  # hashed by identity, as a key of the cache of instances
class _Family:
    """What the instances of one problem have in common; each edge is one of ``components`` times a coefficient."""

    name: str
    description: str
    arms: int
    density: float
    coefficients: Interval
    components: tuple[Component, ...]
    signals: DistributionFamily
    signal_range: Interval


_NORMAL = DistributionFamily(TruncatedNormal, {"location": (0.3, 0.7), "scale": (0.1, 0.4)})
_QUADRATIC = Polynomial((0.0, 1.0))
_ARCSINE = DistributionFamily(Arcsine, {"mean": (1.0, 1.5), "std": (0.2, 0.6)})
_PERIODIC = _Family(
    "SSEMPeriodic", "Ten base arms on a random acyclic graph with linear and periodic edges.",
    10, 0.2, (0.4, 0.7), (Linear(), Periodic()), _NORMAL, (0.0, 1.0),
)  # fmt: skip
_TANH = _Family(
    "SSEMTanh", "Ten base arms on a random acyclic graph with linear, quadratic and hyperbolic tangent edges.",
    10, 0.2, (0.4, 0.7), (Linear(), _QUADRATIC, Tanh()), _NORMAL, (0.0, 1.0),
)  # fmt: skip
_ARC = _Family(
    "SSEMArcsine", "Fifteen base arms with arcsine signals, sparse linear, quadratic and hyperbolic tangent edges.",
    15, 0.15, (0.05, 0.15), (Linear(), _QUADRATIC, Tanh()), _ARCSINE,
    (1.0 - 0.6 * 2.0**0.5, 1.5 + 0.6 * 2.0**0.5),
)  # fmt: skip


@dataclass(frozen=True)
class _Instance:
    signals: tuple[Distribution, ...]
    components: dict[tuple[int, int], Component]
    mean_reward: float  # over super arms of the largest size


@lru_cache(maxsize=64)
def _instance(family: _Family, seed: int) -> _Instance:
    """The first accepted draw of a seed's random stream.

    Accepted is a system whose payoff, on average over super arms and signals, strays in absolute value from its
    first-degree Taylor polynomial about the signals' means by more than a tenth of the largest mean reward.
    """
    rng = np.random.default_rng(seed)
    for _ in range(MOST_ATTEMPTS):
        signals = tuple(family.signals.draw(rng) for _ in range(family.arms))
        components = _draw_edges(family, rng)
        sem = SeparableSEM(signals, components)
        rewards, remainders = _rewards_and_remainders(sem, rng)
        means = rewards.mean(axis=1)
        if remainders.mean() > LEAST_REMAINDER * means.max():
            return _Instance(signals, components, float(means.mean()))
    raise ArgumentError(f"{family.name}: no instance of seed {seed} is nonlinear enough in {MOST_ATTEMPTS} draws")


def _draw_edges(family: _Family, rng: np.random.Generator) -> dict[tuple[int, int], Component]:
    """Each pair of nodes is joined with the probability ``density``, the arm of the smaller index as the cause."""
    components = {}
    for effect in range(family.arms):
        for cause in range(effect):
            if rng.random() < family.density:
                component = family.components[rng.integers(len(family.components))]
                components[effect, cause] = component.scaled(rng.uniform(*family.coefficients))
    return components


def _rewards_and_remainders(sem: SeparableSEM, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and absolute remainders of the Taylor polynomial, shape (super arms, draws of the signals).

    The polynomial is that of the payoff as a function of z, of the first degree about the signals' means. The super
    arms are random ones of the largest size.
    """
    n = sem.action_dim
    chosen = rng.random((n, TRIED_ARMS, 1)).argsort(axis=0) < SUPER_ARM_SIZE
    driving = chosen * np.array(sem.draw_noise(rng, TRIED_SIGNALS))[:, None, :]
    means = np.array([signal.mean for signal in sem.signals])

    def payoff(driving: np.ndarray) -> Any:
        return sem.propagate(tuple(driving), Intervention((1.0,) * n))[sem.reward]

    steps = np.concatenate([np.zeros((n, 1)), STEP * np.eye(n), -STEP * np.eye(n)], axis=1)
    middle, *beside = payoff(means[:, None] + steps)
    gradient = (np.array(beside[:n]) - np.array(beside[n:])) / (2.0 * STEP)
    linear = middle + np.tensordot(gradient, driving - means[:, None, None], axes=1)
    rewards = payoff(driving)
    return rewards, np.abs(rewards - linear)


def _problem(
    family: _Family,
    instance_seed: int,
    activation: Component | None,
    payoff: Component | None,
    mask: Mask,
    feedback: Feedback,
    model_noise_std: float,
) -> Problem:
    if isinstance(instance_seed, bool) or not isinstance(instance_seed, int) or instance_seed < 0:
        raise ArgumentError(f"instance_seed must be a whole number of at least 0; given {instance_seed!r}")
    for name, function in (("activation", activation), ("payoff", payoff)):
        if not isinstance(function, Component | None):
            raise ArgumentError(f"{name} must be None or a Component such as Tanh(); given {function!r}")
    instance = _instance(family, instance_seed)
    sem = SeparableSEM(
        instance.signals,
        instance.components,
        activations=None if activation is None else [activation] * family.arms,
        payoff=Total(tuple(f"y{i}" for i in range(1, family.arms + 1)), payoff),
        mask=mask,
        feedback=feedback,
        model_noise=gaussian_noise(model_noise_std, "model_noise_std"),
        signal_noise=gaussian_noise(SIGNAL_ERROR),
        node_noise=gaussian_noise(NODE_ERROR * abs(instance.mean_reward)),
    )
    return Problem(
        name=family.name,
        scm=sem,
        description=family.description,
        citation=CITATION,
        action_domains=[(0.0, 1.0)] * family.arms,
        composition=sem.payoff,
        noise_known=False,
        super_arms=SuperArms(
            size=SUPER_ARM_SIZE,
            exogenous=sem.exogenous,
            signal_range=family.signal_range,
            signal_family=family.signals,
            components=family.components,
        ),
    )


def ssem_periodic(
    instance_seed: int = 0,
    activation: Component | None = None,
    payoff: Component | None = None,
    mask: Mask = "exogenous",
    feedback: Feedback = "all",
    model_noise_std: float = 0.0,
) -> Problem:
    """SSEMPeriodic: 10 base arms, super arms of up to 6, edges ``c y`` or ``c sin(2 pi y)``, c in [0.4, 0.7].

    The signals are normal, cut to [0, 1], with location in [0.3, 0.7] and scale in [0.1, 0.4].

    Args:
        instance_seed: draws the graph, the functions and the signals' distributions, at least 0.
        activation: G, the same for every node; None for the identity.
        payoff: h of every node; None for the identity.
        mask: ``"exogenous"``, the super arm lets signals through; or ``"endogenous"``, nodes count in the payoff.
        feedback: ``"all"`` nodes are seen, or those of the ``"selected"`` arms only, the others as 0.
        model_noise_std: standard deviation of the noise in the equation of each node.
    """
    return _problem(_PERIODIC, instance_seed, activation, payoff, mask, feedback, model_noise_std)


def ssem_tanh(
    instance_seed: int = 0,
    activation: Component | None = None,
    payoff: Component | None = None,
    mask: Mask = "exogenous",
    feedback: Feedback = "all",
    model_noise_std: float = 0.0,
) -> Problem:
    """SSEMTanh: as SSEMPeriodic with edges ``c y``, ``c y^2`` or ``c tanh(y)``; see :func:`ssem_periodic`."""
    return _problem(_TANH, instance_seed, activation, payoff, mask, feedback, model_noise_std)


def ssem_arcsine(
    instance_seed: int = 0,
    activation: Component | None = None,
    payoff: Component | None = None,
    mask: Mask = "exogenous",
    feedback: Feedback = "all",
    model_noise_std: float = 0.0,
) -> Problem:
    """SSEMArcsine: 15 base arms, the edges of SSEMTanh with c in [0.05, 0.15]; see :func:`ssem_periodic`.

    The signals follow arcsine distributions with mean in [1, 1.5] and standard deviation in [0.2, 0.6].
    """
    return _problem(_ARC, instance_seed, activation, payoff, mask, feedback, model_noise_std)

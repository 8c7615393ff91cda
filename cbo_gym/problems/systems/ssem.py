"""Random separable SEMs of Bauschmann & Maghsudi (2026), for masked mode: acyclic graphs, drawn by ``instance_seed``.

In a separable SEM a node is the sum of its own signal and of functions of single parents. A super arm selects up to six
base arms, whose signals enter the system; the reward is the sum of the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from cbo_gym._util.arguments import require_word, whole_number
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import Interval, Problem, gaussian_noise
from cbo_gym.problems.modes.masked import SuperArms
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
# Standard deviation of the errors of the observed nodes, as a share of the mean reward.
NODE_ERROR = 0.02
# Least mean error of the Taylor polynomial of an accepted draw, as a share of the largest mean reward.
MIN_REMAINDER = 0.1
MAX_ATTEMPTS = 1000
# Numbers of super arms and of draws of the signals in the acceptance test.
TRIED_ARMS, TRIED_SIGNALS = 256, 64
# Step of the central differences in the acceptance test.
STEP = 1e-4

Mask = Literal["exogenous", "endogenous"]
#: Values of the signals at which a payoff is expanded: the means of all signals, or 0 for those not selected.
Centre = Literal["means", "masked means"]
Feedback = Literal["all", "selected"]


# Hashed by identity, as a key of the cache of instances.
@dataclass(frozen=True, eq=False)
class _Family:
    """The distribution of a problem's random instances; each edge is one of ``components`` times a coefficient."""

    name: str
    description: str
    arms: int
    density: float
    coefficients: Interval
    components: tuple[Component, ...]
    signals: DistributionFamily
    signal_range: Interval
    # Centre of the Taylor polynomials in the acceptance test.
    centre: Centre = "means"


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
_FAMILIES: dict[Centre, dict[str, _Family]] = {
    "means": {family.name: family for family in (_PERIODIC, _TANH, _ARC)},
    # In the published ranges no tanh or arcsine system is accepted about the masked means. Coefficients of both
    # signs make the payoff nonlinear; positive ones of that size would make it grow without bound.
    "masked means": {
        "SSEMPeriodic": replace(_PERIODIC, centre="masked means"),
        "SSEMTanh": replace(_TANH, centre="masked means", coefficients=(-2.0, 2.0)),
        "SSEMArcsine": replace(_ARC, centre="masked means", coefficients=(-1.2, 1.2)),
    },
}


@dataclass(frozen=True)
class _Instance:
    signals: tuple[Distribution, ...]
    components: dict[tuple[int, int], Component]
    # Mean reward over super arms of the largest size.
    mean_reward: float


@lru_cache(maxsize=64)
def draw_instance(family: _Family, seed: int) -> _Instance:
    """Return the first accepted draw of a seed's random stream.

    A draw is accepted if it is nonlinear enough: on average over super arms and signals, the payoff differs from its
    first-degree Taylor polynomial by more than a tenth of the largest mean reward. The polynomial is centred at the
    means of all signals, or at the masked means, as agents use it: the means of the super arm's signals, and 0 for the
    other signals. With masked means, the lowest mean reward of a super arm must also be above minus the highest one;
    otherwise a few rounds with very bad super arms would decide every comparison of agents.
    """
    rng = np.random.default_rng(seed)
    for _ in range(MAX_ATTEMPTS):
        signals = tuple(family.signals.draw(rng) for _ in range(family.arms))
        components = _draw_edges(family, rng)
        sem = SeparableSEM(signals, components)
        rewards, remainders = _rewards_and_remainders(sem, rng, family.centre)
        means = rewards.mean(axis=1)
        is_lopsided = family.centre == "masked means" and means.min() < -means.max()
        if remainders.mean() > MIN_REMAINDER * means.max() and not is_lopsided:
            return _Instance(signals, components, float(means.mean()))
    raise ArgumentError(f"{family.name}: no instance of seed {seed} is nonlinear enough in {MAX_ATTEMPTS} draws")


def _draw_edges(family: _Family, rng: np.random.Generator) -> dict[tuple[int, int], Component]:
    """Join each pair of nodes with probability ``density``; the arm with the smaller index is the cause."""
    components = {}
    for effect in range(family.arms):
        for cause in range(effect):
            if rng.random() < family.density:
                component = family.components[rng.integers(len(family.components))]
                components[effect, cause] = component.multiply(rng.uniform(*family.coefficients))
    return components


def _rewards_and_remainders(
    sem: SeparableSEM, rng: np.random.Generator, centre: Centre
) -> tuple[np.ndarray, np.ndarray]:
    """Return rewards and absolute errors of the Taylor polynomial, shape (super arms, draws of the signals).

    The polynomial is the first-degree one of the payoff as a function of the selected signals. The super arms are drawn
    at random from those of the largest size.
    """
    n = sem.action_dim
    is_selected = rng.random((n, TRIED_ARMS, 1)).argsort(axis=0) < SUPER_ARM_SIZE
    # Shape (arms, super arms, draws), as the argument of payoff.
    signals = is_selected * np.array(sem.draw_noise(rng, TRIED_SIGNALS))[:, None, :]
    means = np.array([signal.mean for signal in sem.signals])[:, None, None]
    if centre == "masked means":
        means = is_selected * means

    def payoff(signals: np.ndarray) -> Any:
        return sem.propagate(tuple(signals), Intervention((1.0,) * n))[sem.reward]

    steps = np.concatenate([np.zeros((n, 1)), STEP * np.eye(n), -STEP * np.eye(n)], axis=1)
    # Shape (super arms or 1, steps).
    values = payoff(means + steps[:, None, :])
    gradient = (values[:, 1 : n + 1] - values[:, n + 1 :]) / (2.0 * STEP)
    linear = values[:, :1] + np.einsum("ai,iad->ad", np.broadcast_to(gradient, (TRIED_ARMS, n)), signals - means)
    rewards = payoff(signals)
    return rewards, np.abs(rewards - linear)


def _problem(
    name: str,
    instance_seed: int,
    centre: Centre,
    activation: Component | None,
    payoff: Component | None,
    mask: Mask,
    feedback: Feedback,
    model_noise_std: float,
) -> Problem:
    instance_seed = whole_number("instance_seed", instance_seed, at_least=0)
    require_word("nonlinear_about", centre, sorted(_FAMILIES))
    family = _FAMILIES[centre][name]
    for argument, function in (("activation", activation), ("payoff", payoff)):
        if not isinstance(function, Component | None):
            raise ArgumentError(f"{argument} must be None or a Component such as Tanh(); given {short_repr(function)}")
    instance = draw_instance(family, instance_seed)
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
        modes=[
            SuperArms(
                size=SUPER_ARM_SIZE,
                exogenous=sem.exogenous,
                signal_range=family.signal_range,
                signal_family=family.signals,
                components=family.components,
            )
        ],
    )


def ssem_periodic(
    instance_seed: int = 0,
    activation: Component | None = None,
    payoff: Component | None = None,
    mask: Mask = "exogenous",
    feedback: Feedback = "all",
    model_noise_std: float = 0.0,
    nonlinear_about: Centre = "means",
) -> Problem:
    """SSEMPeriodic: 10 base arms, super arms of up to 6, edges ``c y`` or ``c sin(2 pi y)``, c in [0.4, 0.7].

    The signals are normal, cut to [0, 1], with location in [0.3, 0.7] and scale in [0.1, 0.4].

    Args:
        instance_seed: seed of the graph, the functions and the signals' distributions, at least 0.
        activation: G, the same for every node; None for the identity.
        payoff: h, which is applied to each node before they are summed; None for the identity.
        mask: the super arm selects signals, ``"exogenous"``; or nodes that count in the payoff, ``"endogenous"``.
        feedback: ``"all"`` to observe all nodes; ``"selected"`` to observe the nodes of other arms as 0.
        model_noise_std: standard deviation of the noise in the equation of each node.
        nonlinear_about: the point of a tangent plane from which the payoff of an accepted instance differs on average
            by more than a tenth of the largest mean reward: the ``"means"`` of all signals, or the ``"masked means"``
            of each super arm, for which SSEMTanh has c in [-2, 2] and SSEMArcsine c in [-1.2, 1.2].
    """
    return _problem("SSEMPeriodic", instance_seed, nonlinear_about, activation, payoff, mask, feedback, model_noise_std)


def ssem_tanh(
    instance_seed: int = 0,
    activation: Component | None = None,
    payoff: Component | None = None,
    mask: Mask = "exogenous",
    feedback: Feedback = "all",
    model_noise_std: float = 0.0,
    nonlinear_about: Centre = "means",
) -> Problem:
    """SSEMTanh: as SSEMPeriodic with edges ``c y``, ``c y^2`` or ``c tanh(y)``; see :func:`ssem_periodic`."""
    return _problem("SSEMTanh", instance_seed, nonlinear_about, activation, payoff, mask, feedback, model_noise_std)


def ssem_arcsine(
    instance_seed: int = 0,
    activation: Component | None = None,
    payoff: Component | None = None,
    mask: Mask = "exogenous",
    feedback: Feedback = "all",
    model_noise_std: float = 0.0,
    nonlinear_about: Centre = "means",
) -> Problem:
    """SSEMArcsine: 15 base arms, the edges of SSEMTanh with c in [0.05, 0.15]; see :func:`ssem_periodic`.

    The signals follow arcsine distributions with mean in [1, 1.5] and standard deviation in [0.2, 0.6].
    """
    return _problem("SSEMArcsine", instance_seed, nonlinear_about, activation, payoff, mask, feedback, model_noise_std)

"""Function networks with multimodal exogenous noise (Ren et al. 2024, sec. 7 and 11).

The mechanisms are those of :mod:`cbo_gym.problems.systems.function_networks`; new is the noise, and how it enters:
added (Dropwave-GMM), multiplied by a function of the parents (Alpine2-DGM, a decomposable generation mechanism), or
inside the mechanism (Alpine2-NonDGM). The paper gives only ranges for most constants of the mixtures; the builders have
no defaults for them, and the registry's entries hold what was chosen.

Agents are not told the noise. EXCBO learns it; methods that assume normal noise fit its standard deviation, as they do
in the paper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbo_gym.arguments import require_positive
from cbo_gym.problems.base import MixtureComponents, Problem, mixture_noise, non_negative
from cbo_gym.problems.systems.function_networks import alpine_factor, norm, ripple
from cbo_gym.scm import Distribution, Floats, StructuralCausalModel, Variable

PAPER = "Ren, Wang, Chen & Qian (2024), Causal Bayesian optimization via exogenous distribution learning"


def dropwave_gmm(
    *, radius_noise: MixtureComponents, reward_noise: MixtureComponents, noise_std: float, noise_scale: float = 1.0
) -> Problem:
    """Dropwave with multimodal noise on the radius and on the reward (sec. 7.2, 11.2).

    Args:
        radius_noise: ``(weight, mean, c)`` of each component of the radius' noise, see
            :func:`~cbo_gym.problems.base.mixture_noise`.
        reward_noise: the same for the reward's noise.
        noise_std: sigma; 0.1 and 0.3 in the paper.
        noise_scale: lambda; 1, 2 and 3 in the paper.

    Raises:
        ArgumentError: if the noise is invalid.
    """
    variables = [
        Variable("X0", norm, (), (0, 1), mixture_noise(radius_noise, noise_std, noise_scale)),
        Variable("Y", ripple, ("X0",), (), mixture_noise(reward_noise, noise_std, noise_scale)),
    ]
    return Problem(
        name="Dropwave-GMM",
        scm=StructuralCausalModel(variables, reward="Y"),
        description="Dropwave with noise of several modes on the radius and on the reward.",
        citation=f"{PAPER}, sec. 7.2 and 11.2",
        action_domains=[(-5.12, 5.12)] * 2,
        noise_known=False,
    )


def _alpine2(
    name: str,
    description: str,
    citation: str,
    first: Callable[..., Floats],
    following: Callable[..., Floats],
    noise: Distribution,
) -> Problem:
    names = [f"X{i}" for i in range(5)] + ["Y"]
    variables = [Variable(names[0], first, (), (0,), noise)]
    variables += [Variable(names[i], following, (names[i - 1],), (i,), noise) for i in range(1, 6)]
    return Problem(
        name=name,
        scm=StructuralCausalModel(variables, reward="Y"),
        description=description,
        citation=citation,
        action_domains=[(0.0, 10.0)] * 6,
        null_action=(0.5,) * 6,
        noise_known=False,
    )


def _dgm_first(x: Floats, u: Floats) -> Floats:
    square = u * u
    return (np.cos(x) + 1.2) * square * square - alpine_factor(x)


def _dgm_next(previous: Floats, x: Floats, u: Floats) -> Floats:
    square = u * u
    spread = previous * previous + 1.2 + np.cos(x)
    return alpine_factor(x) * previous + 0.1 * square * square * spread


def alpine2_dgm(*, noise: MixtureComponents, noise_std: float, noise_scale: float = 1.0) -> Problem:
    """Alpine2 whose noise is scaled by a function of action and parent (Eq. 7).

    With f(x) = sqrt(x) sin(x) and x = 10 a: X0 = -f(x0) + (cos x0 + 1.2) lambda U0^4, then
    Xi = f(xi) X(i-1) + 0.1 (cos xi + X(i-1)^2 + 1.2) lambda Ui^4. The exogenous variables are lambda^(1/4) Ui, whose
    fourth powers are lambda Ui^4. The square of the parent makes the reward's tail heavy: mixtures much wider than the
    registered one leave an expectation that nothing can estimate. The fourth power folds components with opposite
    means onto each other, so two of them differ by their spread alone.

    Args:
        noise: ``(weight, mean, c)`` of each component of every Ui.
        noise_std: sigma; 0.05, 0.2 and 0.4 in the paper.
        noise_scale: lambda, which multiplies U^4; 0.3 and 1 in the paper.

    Raises:
        ArgumentError: if the noise is invalid.
    """
    require_positive("noise_scale", noise_scale)
    return _alpine2(
        "Alpine2-DGM",
        "Alpine2 whose noise, a fourth power, is scaled by a function of action and parent.",
        f"{PAPER}, sec. 7.3 and 11.3.1",
        _dgm_first,
        _dgm_next,
        mixture_noise(noise, noise_std, noise_scale**0.25),
    )


def _shifted_factor(x: Floats, u: Floats) -> Floats:
    return alpine_factor(non_negative(x + u))


def _nondgm_first(x: Floats, u: Floats) -> Floats:
    return -_shifted_factor(x, u)


def _nondgm_next(previous: Floats, x: Floats, u: Floats) -> Floats:
    return _shifted_factor(x, u) * previous


def alpine2_nondgm(*, noise: MixtureComponents, noise_std: float) -> Problem:
    """Alpine2 with the noise inside the mechanism: f(max(10 a + U, 0)) in place of f(10 a) (Eq. 8).

    The paper leaves open what happens where 10 a + U is negative; here it counts as 0.

    Args:
        noise: ``(weight, mean, c)`` of each component of every Ui.
        noise_std: sigma; 0.05, 0.1 and 0.2 in the paper.

    Raises:
        ArgumentError: if the noise is invalid.
    """
    return _alpine2(
        "Alpine2-NonDGM",
        "Alpine2 with noise added to the actions, inside the factors.",
        f"{PAPER}, sec. 11.4",
        _nondgm_first,
        _nondgm_next,
        mixture_noise(noise, noise_std),
    )

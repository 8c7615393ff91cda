"""Function networks with multimodal exogenous noise (Ren et al. 2024, sec. 7 and 11).

The mechanisms are those of :mod:`cbo_gym.problems.systems.function_networks` with other noise: Gaussian mixtures that
are added (Dropwave-GMM), multiplied by a function of the parents (Alpine2-DGM, a decomposable generation mechanism), or
inside the mechanism (Alpine2-NonDGM). The paper gives only ranges for most constants of the mixtures; the builders have
no defaults for them, and ``envs_registry.yaml`` holds our choice.

Agents do not know the noise. EXCBO learns it; methods that assume normal noise fit its standard deviation, as they do
in the paper.
"""

from __future__ import annotations

from itertools import pairwise

from cbo_gym._util.arguments import require_positive
from cbo_gym.problems.base import MixtureComponents, Problem, mixture_noise
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.problems.systems.function_networks import ALPINE2_NODES, DISTANCE, RIPPLE
from cbo_gym.scm import Distribution, StructuralCausalModel

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
    """
    noise = {
        "X0": mixture_noise(radius_noise, noise_std, noise_scale),
        "Y": mixture_noise(reward_noise, noise_std, noise_scale),
    }
    variables = read_equations({"X0": f"{DISTANCE} + u", "Y": RIPPLE}, noise, actions="xy")
    return Problem(
        name="Dropwave-GMM",
        scm=StructuralCausalModel(variables, reward="Y"),
        description="Dropwave with noise of several modes on the radius and on the reward.",
        citation=f"{PAPER}, sec. 7.2 and 11.2",
        action_domains=[(-5.12, 5.12)] * 2,
        noise_known=False,
    )


def _alpine2(name: str, description: str, citation: str, first: str, following: str, noise: Distribution) -> Problem:
    """Return a problem from the equations of the first and the other nodes, with action ``{x}`` and parent ``{X}``."""
    equations = {"X0": first.format(x="a0")}
    for i, (previous, node) in enumerate(pairwise(ALPINE2_NODES), start=1):
        equations[node] = following.format(x=f"a{i}", X=previous)
    variables = read_equations(equations, noise, actions=[f"a{i}" for i in range(6)])
    return Problem(
        name=name,
        scm=StructuralCausalModel(variables, reward="Y"),
        description=description,
        citation=citation,
        action_domains=[(0.0, 10.0)] * 6,
        null_action=(0.5,) * 6,
        noise_known=False,
    )


def alpine2_dgm(*, noise: MixtureComponents, noise_std: float, noise_scale: float = 1.0) -> Problem:
    """Alpine2 whose noise is scaled by a function of action and parent (Eq. 7).

    With f(x) = sqrt(x) sin(x) and x = 10 a: X0 = -f(x0) + (cos x0 + 1.2) lambda U0^4, then
    Xi = f(xi) X(i-1) + 0.1 (cos xi + X(i-1)^2 + 1.2) lambda Ui^4. The exogenous variables are lambda^(1/4) Ui, whose
    fourth powers are lambda Ui^4. The square of the parent makes the reward's tail heavy: with mixtures much wider than
    the registered one, samples cannot estimate the expected reward. The fourth power maps components with opposite
    means to the same distribution, so such components must differ in their spread.

    Args:
        noise: ``(weight, mean, c)`` of each component of every Ui.
        noise_std: sigma; 0.05, 0.2 and 0.4 in the paper.
        noise_scale: lambda, which multiplies U^4; 0.3 and 1 in the paper.
    """
    require_positive("noise_scale", noise_scale)
    return _alpine2(
        "Alpine2-DGM",
        "Alpine2 whose noise, a fourth power, is scaled by a function of action and parent.",
        f"{PAPER}, sec. 7.3 and 11.3.1",
        "(cos({x}) + 1.2) * (square := u * u) * square - {x}**0.5 * sin({x})",
        "{x}**0.5 * sin({x}) * {X} + 0.1 * (square := u * u) * square * ({X} * {X} + 1.2 + cos({x}))",
        mixture_noise(noise, noise_std, noise_scale**0.25),
    )


def alpine2_nondgm(*, noise: MixtureComponents, noise_std: float) -> Problem:
    """Alpine2 with the noise inside the mechanism: f(max(10 a + U, 0)) instead of f(10 a) (Eq. 8).

    The paper leaves open what happens where 10 a + U is negative; here it counts as 0.

    Args:
        noise: ``(weight, mean, c)`` of each component of every Ui.
        noise_std: sigma; 0.05, 0.1 and 0.2 in the paper.
    """
    return _alpine2(
        "Alpine2-NonDGM",
        "Alpine2 with noise added to the actions, inside the factors.",
        f"{PAPER}, sec. 11.4",
        "-((shifted := non_negative({x} + u)) ** 0.5 * sin(shifted))",
        "(shifted := non_negative({x} + u)) ** 0.5 * sin(shifted) * {X}",
        mixture_noise(noise, noise_std),
    )

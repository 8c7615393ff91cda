"""A problem's data for adversarial mode."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cbo_gym._util.arguments import whole_number
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import ModeData, Problem
from cbo_gym.problems.transform import Transform
from cbo_gym.scm import Uniform

# Largest number of pairs of an action and a move.
MAX_PAIRS = 2**20


@dataclass(frozen=True)
class Adversary(ModeData):
    """A second player with separate soft parameters, for the adversarial mode of a problem.

    Both players' coordinates take one of ``levels`` equally spaced values. The reward of the problem is in [0, 1], as
    the bounds of multiplicative weights require.

    Args:
        coordinates: number of soft parameters of the adversary, the last ones of the system.
        levels: values that each coordinate of either player may take.
        randomness: name of a latent U(0, 1) variable that affects no other, from which random moves are drawn.
    """

    coordinates: int
    levels: int = 4
    randomness: str = "randomness"

    def check(self, problem: Problem) -> None:
        coordinates = whole_number("the adversary's coordinates", self.coordinates, at_least=1)
        levels = whole_number("the adversary's levels", self.levels, at_least=2)
        agent_dim = problem.scm.action_dim - coordinates
        if agent_dim < 1:
            raise ArgumentError(
                f"of {problem.scm.action_dim} soft parameters the adversary may have all but one; given {coordinates}"
            )
        if (pairs := levels**problem.scm.action_dim) > MAX_PAIRS:
            raise ArgumentError(
                f"{levels} levels make {pairs} pairs of an action and a move; at most {MAX_PAIRS} are allowed"
            )
        latent = {v.name: v.noise for v in problem.scm.noisy if not v.observed}
        if latent.get(self.randomness) != Uniform(0.0, 1.0) or self.randomness in problem.scm.noise_of_reward:
            raise ArgumentError(
                f"{self.randomness!r} must be a latent variable without effects whose noise is "
                "Uniform(0, 1), the adversary's randomness"
            )
        if shared := {v.name for v in problem.scm.variables}.intersection(problem.domains.names[agent_dim:]):
            raise ArgumentError(f"{sorted(shared)} name variables and coordinates of the adversary")

    def transform(self, transform: Transform) -> Adversary:
        return replace(self, randomness=transform.names[self.randomness])

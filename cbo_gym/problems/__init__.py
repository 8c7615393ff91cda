"""The named benchmark systems, and how systems of one's own become problems."""

from cbo_gym.problems.base import Adversary, Contexts, Problem, SuperArms
from cbo_gym.problems.build import build_problem
from cbo_gym.problems.outcomes import Outcomes

__all__ = ["Adversary", "Contexts", "Outcomes", "Problem", "SuperArms", "build_problem"]

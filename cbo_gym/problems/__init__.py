"""The named benchmark systems, and custom problems."""

from cbo_gym.problems.base import Problem
from cbo_gym.problems.build import build_problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.problems.modes.discrete import Arms
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.problems.outcomes import Outcomes

__all__ = ["Adversary", "Arms", "Contexts", "Outcomes", "Problem", "Slices", "SuperArms", "build_problem"]

"""The benchmark problems: one file a family, each function builds a Problem."""

from cbo_gym.problems.base import Contexts, Problem, SuperArms, build_problem

__all__ = ["Contexts", "Problem", "SuperArms", "build_problem"]

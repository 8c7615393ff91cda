"""The benchmark problems: one file a family, each function builds a Problem."""

from cbo_gym.problems.base import Problem, SuperArms, build_problem

__all__ = ["Problem", "SuperArms", "build_problem"]

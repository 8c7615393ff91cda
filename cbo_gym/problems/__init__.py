"""The benchmark problems: one file a family, each function builds a Problem."""

from cbo_gym.problems.base import Contexts, Problem, build_problem

__all__ = ["Contexts", "Problem", "build_problem"]

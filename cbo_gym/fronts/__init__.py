"""Sets of reward vectors: which are Pareto-optimal, how much they dominate, how far they are from a front.

All is maximised. Vectors are the rows of arrays of shape ``(n, m)``, one column an objective. Pure functions; methods
that are free to use them know nothing of a problem.
"""

from cbo_gym.fronts.measures import (
    generational_distance_plus,
    hypervolume,
    inverted_generational_distance_plus,
    non_dominated,
    spread_out,
)
from cbo_gym.fronts.search import ParetoSet, search_pareto_set

__all__ = [
    "ParetoSet",
    "generational_distance_plus",
    "hypervolume",
    "inverted_generational_distance_plus",
    "non_dominated",
    "search_pareto_set",
    "spread_out",
]

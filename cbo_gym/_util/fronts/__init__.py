"""Sets of reward vectors: Pareto dominance, hypervolume, distances to a front, and a search for the front.

All objectives are maximised. Vectors are the rows of arrays of shape ``(n, m)``, with a column per objective. The
functions are pure and independent of problems, so that methods may use them.
"""

from cbo_gym._util.fronts.measures import (
    generational_distance_plus,
    hypervolume,
    inverted_generational_distance_plus,
    non_dominated,
    spread_out,
)
from cbo_gym._util.fronts.search import ParetoSet, search_pareto_set

__all__ = [
    "ParetoSet",
    "generational_distance_plus",
    "hypervolume",
    "inverted_generational_distance_plus",
    "non_dominated",
    "search_pareto_set",
    "spread_out",
]

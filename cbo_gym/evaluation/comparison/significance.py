"""Significant differences of ranks: the Friedman test over environments, then Nemenyi's critical difference.

After Demsar (2006), Statistical Comparisons of Classifiers over Multiple Data Sets (JMLR 7), sec. 3.2.2: agents are
ranked on each environment by their mean score; two agents differ if their mean ranks differ by the critical difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase

import numpy as np
import polars as pl

from cbo_gym.evaluation.comparison.leaderboard import ALL_MODES, ENOUGH_SEEDS, Leaderboard, compared_over_envs
from cbo_gym.evaluation.metrics.aggregate import CONFIDENCE, MIN_SEEDS

FEWEST_AGENTS = FEWEST_ENVS = 3
TEST = (
    "Friedman test with the correction of Iman and Davenport on the agents' mean scores in each environment, then "
    "Nemenyi's critical difference of mean ranks, both at 5 % (Demsar 2006)"
)


@dataclass(frozen=True)
class Ranking:
    """Agents of a group in the order of their mean ranks over the environments, with the results of the tests.

    Attributes:
        group: group of the leaderboard.
        agents: agents that finished all environments of the group, the best first.
        ranks: mean rank of each agent, counted from 1, shape ``(agents,)``; ties share a rank.
        envs: number of environments.
        p_value: p-value of the Friedman test of the hypothesis that all agents are alike.
        critical_difference: difference of two mean ranks above which agents differ.
        groups: sets of indices of agents that do not differ, the best first; each agent is in at least one set.
    """

    group: str
    agents: tuple[str, ...]
    ranks: np.ndarray
    envs: int
    p_value: float
    critical_difference: float
    groups: tuple[tuple[int, ...], ...]

    @property
    def letters(self) -> dict[str, str]:
        """Agent -> letters of its groups, from a to z, then a1 and so on; agents without a common letter differ."""
        names = [f"{ascii_lowercase[number % 26]}{number // 26 or ''}" for number in range(len(self.groups))]
        return {
            agent: "".join(name for name, members in zip(names, self.groups, strict=True) if index in members)
            for index, agent in enumerate(self.agents)
        }

    @property
    def test_in_short(self) -> str:
        """Summary of the tests: their names, p and the critical difference."""
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"Friedman {p}; Nemenyi critical difference {self.critical_difference:.2f} at 5 %"


def ranking(board: Leaderboard, group: str) -> Ranking | str:
    """Rank a group's agents; return an explanation instead if there are too few agents or environments to test."""
    rows = compared_over_envs(board.per_env)
    if group != ALL_MODES:
        rows = rows.filter(pl.col("mode") == group)
    complete = board.overall.filter(pl.col("group") == group, pl.col("envs") == pl.col("of"), ENOUGH_SEEDS)
    agents, envs = complete["agent"].to_list(), int(board.overall.filter(pl.col("group") == group)["of"][0])
    if len(agents) < FEWEST_AGENTS or envs < FEWEST_ENVS:
        return (
            f"No test of differences: it needs {FEWEST_AGENTS} agents that finished {MIN_SEEDS} seeds on all of "
            f"{FEWEST_ENVS} environments or more; here {len(agents)} did on all {envs}."
        )
    rows = rows.filter(pl.col("agent").is_in(agents))
    scores = rows.pivot("agent", index="env", values="score").drop_nulls().select(agents)
    return rank(group, agents, scores.to_numpy())


def rank(group: str, agents: list[str], scores: np.ndarray) -> Ranking:
    """Rank agents by scores of shape ``(envs, agents)``, at least 3 of each, and test the differences."""
    # Imported here, because SciPy's tests take long to import.
    from scipy.stats import f, friedmanchisquare, rankdata

    envs, count = scores.shape
    ranks = rankdata(-scores, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    p_value = 1.0
    if not (scores == scores[:, :1]).all():
        statistic, largest = friedmanchisquare(*scores.T).statistic, envs * (count - 1)
        # Iman and Davenport's F, Demsar's F_F; if all environments agree, the divisor is 0 up to rounding.
        f_value = (envs - 1) * statistic / max(largest - statistic, 1e-12 * largest)
        p_value = float(f.sf(f_value, count - 1, (count - 1) * (envs - 1)))
    difference = _quantile(count) * float(np.sqrt(count * (count + 1) / (6 * envs)))
    groups = _groups(ranks[order], difference) if p_value < 1 - CONFIDENCE else (tuple(range(count)),)
    return Ranking(group, tuple(agents[k] for k in order), ranks[order], envs, p_value, difference, groups)


@cache
def _quantile(count: int) -> float:
    """Return the quantile of the studentized range of ``count`` ranks, in standard deviations of a difference."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(CONFIDENCE, count, np.inf) / np.sqrt(2))


def _groups(ranks: np.ndarray, difference: float) -> tuple[tuple[int, ...], ...]:
    """Return the largest groups of neighbours in ascending ranks that span less than the critical difference."""
    ends = np.searchsorted(ranks, ranks + difference, side="left")
    starts = [start for start in range(len(ranks)) if start == 0 or ends[start] > ends[start - 1]]
    return tuple(tuple(range(start, int(ends[start]))) for start in starts)

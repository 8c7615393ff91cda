import numpy as np
import pytest
from scipy import stats

from cbo_gym import leaderboard
from cbo_gym.evaluation.comparison.significance import Ranking, rank, ranking
from tests.support.runs import made_up_run


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_test_is_that_of_demsar(rng):
    scores = rng.normal(size=(14, 4)) + np.array([0.0, 0.5, 1.0, 2.5])
    found = rank("soft", list("ABCD"), scores)
    # his equation of F_F from Friedman's statistic; the critical value of Nemenyi's test for 4 agents is 2.569
    chi = stats.friedmanchisquare(*scores.T).statistic
    assert found.p_value == pytest.approx(stats.f.sf(13 * chi / (14 * 3 - chi), 3, 39))
    assert found.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)
    assert found.agents[0] == "D"
    assert found.ranks.sum() == pytest.approx(10)


def test_agents_that_do_not_differ_share_letters():
    scores = np.tile([3.0, 2.0, 1.0, 0.0], (6, 1))  # the critical difference is 1.91
    assert rank("soft", list("ABCD"), scores).letters == {"A": "a", "B": "ab", "C": "bc", "D": "c"}
    assert rank("soft", list("ABC"), np.zeros((3, 3))).letters == {"A": "a", "B": "a", "C": "a"}


def test_equal_agents_differ_in_about_five_percent_of_samples(rng):
    significant = sum(len(rank("soft", list("ABCDE"), rng.normal(size=(12, 5))).groups) > 1 for _ in range(400))
    assert significant / 400 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_too_few_agents_or_environments_are_not_tested():
    envs = [f"CBO/E{number}-v0" for number in range(3)]
    runs = [
        made_up_run(agent, seed, [score], env)
        for agent, score in zip("ABC", (0.1, 0.2, 0.3), strict=True)
        for env in envs
        for seed in range(5)
    ]
    found = ranking(leaderboard(runs), "soft")
    assert isinstance(found, Ranking)
    assert found.agents == ("C", "B", "A")
    assert "here 2 did on all 3" in ranking(leaderboard(runs[:-1]), "soft")
    assert "here 3 did on all 2" in ranking(leaderboard(runs, envs=envs[:2]), "soft")

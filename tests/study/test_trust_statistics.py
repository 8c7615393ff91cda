"""Whether forecasts hold and stated probabilities are right, over simulated studies of random systems."""

import numpy as np
import pytest

from tests.support.simulated_studies import Simulated, chances, count_covered, statements

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")]


@pytest.mark.parametrize(("agent", "mode"), [("GP-UCB", "soft"), ("CBO", "hard"), ("MCBO", "soft")])
def test_intervals_of_new_outcomes_cover_them(tmp_path, agent, mode):
    covered = []
    for seed in range(100, 120):
        covered += count_covered(Simulated(tmp_path, agent, mode, seed), 12, 5)
    for name in {name for name, _ in covered}:
        own = [was_covered for variable, was_covered in covered if variable == name]
        assert 0.9 <= np.mean(own) <= 0.98


@pytest.mark.parametrize(
    ("agent", "mode", "seeds", "every"),
    [
        ("GP-UCB", "soft", range(400, 440), 4),
        ("CBO", "hard", range(420, 460), 4),
        ("MCBO", "soft", range(300, 320), 6),
    ],
)
def test_the_stated_probability_of_a_better_action_is_right(tmp_path, agent, mode, seeds, every):
    """The lengthscales of the draws were chosen for GP-UCB, on seeds 300 to 399."""
    errors, bins = [], []
    for seed in seeds:
        stated = statements(Simulated(tmp_path, agent, mode, seed), 14, 6, every, (0.05, 0.15, 0.3, 0.6))
        probability, was_better = np.array(stated, dtype=float).T
        errors.append(probability - was_better)
        bins.append(np.digitize(probability, (1 / 3, 2 / 3)))
    for group in (np.ones_like(bins, dtype=bool), *(np.equal(bins, number) for number in range(3))):
        mean = np.mean(np.array(errors)[group])
        # Statements about one study depend on each other.
        deviations = np.where(group, errors - mean, 0.0).sum(axis=1)
        assert abs(mean) <= 0.1 + np.linalg.norm(deviations) / group.sum()


@pytest.mark.parametrize(("agent", "mode"), [("GP-UCB", "soft"), ("CBO", "hard"), ("MCBO", "soft")])
def test_the_stated_probability_of_becoming_the_recommendation_is_right(tmp_path, agent, mode):
    stated = [pair for seed in range(100, 120) for pair in chances(Simulated(tmp_path, agent, mode, seed), 14, 6)]
    probability, became = np.array(stated, dtype=float).T
    assert abs(np.mean(probability - became)) <= 0.1
    assert np.mean(became[probability > 0.5]) > np.mean(became[probability < 0.5])

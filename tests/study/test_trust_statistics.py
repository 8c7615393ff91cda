"""Whether forecasts hold over simulated studies of random systems."""

import numpy as np
import pytest

from tests.support.simulated_studies import Simulated, count_covered

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")]


@pytest.mark.parametrize(("agent", "mode"), [("GP-UCB", "soft"), ("CBO", "hard"), ("MCBO", "soft")])
def test_intervals_of_new_outcomes_cover_them(tmp_path, agent, mode):
    covered = []
    for seed in range(100, 120):
        covered += count_covered(Simulated(tmp_path, agent, mode, seed), 12, 5)
    for name in {name for name, _ in covered}:
        own = [was_covered for variable, was_covered in covered if variable == name]
        assert 0.9 <= np.mean(own) <= 0.98

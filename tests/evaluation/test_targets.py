"""How soon runs reach scores."""

import numpy as np
import pytest

from cbo_gym.evaluation import evaluate, leaderboard
from cbo_gym.evaluation.metrics.targets import has_targets, rounds_to, seconds_to, shares_reached
from cbo_gym.evaluation.report.contents import report_of
from cbo_gym.evaluation.report.plots import draw_targets
from tests.support.runs import made_up_run


def test_a_target_is_reached_in_the_first_round_whose_best_has_the_score():
    run = made_up_run("A", 0, [0.2, 0.85, 0.1, 0.96])
    assert rounds_to(run, (0.1, 0.5, 0.8, 0.9, 0.99)).tolist() == [1, 2, 2, 4, np.inf]
    assert seconds_to(run, (0.5,)) == pytest.approx([run.reset_seconds + 2 * run.seconds_a_round])
    np.testing.assert_allclose(
        shares_reached(np.array([1.0, 3.0, np.inf, 3.0]), np.array([0.5, 1.0, 3.0])), [0.0, 0.25, 0.75]
    )


def test_systems_over_time_have_no_targets():
    assert not has_targets(evaluate("Random", "CBO/DCBOStat-v0", 0, recommend="end", horizon=3))
    assert has_targets(made_up_run("A", 0, [0.5]))


def test_environments_count_alike_and_the_report_has_the_figure():
    runs = [made_up_run("A", seed, [0.1, 0.9], "CBO/E0-v0") for seed in range(3)]
    runs += [made_up_run("A", 0, [0.1, 0.1], "CBO/E1-v0"), made_up_run("Random", 0, [0.0, 0.0], "CBO/E1-v0")]
    figure = draw_targets(runs)
    assert [line.get_ydata()[-1] for line in figure.axes[0].lines] == [0.5, 0.0]
    assert {axis.get_xlabel() for axis in figure.axes} == {"Round", "Seconds of the agent"}
    assert "targets" in report_of(leaderboard(runs)).groups[0].figures

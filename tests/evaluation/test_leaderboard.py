from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from cbo_gym import leaderboard
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.leaderboard import half_width
from cbo_gym.evaluation.plots import choice_curves, regret_curves
from cbo_gym.evaluation.report import choice_rows, incomplete_rows, write_report


def made_up_run(agent, seed, rewards, env="CBO/Dropwave-v0"):
    """A run on an environment with optimum 1 and random value 0."""
    rewards = np.array(rewards, dtype=float)
    rounds = np.arange(1, len(rewards) + 1)
    table = pl.DataFrame(
        {
            "recommended_reward": rewards,
            "average_regret": np.cumsum(1 - rewards) / rounds,
            "simple_regret": 1 - rewards,
            "best_so_far_regret": np.minimum.accumulate(1 - rewards),
            "cumulative_regret": np.cumsum(1 - rewards),
            "average_reward": np.cumsum(rewards) / rounds,
            "act_seconds": np.full(len(rewards), 0.25),
            "update_seconds": np.full(len(rewards), 0.5),
        }
    )
    return Run(agent, env, seed, len(rewards), mode="soft", optimum=1.0, random_value=0.0, table=table)


def test_means_and_intervals_by_hand():
    runs = [made_up_run("A", seed, [0.0, last]) for seed, last in enumerate([0.2, 0.4, 0.6])]
    row = leaderboard(runs).per_env.row(0, named=True)
    assert row["seeds"] == 3
    assert row["simple_regret"] == pytest.approx(0.6)
    # the t quantile at 97.5 % with 2 degrees of freedom is 4.302653; the standard deviation is 0.2
    assert row["simple_regret_half"] == pytest.approx(4.302653 * 0.2 / np.sqrt(3), rel=1e-6)
    assert row["score"] == pytest.approx(0.4)
    assert row["average_score"] == pytest.approx(0.2)
    assert row["cumulative_regret"] == pytest.approx(1.6)
    assert row["seconds"] == pytest.approx(0.75)


def choosing_run(agent, seed, chosen, names=("{X1 | C}", "{X2 | C}", "{}")):
    run = made_up_run(agent, seed, [0.5] * len(chosen), env="CBO/CoCaFig1-v0")
    return replace(run, choices=names, table=run.table.with_columns(pl.Series("choice", chosen)))


def test_choices_are_counted():
    board = leaderboard(
        [choosing_run("A", 0, [0, 0, 1, 1]), choosing_run("A", 1, [0, 0, 0, 0]), made_up_run("B", 0, [1.0])]
    )
    assert board.choices["choice"].to_list() == ["{X1 | C}", "{X2 | C}"]  # what was never chosen is left out
    assert board.choices["frequency"].to_list() == [0.75, 0.25]
    # the t quantile at 97.5 % with 1 degree of freedom is 12.7062; the standard deviation is 0.5 / sqrt(2)
    assert board.choices["frequency_half"][0] == pytest.approx(12.7062 * 0.25, rel=1e-5)
    _, rows = choice_rows(board)
    assert rows[0][:3] == ["CBO/CoCaFig1-v0, T=4", "A", "{X1 | C}"]


def test_choices_in_the_report(tmp_path):
    runs = [choosing_run("A", 0, [0, 1, 1]), choosing_run("B", 0, [2, 2, 2])]
    page = write_report(leaderboard(runs), tmp_path)
    assert (tmp_path / "choices.png").stat().st_size > 5000
    assert "share of rounds" in page.read_text()
    assert page.read_text().count("data:image/png") == 2
    assert (tmp_path / "choices.csv").read_text().count("\n") == 1 + 3


def test_the_figure_of_choices_has_a_panel_an_agent_and_a_line_a_choice():
    figure = choice_curves([choosing_run("A", 0, [0, 1, 1]), choosing_run("B", 0, [2, 2, 2])])
    assert [len(axis.lines) for axis in figure.axes] == [2, 1]
    np.testing.assert_allclose(figure.axes[0].lines[1].get_ydata(), [0, 1 / 2, 2 / 3])
    assert choice_curves([made_up_run("A", 0, [1.0])]) is None


def test_the_score_of_a_recommendation_in_context_is_what_it_lacks():
    """A context that is worth 0.4 by itself: the recommendation earns 1.2, where 1.3 was possible."""
    run = made_up_run("A", 0, [0.5, 0.5])
    table = run.table.with_columns(recommended_reward=pl.lit(1.2), simple_regret=pl.lit(0.1))
    assert leaderboard([replace(run, table=table)]).per_env["score"][0] == pytest.approx(0.9)


def test_one_seed_has_no_interval():
    assert leaderboard([made_up_run("A", 0, [0.5])]).per_env["score_half"].to_list() == [None]


def test_half_width_covers_the_mean_in_95_percent_of_samples():
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(5, 20_000))
    inside = np.abs(draws.mean(axis=0) - 3.0) <= half_width(draws)
    assert abs(inside.mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 20_000)


def test_overall_averages_environments_and_brackets_the_mean():
    runs = [made_up_run("A", seed, [0.2 + 0.1 * seed]) for seed in range(4)]
    runs += [made_up_run("A", seed, [0.9], env="CBO/Ackley-v0") for seed in range(4)]
    runs += [made_up_run("B", seed, [0.1]) for seed in range(4)]
    overall = leaderboard(runs).overall
    assert overall["agent"].to_list() == ["A", "B"]
    assert overall["envs"].to_list() == [2, 1]
    row = overall.row(0, named=True)
    assert row["score"] == pytest.approx((0.35 + 0.9) / 2)
    assert row["score_low"] < row["score"] < row["score_high"]
    assert row["score_high"] - row["score_low"] < 0.15


def test_horizons_are_not_mixed():
    runs = [made_up_run("A", 0, [0.5]), made_up_run("A", 0, [0.5, 0.5])]
    assert leaderboard(runs).per_env["env"].to_list() == ["CBO/Dropwave-v0, T=1", "CBO/Dropwave-v0, T=2"]


def test_failed_and_skipped_are_shown():
    runs = [made_up_run("A", 0, [0.5])]
    runs += [Run("B", "CBO/Dropwave-v0", seed, 1, status="failed", error="Traceback\nboom") for seed in range(2)]
    runs += [Run("C", "CBO/ToyGraph-v0", seed, 1, status="skipped", error="C plays soft") for seed in range(2)]
    rows = incomplete_rows(leaderboard(runs))
    assert [what for what, _ in rows] == [
        "failed: B on CBO/Dropwave-v0, seed 0",
        "failed: B on CBO/Dropwave-v0, seed 1",
        "skipped: C on CBO/ToyGraph-v0",
    ]


def test_nothing_finished_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no finished run"):
        leaderboard(tmp_path)


def test_the_report_is_complete_and_escaped(tmp_path):
    runs = [made_up_run("<b>A</b>", seed, [0.3, 0.5]) for seed in range(3)]
    runs.append(Run("B", "CBO/Dropwave-v0", 0, 1, status="failed", error="boom & <bust>"))
    page = write_report(leaderboard(runs), tmp_path / "report").read_text()
    assert "<b>A</b>" not in page
    assert "&lt;b&gt;A&lt;/b&gt;" in page
    assert "boom &amp; &lt;bust&gt;" in page
    assert "data:image/png;base64," in page
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {"report.html", "regret.png", "overall.csv", "per_env.csv", "choices.csv"}
    assert pl.read_csv(tmp_path / "report" / "per_env.csv").height == 1


def test_curves_have_labels_and_one_legend_entry_an_agent():
    runs = [made_up_run(agent, seed, [0.3, 0.5]) for agent in "AB" for seed in range(2)]
    figure = regret_curves(runs)
    assert len(figure.axes) == 2
    assert all(axis.get_xlabel() and axis.get_ylabel() and axis.get_title() for axis in figure.axes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B"]

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from cbo_gym import leaderboard
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.comparison.significance import ranking
from cbo_gym.evaluation.report import plots
from cbo_gym.evaluation.report.curves import (
    choice_figure,
    choice_frequencies,
    choice_styles,
    curve,
    format_tick,
    log_limits,
    log_ticks,
)
from cbo_gym.evaluation.report.palette import line_style, line_styles
from cbo_gym.evaluation.runs.results import Run
from tests.support.runs import choosing_run, made_up_run


def test_a_band_needs_five_seeds_and_fewer_are_drawn_one_by_one():
    values = np.random.default_rng(0).normal(size=(20, 400))
    many, few, one = curve(values), curve(values[:4]), curve(values[:1])
    error = values.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.mean((many.high - many.low) / (2 * 1.96 * error)) == pytest.approx(1, abs=0.03)
    assert ((many.low < many.mean) & (many.mean < many.high)).all()
    np.testing.assert_array_equal(few.runs, values[:4])
    assert not len(many.runs)
    assert not len(one.runs)
    assert few.low is few.high is one.low is None
    assert curve(values[:5]).low is not None


@pytest.mark.parametrize(
    ("limits", "ticks"),
    [
        ((1e-4, 1.5), ["0.0001", "0.001", "0.01", "0.1", "1"]),
        ((0.2, 2.5), ["0.2", "0.5", "1", "2"]),
        ((1e-4, 3e3), ["0.0001", "0.01", "1", "100"]),
    ],
)
def test_logarithmic_axes_have_few_plain_ticks(limits, ticks):
    assert [format_tick(tick) for tick in log_ticks(*limits)] == ticks
    low, high = log_limits([np.array([0.5, 0.5])])
    assert high / low == pytest.approx(10)


def test_regrets_show_every_agent_in_its_look_with_the_legend_outside():
    runs = [made_up_run(agent, seed, [0.3, 0.5]) for agent in ("GPOO", "Random", "$x_y$") for seed in range(2)]
    runs.append(made_up_run("GPOO", 2, [0.3, 0.5]))
    failed = Run("GPOO", runs[0].env, 3, 2, "soft", "failed", "boom")
    with pytest.raises(ArgumentError, match="there is no finished run to draw"):
        plots.regret_curves([failed])
    figure = plots.regret_curves([*runs, failed])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert {string.get_text() for string in legend.get_texts()} == {
        "GPOO (3 seeds)",
        "Random (2 seeds)",
        r"\$x_y\$ (2 seeds)",
    }
    styles = line_styles(["GPOO", "Random", "$x_y$"])
    for axis in figure.axes:
        assert {line.get_color() for line in axis.lines} == {style.colour for style in styles.values()}
        assert len(axis.collections) == 3  # the single runs
        assert legend.get_window_extent().y0 >= axis.get_window_extent().y1
        assert axis.get_xlabel()
        assert axis.get_ylabel()


def test_panels_are_scaled_to_their_late_means():
    panel, level, empty = Figure().subplots(1, 3)
    rounds = np.array([-50.0, *range(19)])  # the first tenth is left out
    plots.mean_curve(panel, np.stack([rounds - 100.0, rounds + 100.0]), "A", line_style(0))
    plots.mean_curve(level, np.array([[0.0, *[1.0] * 19]]), "A", line_style(0))
    for axis in (panel, level, empty):
        plots.scale_to_lines(axis)
    assert panel.get_ylim() == pytest.approx((1.0 - 1.7, 18.0 + 1.7))
    assert level.get_ylim() == pytest.approx((-0.1, 1.1))
    assert empty.get_ylim() == (0.0, 1.0)


def test_comparisons_show_every_agent_with_labelled_axes():
    envs = [f"CBO/E{number}-v0" for number in range(3)]
    runs = [made_up_run(agent, seed, [0.3 + 0.1 * seed], env) for agent in "ABC" for seed in range(5) for env in envs]
    runs.append(made_up_run("Once", 0, [0.9], envs[0]))  # without an interval, and on one environment
    board = leaderboard(runs)
    scores, matrix = plots.score_intervals(board, "soft").axes[0], plots.improvement_matrix(board, "soft").axes[0]
    profiles = board.plot("profiles", "soft")
    ranks = plots.critical_differences(ranking(board, "soft")).axes[0]
    agents = board.overall["agent"].to_list()
    assert [label.get_text().split()[0] for label in scores.get_yticklabels()] == agents
    assert sorted(string.get_text() for string in profiles.legends[0].get_texts()) == sorted(agents)
    assert len(profiles.axes[0].collections) == 3  # no band of one seed
    assert [label.get_text() for label in ranks.get_yticklabels()] == ["A", "B", "C"]
    assert len(matrix.texts) == 3 * 2, "one seed is too few for a probability"


def test_the_figure_of_choices_has_a_panel_an_agent_and_one_look_a_choice():
    runs = [choosing_run("A", 0, [0, 1, 1]), choosing_run("B", 0, [1, 1, 2])]
    first, second, *_ = plots.draw_choices("CBO/CoCaFig1-v0", choice_figure(runs, "AB")).axes
    np.testing.assert_allclose(first.lines[0].get_ydata(), [0, 1 / 2, 2 / 3])
    assert first.lines[0].get_color() == second.lines[0].get_color() == line_style(0).colour


def test_rare_choices_are_added_up():
    names = tuple(f"{{X{number}}}" for number in range(12))
    run = replace(choosing_run("A", 0, list(range(12)) * 2), choices=names)
    styles = choice_styles([run])
    found = choice_frequencies([run], list(styles))
    assert [*styles][-1] == "others"
    assert found["others"][0, -1] == pytest.approx(4 / 12)
    assert sum(curves[0, -1] for curves in found.values()) == pytest.approx(1)


def test_figures_are_written_in_three_formats_the_same_every_time(tmp_path):
    for folder in ("a", "b"):
        plots.save(plots.regret_curves([made_up_run("A", 0, [0.5])]), tmp_path / folder, "curve", ("png", "pdf", "svg"))
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        one, other = ((tmp_path / folder / f"curve.{kind}").read_bytes() for folder in ("a", "b"))
        assert one.startswith(start)
        assert one == other
    with pytest.raises(ValueError, match="png, pdf, svg; given gif"):
        plots.save(Figure(), tmp_path, "curve", ["gif"])

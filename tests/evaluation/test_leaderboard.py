from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from cbo_gym import leaderboard
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.comparison.provenance import completeness, incomplete_rows, provenance
from cbo_gym.evaluation.report.tables import (
    OVERALL,
    choice_table,
    coverage_table,
    env_table,
    improvement_table,
    number,
    overall_table,
)
from tests.support.runs import choosing_run, made_up_run


def test_means_and_intervals_by_hand():
    runs = [made_up_run("A", seed, [0.0, last]) for seed, last in enumerate([0.2, 0.3, 0.4, 0.5, 0.6])]
    row = leaderboard(runs).per_env.row(0, named=True)
    assert row["seeds"] == 5
    assert row["simple_regret"] == pytest.approx(0.6)
    # the t quantile at 97.5 % with 4 degrees of freedom is 2.776445; the variance is 0.025
    assert row["simple_regret_half"] == pytest.approx(2.776445 * np.sqrt(0.025 / 5), rel=1e-6)
    assert row["score"] == pytest.approx(0.4)
    assert row["average_score"] == pytest.approx(0.2)
    assert row["cumulative_regret"] == pytest.approx(1.6)
    assert row["seconds"] == pytest.approx(0.875)
    assert leaderboard(runs[:4]).per_env["score_half"].to_list() == [None]
    longer = [*runs[:1], made_up_run("A", 0, [0.5])]
    assert leaderboard(longer).per_env["env"].to_list() == ["CBO/Dropwave-v0, T=1", "CBO/Dropwave-v0, T=2"]
    # a context that is worth 0.4 by itself: the recommendation earns 1.2, where 1.3 was possible
    table = runs[0].table.with_columns(recommended_reward=pl.lit(1.2), simple_regret=pl.lit(0.1))
    assert leaderboard([replace(runs[0], table=table)]).per_env["score"][0] == pytest.approx(0.9)


def test_to_fail_on_bad_seeds_does_not_pay():
    """Random play that raises unless it is lucky, beside random play."""
    rewards = np.random.default_rng(3).normal(0.3, 0.3, 12)
    honest = [made_up_run("honest", seed, [reward]) for seed, reward in enumerate(rewards)]
    picky = [
        made_up_run("picky", seed, [reward])
        if reward > 0.5
        else Run("picky", "CBO/Dropwave-v0", seed, 1, "soft", "failed", "boom")
        for seed, reward in enumerate(rewards)
    ]
    lucky = rewards[rewards > 0.5]
    assert 1 < len(lucky) < 6
    board = leaderboard([*honest, *picky, Run("broken", "CBO/Dropwave-v0", 0, 1, "soft", "failed", "boom")])
    assert board.overall["agent"].to_list() == ["honest", "picky"]
    assert board.overall["score"].to_list() == pytest.approx([rewards.mean(), lucky.sum() / 12])
    assert board.overall["average_score"].to_list() == pytest.approx([rewards.mean(), lucky.sum() / 12])
    assert board.overall["seconds"].to_list() == pytest.approx([0.875, 0.875])
    assert board.per_env["agent"].to_list() == ["honest", "picky", "broken"]
    assert board.per_env.filter(agent="broken")["score"].to_list() == [None]
    seeds = [str(cell) for cell in overall_table(board, "soft").rows[1]][2]
    assert seeds == f"12 ({12 - len(lucky)} failed, scored as random play)"
    probability = board.improvement.filter(agent="picky", other="honest")["probability"].item()
    assert probability < 0.5


def test_choices_are_counted():
    board = leaderboard(
        [choosing_run("A", seed, [0, 0, seed % 2, seed % 2]) for seed in range(6)] + [made_up_run("B", 0, [1.0])]
    )
    assert board.choices["choice"].to_list() == ["{X1 | C}", "{X2 | C}"]  # what was never chosen is left out
    assert board.choices["frequency"].to_list() == [0.75, 0.25]
    # the t quantile at 97.5 % with 5 degrees of freedom is 2.570582; the variance is 6 * 0.25^2 / 5
    assert board.choices["frequency_half"][0] == pytest.approx(2.570582 * np.sqrt(0.0125), rel=1e-5)
    rows = choice_table(board, "CBO/CoCaFig1-v0, T=4").lines
    assert [row[:2] for row in rows] == [["A", "{X1 | C}"], ["A", "{X2 | C}"]]
    assert choice_table(board, "CBO/Dropwave-v0, T=1").lines == []


def test_a_metric_that_not_every_run_reaches_has_no_mean_of_those_that_do():
    env = "CBO/Dropwave-v0, T=3"
    rewards = {
        "A": [[0.0, 0.95, 0.0], [0.95, 0.0, 0.0], [0.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
        "B": [[0.95, 0, 0], [0, 0.95, 0], [0, 0, 0.8]],
    }
    runs = [made_up_run(agent, seed, own) for agent, seeds in rewards.items() for seed, own in enumerate(seeds)]
    board = leaderboard([*runs, made_up_run("B", 3, [0.0, 0.0, 0.0])])
    rows = {row["agent"]: row for row in board.per_env.iter_rows(named=True)}
    assert rows["A"]["rounds_to_goal"] == pytest.approx(2.0)
    assert rows["A"]["rounds_to_goal_half"] == pytest.approx(2.776445 * np.sqrt(0.5 / 5), rel=1e-5)
    assert [rows["B"][f"rounds_to_goal{end}"] for end in ("", "_half", "_seeds")] == [None, None, 2]
    shown = dict(zip(("A", "B"), env_table(board, env).lines, strict=True))
    column = env_table(board, env).header.index("rounds to score 0.9")
    assert (shown["A"][column], shown["B"][column]) == ("2.00 ± 0.88", "2 of 4 seeds")
    never = leaderboard([made_up_run("B", seed, [0.0]) for seed in range(2)])
    assert env_table(never, "CBO/Dropwave-v0, T=1").lines[0][-1] == "0 of 2 seeds"


def test_overall_averages_environments_and_brackets_the_mean():
    runs = [made_up_run("A", seed, [0.2 + 0.1 * (seed // 2)]) for seed in range(8)]
    runs += [made_up_run("A", seed, [0.9], env="CBO/Ackley-v0") for seed in range(8)]
    runs += [made_up_run("B", seed, [0.99]) for seed in range(4)]
    board = leaderboard(runs)
    overall = board.overall
    assert overall["agent"].to_list() == ["A", "B"], "agents with fewer environments come last"
    assert overall["envs"].to_list() == [2, 1]
    row = overall.row(0, named=True)
    assert row["score"] == pytest.approx((0.35 + 0.9) / 2)
    assert row["score_low"] < row["score"] < row["score_high"]
    assert row["score_high"] - row["score_low"] < 0.15
    # twice the scores 0.2, 0.3, 0.4, 0.5 and four times 0.9; the middle half is 0.4, 0.5, 0.9, 0.9
    assert row["iqm"] == pytest.approx((0.4 + 0.5 + 0.9 + 0.9) / 4)
    assert row["iqm_low"] < row["iqm"] < row["iqm_high"]
    assert (row["runs"], row["of"], row["fewest_seeds"], row["most_seeds"]) == (16, 2, 8, 8)
    assert (row["seconds"], row["run_seconds"]) == (pytest.approx(0.875), pytest.approx(0.875))
    assert len(repr(board).splitlines()) == len(overall) + 4
    assert f"{row['iqm']:.3f}" in repr(board)


def test_four_runs_in_an_environment_have_neither_interval_nor_rank():
    runs = [made_up_run("A", seed, [0.1], env) for env in ("CBO/Ackley-v0", "CBO/Dropwave-v0") for seed in range(9)]
    runs = [*runs[:-5], *(made_up_run("B", seed, [0.2]) for seed in range(5))]
    board = leaderboard(runs)
    assert leaderboard(runs, envs=["CBO/Dropwave-v0"]).overall["agent"].to_list() == ["B", "A"]
    assert board.overall.filter(pl.col("agent") == "A")["iqm_low"].to_list() == [None]
    assert board.overall.filter(pl.col("agent") == "B")["iqm_low"].null_count() == 0
    assert board.profiles.filter(pl.col("agent") == "A")["fraction_low"].null_count() == 101
    assert board.improvement["probability_high"].null_count() == 2
    assert improvement_table(board, "soft").rows == [], "B has five seeds, and A four on one of the environments"
    place = overall_table(board, "soft").header.index(OVERALL["probability"])
    assert [line[place] for line in overall_table(board, "soft").lines] == ["-", "-"]


def test_profiles_and_improvement_by_hand():
    runs = [made_up_run("A", seed, [score]) for seed, score in enumerate([0.3, 0.5] * 3)]
    runs += [made_up_run("A", seed, [0.8], "CBO/Ackley-v0") for seed in range(6)]
    runs += [made_up_run("B", seed, [score]) for seed, score in enumerate([0.5, 0.2] * 3)]
    board = leaderboard(runs)
    profile = dict(board.profiles.filter(pl.col("agent") == "A").select("threshold", "fraction").iter_rows())
    assert [profile[at] for at in (0.0, 0.4, 0.5, 0.7, 1.0)] == pytest.approx([1, 0.75, 0.5, 0.5, 0])
    # only on the environment that both played: 0.3 beats 0.2; 0.5 beats 0.2 and ties with 0.5
    assert board.improvement.select("agent", "other", "envs", "probability").rows() == [
        ("A", "B", 1, pytest.approx(2.5 / 4)),
        ("B", "A", 1, pytest.approx(1.5 / 4)),
    ]
    for row in board.improvement.iter_rows(named=True):
        assert row["probability_low"] <= row["probability"] <= row["probability_high"]
    apart = [made_up_run(agent, seed, [score]) for agent, score in (("A", 0.9), ("B", 0.1)) for seed in range(5)]
    shown = improvement_table(leaderboard(apart), "soft")
    assert shown.lines == [["A", "-", "1.000"], ["B", "0.000", "-"]], "an interval without width is not shown"


def test_each_mode_is_a_group_and_all_modes_hold_the_agents_that_play_them_all():
    envs = {"CBO/Dropwave-v0": "soft", "CBO/ToyGraph-v0": "hard"}
    runs = [
        made_up_run(agent, seed, [0.5], env, mode) for agent in "AB" for seed in (0, 1) for env, mode in envs.items()
    ]
    runs += [made_up_run("SoftOnly", seed, [0.6]) for seed in range(2)]
    board = leaderboard(runs)
    assert board.groups == ["all modes", "hard", "soft"]
    assert overall_table(board, "all modes").lines[0][1] == "2 of 2"
    agents = {group: {row[0] for row in overall_table(board, group).lines} for group in board.groups}
    assert agents == {"all modes": {"A", "B"}, "hard": {"A", "B"}, "soft": {"A", "B", "SoftOnly"}}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"modes": ["hard"]}, {"A on CBO/ToyGraph-v0"}),
        ({"agents": ["A"]}, {"A on CBO/ToyGraph-v0", "A on CBO/Dropwave-v0(noise_std=0.1)"}),
        ({"envs": ["CBO/Drop*"], "agents": ["B"]}, {"B(k=1) on CBO/Dropwave-v0(noise_std=0.1)"}),
    ],
)
def test_filters(filters, expected):
    noisy = "CBO/Dropwave-v0(noise_std=0.1)"
    runs = [made_up_run("A", 0, [0.5], "CBO/ToyGraph-v0", "hard"), made_up_run("A", 0, [0.5], noisy)]
    runs.append(made_up_run("B(k=1)", 0, [0.5], noisy))
    assert {f"{run.agent} on {run.env}" for run in leaderboard(runs, **filters).runs} == expected


def test_of_several_runs_of_a_cell_the_newest_that_finished_counts():
    versions = {"0.9.0": 0.1, "0.10.0": 0.5, "0.10.0rc1": 0.3}
    runs = [made_up_run("A", 0, [reward], version=version) for version, reward in versions.items()]
    runs.append(made_up_run("A", 1, [0.7], version="0.9.0"))
    board = leaderboard(runs)
    assert [(run.seed, run.version) for run in board.runs] == [(0, "0.10.0"), (1, "0.9.0")]
    assert board.per_env["score"].to_list() == [pytest.approx(0.6)]
    assert "Mixed cbo-gym: 0.10.0 (1 runs), 0.9.0 (1 runs)." in provenance(board)
    assert "Left out: 2 runs that were played again later" in provenance(board)
    runs = [made_up_run("A", 0, [reward], date=f"2026-01-0{day}") for day, reward in ((2, 0.5), (1, 0.3))]
    runs.append(Run("A", "CBO/Dropwave-v0", 0, 1, "soft", "failed", "boom", date="2026-01-03"))
    # Two instances of a class with other parameters, for example.
    with pytest.warns(UserWarning, match="1 runs are left out, such as that of A on .*, seed 0, .* label='k=3'"):
        board = leaderboard(runs)
    assert board.per_env["score"].to_list() == [pytest.approx(0.5)]
    assert board.replaced == 2
    edited = replace(made_up_run("B", 0, [0.5]), optimum=1.5)
    with pytest.warns(UserWarning, match="runs on 'CBO/Dropwave-v0' are of different systems, .* play the older ones"):
        leaderboard([runs[0], edited])
    runs = [made_up_run("A", seed, [0.5], machine="2 cores, X", date=f"2026-01-0{seed + 1}") for seed in (0, 1, 2, 5)]
    shown = f"4 finished runs; seeds 0 to 2, 5; cbo-gym {runs[0].version}; 2026-01-01 to 2026-01-06; 2 cores, X."
    assert provenance(leaderboard(runs)) == shown


def test_failed_and_skipped_are_shown():
    runs = [made_up_run("A", 0, [0.5]), made_up_run("B", 2, [0.5])]
    runs += [Run("B", "CBO/Dropwave-v0", seed, 1, "soft", "failed", "Traceback\nboom") for seed in range(2)]
    runs += [Run("D", "CBO/Dropwave-v0", 0, 1, "soft", "failed", "Traceback\nboom")]
    for env in ("CBO/ToyGraph-v0", "CBO/PSAGraph-v0"):
        runs += [Run("C", env, seed, 1, "hard", "skipped", f"C plays soft; {env} is hard") for seed in range(2)]
    runs.append(Run("C", "CBO/Zonal-v0", 0, 1, "masked", "skipped", "C plays soft; CBO/Zonal-v0 is masked"))
    board = leaderboard(runs)
    assert incomplete_rows(board) == [
        ("failed: B on CBO/Dropwave-v0, seed 0", "Traceback\nboom"),
        ("failed: B on CBO/Dropwave-v0, seed 1", "Traceback\nboom"),
        ("failed: D on CBO/Dropwave-v0, seed 0", "Traceback\nboom"),
        ("skipped: C on 2 hard, 1 masked environments", "C plays soft; CBO/PSAGraph-v0 is hard"),
    ]
    shown = [row[:3] for row in env_table(board, "CBO/Dropwave-v0, T=1").lines]
    assert shown == [["A", "1 of 3", "0.5"], ["B", "1 of 3 (2 failed)", "0.5"], ["D", "0 of 3 (1 failed)", "-"]]
    coverage = coverage_table(board)
    assert coverage.header == ["environment", "A", "B", "C", "D"]
    assert coverage.lines == [
        ["CBO/Dropwave-v0, T=1", "1", "1 + 2 failed", "", "0 + 1 failed"],
        ["CBO/PSAGraph-v0, T=1", "", "", "-", ""],
        ["CBO/ToyGraph-v0, T=1", "", "", "-", ""],
        ["CBO/Zonal-v0, T=1", "", "", "-", ""],
    ]
    assert board.table["status"].value_counts(sort=True).rows() == [("skipped", 5), ("failed", 3), ("finished", 2)]


def test_scores_of_other_numbers_of_rounds_are_not_averaged():
    runs = [made_up_run(agent, seed, [0.2]) for agent in "AB" for seed in range(5)]
    board = leaderboard([*runs, *(made_up_run("A", seed, [0.8, 0.8]) for seed in range(1000, 1005))])
    assert board.overall.select("agent", "envs", "of").rows() == [("A", 1, 1), ("B", 1, 1)]
    assert board.overall["score"].to_list() == pytest.approx([0.2, 0.2])
    assert "leave out CBO/Dropwave-v0, T=2: runs with other numbers of rounds" in completeness(board)
    assert board.seeds == 5


def test_a_single_run_or_name_needs_no_list():
    one, other = made_up_run("A", 0, [0.5]), made_up_run("B", 0, [0.5])
    for board in (leaderboard(one), leaderboard([one, other], modes="soft", envs="CBO/Drop*", agents="A")):
        assert board.runs == (one,)


def test_nothing_finished_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=f"no finished run in {tmp_path}, nor any other; play some: cbo-gym sweep"):
        leaderboard(tmp_path)
    failed = Run("A", "CBO/Dropwave-v0", 0, 1, "soft", "failed", "Traceback\nboom")
    with pytest.raises(ValueError, match="no finished run among 1; 1 of them failed: boom"):
        leaderboard([failed])
    with pytest.raises(ValueError, match="the modes soft, the environments CBO/Dropwave-v0 and the agents A"):
        leaderboard([made_up_run("A", 0, [0.5])], modes=["hard"])


def test_a_sweep_that_is_half_done_says_what_its_numbers_rest_on():
    runs = [made_up_run("A", seed, [0.5], env) for env in ("CBO/Dropwave-v0", "CBO/Ackley-v0") for seed in range(3)]
    runs += [made_up_run("B", seed, [0.5]) for seed in range(2)]
    board = leaderboard(runs)
    assert [row[:3] for row in overall_table(board, "soft").lines] == [["A", "2 of 2", "3"], ["B", "1 of 2", "2 of 3"]]
    assert completeness(board).startswith(
        "This comparison is not complete: 8 of 12 runs have ended (3 seeds of every agent"
    )
    assert completeness(leaderboard(runs[:6])) == ""


def test_numbers_show_two_digits_of_their_interval():
    assert str(number(12.345, 4.56)) == "12.3 ± 4.6"
    assert str(number(12345.6, 456.7)) == "12,346 ± 457"
    assert str(number(0.5, None)) == "0.5"
    assert str(number(2.2222e-5, 3.456e-6)) == "2.22e-05 ± 3.5e-06"
    assert str(number(None, None)) == "-"

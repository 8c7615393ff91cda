import numpy as np
import polars as pl
import pytest
from scipy import stats

from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.comparison import pairwise as paired
from cbo_gym.evaluation.comparison.pairwise import compare, least_p_value, over_envs, sign_flip_p_value
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS


def run(agent, seed, score, env="CBO/Dropwave-v0", mode="soft", horizon=5, **more):
    """A run with optimum 1 and random value 0, whose recommendation has the score and whose play half of it."""
    table = pl.DataFrame(
        {"simple_regret": [1 - score], "average_reward": [score / 2]} | {name: [0.1] for name in TIMING_COLUMNS}
    )
    return Run(agent, env, seed, horizon, mode=mode, optimum=1.0, random_value=0.0, table=table, **more)


def runs(agent, scores, **where):
    return [run(agent, seed, score, **where) for seed, score in enumerate(scores)]


def test_differences_by_hand():
    first, second = [0.9, 0.8, 0.4, 0.7, 0.7], [0.5, 0.8, 0.6, 0.7, 0.7]
    given = [*runs("A", first), *runs("B", [*second, 0.1])]
    found = compare(given, "A", "B")
    recommended, played = found.per_env.to_dicts()
    assert (recommended["env"], recommended["seeds"], found.unpaired) == ("CBO/Dropwave-v0, T=5", 5, 1)
    assert recommended["difference"] == pytest.approx(0.04)
    assert played["difference"] == pytest.approx(0.02)
    assert [recommended[name] for name in ("wins", "ties", "losses")] == [1, 3, 1]
    interval = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert recommended["difference_low"] == pytest.approx(interval.low)
    assert recommended["difference_high"] == pytest.approx(interval.high)
    assert "score of recommendation, soft: 0.040 [-" in repr(found)
    assert len(repr(found)) < 300
    back = compare(given, "B", "A").per_env.row(0, named=True)
    assert back["difference"] == pytest.approx(-0.04)
    assert back["difference_low"] == pytest.approx(-interval.high)
    found = compare([*runs("A(x=1)", [0.5, 0.4, 0.1, 0.2]), *runs("Bee", [0.1] * 4)], "A", "B*")
    assert (found.agent, found.other) == ("A(x=1)", "Bee")  # a name that one label fits is enough
    assert found.overall["difference_low"].to_list() == found.per_env["difference_low"].to_list() == [None, None]
    row = compare([*runs("A", [0.5, 0.4] * 3), *runs("B", [0.5, 0.4] * 3)], "A", "B").overall.row(0, named=True)
    assert (row["difference_low"], row["difference_high"], row["ties"], row["p_value"]) == (0.0, 0.0, 1, 1.0)


def test_over_environments_of_one_mode_and_of_all():
    first, second = np.array([0.5, 0.1, 0.3, 0.2, 0.4, 0.3]), np.array([0.1, -0.2, 0.3, 0.2, 0.0])
    given = [*runs("A", first), *runs("B", 0 * first)]
    for agent, scores in (("A", second), ("B", 0 * second)):
        given += runs(agent, scores, env="CBO/ToyGraph-v0", mode="hard")
    overall = compare(given, "A", "B").overall.filter(pl.col("metric") == "score")
    assert overall["group"].to_list() == ["all modes", "hard", "soft"]
    row = overall.row(0, named=True)
    assert (row["envs"], row["pairs"], row["wins"]) == (2, 11, 2)
    # the sum of two means is a difference of means, of one sample and the other one's negative
    interval = stats.ttest_ind(first, -second, equal_var=False).confidence_interval(0.95)
    assert row["difference"] == pytest.approx((first.mean() + second.mean()) / 2)
    assert row["difference_low"] == pytest.approx(interval.low / 2)
    assert row["difference_high"] == pytest.approx(interval.high / 2)


def test_p_values(monkeypatch):
    assert sign_flip_p_value([np.array([0.1, 0.2, 0.3])]) == least_p_value(3) == 0.25
    sample = np.array([0.4, -0.1, 0.3, 0.2, 0.05, -0.3, 0.6, 0.1])
    reference = stats.permutation_test((sample,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    exact = sign_flip_p_value([sample])
    assert exact == pytest.approx(reference)
    monkeypatch.setattr(paired, "EXACT_PAIRS", 0)
    assert sign_flip_p_value([sample]) == pytest.approx(exact, abs=0.01)
    assert sign_flip_p_value([np.full(30, 0.1)]) == least_p_value(30) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("envs", "seeds", "true"), [(7, 5, 0.0), (3, 5, 0.0), (1, 5, 0.0), (3, 10, 0.0), (7, 5, 0.1), (3, 10, 0.1)]
)
def test_intervals_hold_the_difference_and_p_values_are_no_smaller_than_they_say(envs, seeds, true):
    rng = np.random.default_rng(1)
    held = small = 0
    for _ in range(3000):
        if true:  # differences that are skewed themselves
            differences = [rng.exponential(0.2, seeds) - 0.2 + true for _ in range(envs)]
        else:
            differences = [rng.beta(4, 1, seeds) - rng.beta(4, 1, seeds) for _ in range(envs)]
        row = over_envs(differences)
        held += row["difference_low"] <= true <= row["difference_high"]
        small += row["p_value"] <= 0.05
    assert (0.91 if true else 0.94) < held / 3000 < 0.975  # less than 0.95 where differences are skewed
    assert true or small / 3000 < 0.06


def test_only_what_both_have_played_counts_and_a_failure_as_random_play():
    given = [*runs("A", [0.5, 0.6]), *runs("B", [0.4, 0.5]), *runs("B", [0.0, 0.0], horizon=9)]
    given += [run("A", 2, 0.5), run("B", 2, 0.5, status="failed")]
    found = compare(given, "A", "B")
    assert found.per_env["seeds"].to_list() == [3, 3]
    assert found.per_env["difference"][0] == pytest.approx((0.1 + 0.1 + 0.5) / 3)
    assert found.unpaired == 2
    assert [run.seed for run in found.runs] == [0, 0, 1, 1, 2, 2]


def test_batches_are_paired_with_batches_and_an_environment_counts_once_over_environments():
    given = [*runs("A", [0.5] * 5), *runs("A", [0.9] * 5, batch=4), *runs("B", [0.4] * 5)]
    found = compare(given, "A", "B")
    assert {run.batch for run in found.runs} == {1}
    assert found.unpaired == 5
    longer = [*runs("A", [0.8] * 5, horizon=10), *runs("B", [0.5] * 5, horizon=10)]
    found = compare([*given, *longer], "A", "B")
    assert found.per_env["env"].unique().sort().to_list() == ["CBO/Dropwave-v0, T=10", "CBO/Dropwave-v0, T=5"]
    row = found.overall.row(0, named=True)
    assert (row["envs"], row["pairs"], row["difference"]) == (1, 5, pytest.approx(0.3))


@pytest.mark.parametrize(
    ("agent", "other", "message"),
    [
        ("A(x=1)", "A(x=1)", "give two different agents"),
        ("A", "B", r"several agents fit 'A': A\(x=1\), A\(x=2\)"),
        ("C", "B", "no run is of 'C'; there are A"),
        ("A(x=1)", "B", "no environment with the same seed .*; .* has CBO/Dropwave-v0, T=5 with seeds 0; B has .* 7"),
        ("B", "Failing", "Failing has finished no run"),
        (Run, "B", "give the label of an agent, one of .*; given <class"),
    ],
)
def test_what_cannot_be_compared(agent, other, message):
    given = [run("A(x=1)", 0, 0.5), run("A(x=2)", 0, 0.5), run("B", 7, 0.5), run("Failing", 7, 0, status="failed")]
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        compare(given, agent, other)

from dataclasses import replace

import polars as pl
import pytest
import yaml

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.comparison.parameter_choice import choose_parameter, read_chosen, write_choice


def made_up_run(agent, env, seed, average=0.0, best=0.0, **fields):
    """A run of two rounds with these final rewards, on an environment with optimum 3 and random value 1."""
    table = pl.DataFrame({"average_reward": [9.0, average], "best_so_far_regret": [9.0, 3.0 - best]})
    return Run(agent, env, seed, 2, **{"optimum": 3.0, "random_value": 1.0, "table": table, **fields})


def grid(averages, agent="A(beta={})", seeds=2):
    """Runs from a table environment -> value -> final average reward; the best reward is its negative."""
    return [
        made_up_run(agent.format(value), env, seed, average, best=-average)
        for env, row in averages.items()
        for value, average in row.items()
        for seed in range(seeds)
    ]


AVERAGES = {"E1": {"0.05": 3.0, "0.5": 1.0, "5": 1.0}, "E2": {"0.05": 1.0, "0.5": 2.0, "5": 1.0}}
AVERAGES["E3"] = {"0.05": 1.5, "0.5": 1.0, "5": 2.5}


def test_each_environment_takes_what_is_best_on_the_others_by_hand():
    choice = choose_parameter(grid(AVERAGES), "A", "beta")
    # scores (reward - 1) / 2: E1 1, 0, 0; E2 0, 0.5, 0; E3 0.25, 0, 0.75. On E1 the mean of E2 and E3 counts.
    expected = {
        "env": ["E1", "E2", "E3"],
        "chosen": [5.0, 0.05, 0.05],
        "beta=0.05": [0.125, 0.625, 0.5],
        "beta=0.5": [0.25, 0.0, 0.25],
        "beta=5": [0.375, 0.375, 0.0],
    }
    assert choice.table.to_dict(as_series=False) == expected
    assert repr(choice.chosen) == "{'E1': 5, 'E2': 0.05, 'E3': 0.05}"  # as the labels had it: 5, not 5.0
    assert choice.candidates == (0.05, 0.5, 5)
    assert choice.seeds == (0, 1)
    assert choice.horizons == (2,)


def test_the_metric_is_the_one_asked_for():
    choice = choose_parameter(grid(AVERAGES), "A", "beta", "best")
    assert choice.table["beta=0.5"].to_list() == pytest.approx([-1.25, -1.0, -1.25])
    with pytest.raises(ValueError, match=r"metric must be one of \['average_score', 'best"):
        choose_parameter(grid(AVERAGES), "A", "beta", "worst")


def test_seeds_and_instances_for_publication_choose_nothing():
    runs = grid(AVERAGES)
    with pytest.raises(
        ValueError, match=r"1000 to 1999 are for published results alone, .* given seed 1000. Use others, such as"
    ):
        choose_parameter([*runs, *(replace(run, seed=1000) for run in runs if run.seed == 0)], "A", "beta")
    drawn = [replace(run, env=f"{run.env}(instance_seed=1007)") for run in runs]
    with pytest.raises(ValueError, match=r"given E1\(instance_seed=1007\), E2"):
        choose_parameter(drawn, "A", "beta")


def test_the_smaller_value_wins_a_tie():
    equal = {"10": 1.0, "9": 1.0, "0.5": 0.9}
    assert choose_parameter(grid({"E1": equal, "E2": equal}), "A", "beta").chosen == {"E1": 9, "E2": 9}
    nearly = {"9": 0.1 + 0.2, "10": 0.3 + 1e-15}  # apart by rounding alone
    assert choose_parameter(grid({"E1": nearly, "E2": nearly}), "A", "beta").chosen["E1"] == 9


def test_other_runs_are_left_out_and_shared_parameters_are_part_of_the_agent():
    others = grid({"E9": {"0.1": 2.0, "0.2": 1.0}}, agent="B(beta={})")
    others += grid(AVERAGES, agent="A(beta={}, samples=3)")
    others += [made_up_run("A", "E1", 0), made_up_run("A(delta=2)", "E1", 0), made_up_run("odd (", "E1", 0)]
    others += [made_up_run("A(beta=5)", "E7", 0, status="skipped")]
    expected = choose_parameter(grid(AVERAGES), "A", "beta").table
    assert choose_parameter([*others, *grid(AVERAGES)], "A", "beta").table.equals(expected)
    shared = choose_parameter(others, "A(samples=3)", "beta")
    assert shared.agent == "A(samples=3)"
    assert shared.table.equals(expected)
    with pytest.raises(ValueError, match="runs of A with at least two values of beta; found 0"):
        choose_parameter(others, "A", "beta")


@pytest.mark.parametrize(
    ("averages", "message"),
    [
        ({"E1": {"1": 1.0}, "E2": {"1": 1.0}}, "two values of beta; found 1"),
        ({"E1": {"1": 1.0, "2": 1.0}}, "two environments; found 1"),
        ({"E1": {"None": 1.0, "2": 1.0}}, "two values of beta; found 1"),
        ({"E1": {"'wide'": 1.0, "2": 1.0}}, "the values of beta must be numbers; found 'wide'"),
    ],
)
def test_too_little_to_choose_from(averages, message):
    with pytest.raises(ValueError, match=message):
        choose_parameter(grid(averages), "A", "beta")


def test_missing_and_failed_runs_are_named():
    def without(*cells):
        return [run for run in grid(AVERAGES) if (run.agent, run.env, run.seed) not in cells]

    with pytest.raises(ValueError, match=r"missing: beta=0\.5 on E2, seeds 1$"):
        choose_parameter(without(("A(beta=0.5)", "E2", 1)), "A", "beta")
    runs = without(("A(beta=0.5)", "E2", 0), ("A(beta=0.5)", "E2", 1), ("A(beta=5)", "E3", 0))
    runs.append(Run("A(beta=5)", "E3", 0, 1, status="failed", error="boom"))
    with pytest.raises(ValueError, match=r"missing: beta=0\.5 on E2, seeds 0, 1; beta=5 on E3, seeds 0$"):
        choose_parameter(runs, "A", "beta")
    with pytest.raises(ValueError, match=r"and 11 more$"):
        choose_parameter([*grid(AVERAGES), made_up_run("A(beta=7)", "E4", 5)], "A", "beta")
    gone = [Run(f"A(beta={value})", "E4", 0, 1, status="failed") for value in (0.05, 0.5, 5)]
    with pytest.raises(ValueError, match="on E4"):
        choose_parameter([*grid(AVERAGES), *gone], "A", "beta")


@pytest.mark.parametrize(
    "second",
    [made_up_run("A(beta=5)", "E1", 0, version="7.0"), made_up_run("A(beta=5.0)", "E1", 0)],
    ids=["version", "label"],
)
def test_two_runs_for_one_cell_are_an_error(second):
    with pytest.raises(ValueError, match=r"two runs of beta=5(\.0)? on E1 with seed 0: .* give those of one sweep"):
        choose_parameter([*grid(AVERAGES), second], "A", "beta")


def test_runs_of_other_numbers_of_rounds_are_not_compared():
    mixed = [replace(run, horizon=9) if run.agent == "A(beta=5)" and run.env == "E1" else run for run in grid(AVERAGES)]
    with pytest.raises(ArgumentError, match="same number of rounds; given E1, T=2, E1, T=9, E2, T=2, E3, T=2; give"):
        choose_parameter(mixed, "A", "beta")


def test_a_choice_is_written_and_read_back(tmp_path):
    path = tmp_path / "new" / "chosen.yaml"
    assert read_chosen(path, "A", "beta", "best") == {}
    for metric in ("average_score", "best"):
        for agent in ("A", "B", "B"):
            choice = choose_parameter(grid(AVERAGES, agent + "(beta={})"), agent, "beta", metric)
            write_choice(path, choice, f"cbo-gym choose {agent}")
    assert repr(read_chosen(path, "B", "beta", "average_score")) == "{'E1': 5, 'E2': 0.05, 'E3': 0.05}"
    assert read_chosen(path, "A", "beta", "best") == {"E1": 0.05, "E2": 0.5, "E3": 5}
    assert read_chosen(path, "A", "delta", "best") == {}
    record = yaml.safe_load(path.read_text())["A"]["beta"]["best"]
    assert (record["command"], record["candidates"]) == ("cbo-gym choose A", [0.05, 0.5, 5])
    assert (record["seeds"], record["horizons"], record["versions"]) == ([0, 1], [2], list(choice.versions))
    assert [file.name for file in path.parent.iterdir()] == ["chosen.yaml"]
    for name in ("", "chosen.json"):
        with pytest.raises(ArgumentError, match=r"such as \w+\.yaml"):
            write_choice(tmp_path / name, choice, "cbo-gym choose A")


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("- 1", "must map agent, parameter and metric"),
        ("A: {beta: 3}", "must map agent, parameter and metric"),
        ("A: [", "cannot read"),
        ("A: {beta: {best: 3}}", "must hold a mapping 'chosen'"),
        ("A: {beta: {best: {chosen: 3}}}", "must hold a mapping 'chosen'"),
    ],
)
def test_another_file_is_refused(tmp_path, string, message):
    path = tmp_path / "other.yaml"
    path.write_text(string)
    with pytest.raises(ValueError, match=message):
        read_chosen(path, "A", "beta", "best")
    assert path.read_text() == string

"""Published runs played again: what was not played so is found."""

from dataclasses import replace

import polars as pl
import pytest

from cbo_gym import evaluate
from cbo_gym.evaluation import load_published, publish
from cbo_gym.evaluation.runs.results import name_of, save_run
from cbo_gym.referee.replay import ROUND_TOLERANCE, compare_runs, replays, sample_of

ENV = "CBO/Dropwave-v0"


def published(folder, runs):
    for run in runs:
        save_run(folder / "mine" / name_of(run), run)
    return publish(folder / "mine", folder).path


def tampered(run, column="reward", by=0.5, since=0):
    changed = run.table[column] + pl.Series([by if place >= since else 0.0 for place in range(run.horizon)])
    return replace(run, table=run.table.with_columns(changed.alias(column)))


@pytest.fixture(scope="module")
def played():
    return [evaluate("Random", ENV, seed, horizon=4) for seed in range(5)]


def test_what_was_played_comes_out_again_and_nothing_else(played, tmp_path):
    """In other processes: as it was, with one reward changed, of an agent that is gone, and of such an environment."""
    runs = [played[0], tampered(played[1], since=3), replace(played[2], agent="Gone")]
    path = published(tmp_path, [*runs, replace(played[3], env="CBO/Dropwave-v99")])
    found = {one.run.seed: one for one in replays(load_published(path))}
    assert "machine" not in found[0].differences
    assert found[0].verdict == "identical"
    assert found[1].verdict in ("differs", "diverges")  # with other threads than a process of a sweep has
    assert "from round 4 on" in found[1].why
    assert found[2].verdict == found[3].verdict == "skipped"
    assert "the agent 'Gone' is not installed here" in found[2].why
    assert "is not a registered environment" in found[3].why


def test_on_the_same_platform_every_bit_counts(played):
    run = played[0]
    assert compare_runs(run, run).verdict == "identical"
    found = compare_runs(tampered(run, by=1e-4, since=2), run)
    assert (found.verdict, found.differences) == ("differs", ())
    assert found.why.startswith("from round 3 on")
    assert compare_runs(tampered(run, by=1e-12), run).verdict == "identical"  # less than the store's precision


def test_elsewhere_rounds_agree_to_a_tolerance_or_the_score_of_play_does(played):
    run = replace(played[0], machine="another", libraries={"numpy": "0"})
    gap = run.optimum - run.random_value
    close = compare_runs(tampered(run, by=0.5 * ROUND_TOLERANCE * gap), played[0])
    assert (close.verdict, close.differences) == ("agrees", ("machine", "libraries"))
    diverged = compare_runs(tampered(run, "instant_regret", by=0.2 * gap, since=3), played[0])
    assert diverged.verdict == "diverges"  # by 0.05 over four rounds
    assert "from round 4 on" in diverged.why
    assert compare_runs(tampered(run, "instant_regret", by=0.2 * gap), played[0]).verdict == "differs"
    assert compare_runs(replace(run, optimum=run.optimum + 0.01), played[0]).why.startswith("optimum was")
    assert compare_runs(run, replace(played[0], status="failed", error="a\nboom")).why == "now it is failed: boom"


def test_a_sample_is_of_finished_runs(played):
    runs = [*played, replace(played[0], status="failed")]
    assert len(sample_of(runs, 20)) == 5
    assert sample_of(runs, 2, seed=1) == sample_of(runs, 2, seed=1)
    with pytest.raises(ValueError, match="no finished run"):
        sample_of(runs[5:], 2)

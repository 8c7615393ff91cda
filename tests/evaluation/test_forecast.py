from dataclasses import replace

import pytest

from cbo_gym.evaluation.play.forecast import OTHER, SAME, forecast
from cbo_gym.evaluation.play.sweep import plan, run_job
from cbo_gym.evaluation.runs.results import save_run

ENVS = ["CBO/Dropwave-v0", "CBO/Alpine2-v0", "CBO/ToyGraph-v0"]
AGENTS = ["Random", "tests.support.agents:SoftOnly"]


def test_what_is_there_what_is_to_play_and_how_long_it_takes(tmp_path):
    jobs = plan(AGENTS, ENVS, range(3), tmp_path, horizon=4)
    assert forecast(jobs).unknown == 15  # SoftOnly does not play ToyGraph
    by_place = {(str(job.agent), str(job.cell.env), job.cell.seed): job for job in jobs}
    finished = run_job(by_place["Random", "CBO/Dropwave-v0", 0])
    save_run(by_place["Random", "CBO/Dropwave-v0", 0].path, finished)
    failed = by_place["Random", "CBO/Dropwave-v0", 1]
    save_run(failed.path, replace(finished, seed=1, status="failed", error="no"))
    damaged = by_place["Random", "CBO/Dropwave-v0", 2]
    damaged.path.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="left out"):
        found = forecast(jobs)
    assert damaged.path.exists(), "nothing is moved"
    pairs = {(pair.agent, pair.env): pair for pair in found.pairs}
    same, other = pairs["Random", "CBO/Dropwave-v0"], pairs["Random", "CBO/ToyGraph-v0"]
    assert (same.runs, same.stored, same.to_play, same.source) == (3, 1, 2, SAME)
    assert (other.stored, other.to_play, other.source) == (0, 3, OTHER)
    assert same.seconds == other.seconds == pytest.approx(4 * finished.seconds_a_round)
    assert not pairs[AGENTS[1], "CBO/ToyGraph-v0"].plays
    assert found.unknown == 6
    assert found.seconds == pytest.approx(8 * same.seconds)
    assert found.seconds_with(2) == pytest.approx(4 * same.seconds)
    assert found.seconds_with(100) == same.seconds

"""Several actions at once, and what callbacks hear: of one run and of many."""

import numpy as np
import pytest

from cbo_gym import Execution, evaluate, leaderboard, sweep
from cbo_gym.agent_registry.finding import create_agent, find_agent, modes_of
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents import GPUCB, MCBO
from cbo_gym.errors import ArgumentError, UnsupportedModeError
from cbo_gym.evaluation import AgentError, load_runs
from tests.support.agents import Centre
from tests.support.families import ALONE, TOGETHER, by_family
from tests.support.runs import rounds_alike

ENV = "CBO/Dropwave-v0"
SLOW = {"MCBO": {"samples": 4, "restarts": 2}}
ONE_BY_ONE = {
    "contextual": "CBO/PSAContextual2-v0",
    "dynamic": "CBO/DCBOStat-v0",
    "adversarial": "CBO/Dropwave-Penny-v0",
    "partial": "CBO/GPs1-v0",
}


class Watcher(Centre):
    """Records the order of calls."""

    def setup(self, seed):
        self.heard = []

    def act_batch(self, observation, count):
        self.heard.append(count)
        return super().act_batch(observation, count)

    def update(self, *played):
        self.heard.append("update")
        super().update(*played)


def test_agents_learn_the_outcomes_after_the_whole_batch():
    agent = Watcher()
    run = evaluate(agent, ENV, 100, horizon=7, batch=3)
    played = agent.heard[agent.heard.index(3) :]
    assert played == [3, *["update"] * 3, 3, *["update"] * 3, 1, "update"]
    assert (run.batch, run.horizon, run.table.height) == (3, 7, 7)
    assert run.table["recommended"].is_null().to_list() == [True, True, False, True, True, False, False]
    with_rounds = run.by_batch
    assert with_rounds["actions"].to_list() == [3, 3, 1]
    expected = run.curve("expected_reward")
    assert with_rounds["best_expected_reward"].to_list() == [max(part) for part in np.split(expected, [3, 6])]
    assert with_rounds["cumulative_regret"].to_list() == run.curve("cumulative_regret")[[2, 5, 6]].tolist()


@pytest.mark.parametrize("name", by_family(name for name in zoo() if name not in ("LearnedGraph", "Auto")))
@pytest.mark.usefixtures("coarse_search")
def test_every_agent_suggests_batches(name):
    modes = [mode for mode in modes_of(find_agent(name)) if mode in TOGETHER]
    agent = create_agent(name)
    for option, value in SLOW.get(name, {}).items():
        setattr(agent, option, value)
    if not modes:
        with pytest.raises(UnsupportedModeError, match="depends on the observation before each round"):
            evaluate(agent, ONE_BY_ONE[next(iter(agent.modes))], 100, horizon=2, batch=2)
        return
    runs = [evaluate(agent, ALONE.get(name, TOGETHER[modes[0]]), 100, horizon=5, batch=3) for _ in range(2)]
    assert rounds_alike(*runs)  # one seed, one run, also of an agent that has played before


def test_what_an_agent_expects_is_what_its_model_says():
    agent = GPUCB()
    evaluate(agent, ENV, 100, horizon=2)
    played = agent.history[2]
    _, reward = agent.fantasize(played.action)
    assert reward == pytest.approx(agent.estimated_rewards()[2])
    agent = MCBO(samples=4, restarts=2)
    evaluate(agent, ENV, 100, horizon=2)
    observation, reward = agent.fantasize(agent.history[3].action)
    np.testing.assert_allclose(observation["nodes"], agent.history[3].observation["nodes"], atol=0.05)
    assert reward == observation["nodes"][-1]


def test_batches_that_cannot_be_are_refused():
    class Single:
        reset = act = update = recommend = lambda self, *given, **named: None

    with pytest.raises(UnsupportedModeError, match=r"Single chooses one action at a time; give it act_batch"):
        evaluate(Single(), ENV, 100, horizon=2, batch=2)
    with pytest.raises(ArgumentError, match="batch must be at least 1"):
        evaluate("Random", ENV, 100, horizon=2, batch=0)

    class Few(Centre):
        def act_batch(self, observation, count):
            return [self.act(observation)]

    with pytest.raises(AgentError, match="round 1: ValueError: act_batch gave 1 actions; asked for 2"):
        evaluate(Few(), ENV, 100, horizon=2, batch=2)


# Callbacks ---------------------------------------------------------------------------------------------------


def test_runs_in_batches_are_compared_apart(tmp_path):
    for batch in (1, 2):
        assert sweep(["Random", Centre], ENV, 1, tmp_path, horizon=4, batch=batch)["finished"] == 2
    assert sweep(["Random", Centre], ENV, 1, tmp_path, horizon=4, batch=2)["resumed"] == 2
    labels = leaderboard(tmp_path).per_env["env"].unique().sort().to_list()
    assert labels == [f"{ENV}, T=4", f"{ENV}, T=4 in batches of 2"]
    isolated = next(run for run in load_runs(tmp_path) if run.batch == 2 and run.isolated)
    assert rounds_alike(isolated, evaluate(Centre(), ENV, 0, horizon=4, batch=2))


@pytest.mark.usefixtures("coarse_search")
def test_callbacks_hear_each_round_and_change_nothing():
    heard = []

    def meddle(played):
        heard.append(played)
        with pytest.raises(ValueError, match="read-only"):
            played.action[...] = 0.0
        played.observation["nodes"] = None
        played.info.clear()

    run = evaluate("GP-UCB", ENV, 100, horizon=4, recommend="end", callbacks=[meddle])
    assert rounds_alike(run, evaluate("GP-UCB", ENV, 100, horizon=4, recommend="end"))
    assert [(played.agent, played.env, played.seed, played.round, played.horizon) for played in heard] == [
        ("GP-UCB", ENV, 100, number, 4) for number in range(1, 5)
    ]
    assert [played.reward for played in heard] == run.curve("reward").tolist()
    assert [played.recommended is None for played in heard] == [True, True, True, False]


def test_a_sweep_tells_the_rounds_of_all_runs_here(tmp_path):
    heard = []
    sweep(["Random", Centre], ENV, 1, tmp_path, horizon=3, n_jobs=1, callbacks=[heard.append])
    assert len(heard) == 2 * 3
    for run in load_runs(tmp_path):
        assert [played.reward for played in heard if played.agent == run.agent] == run.curve("reward").tolist()


def test_what_a_callback_raises_ends_the_sweep(tmp_path):
    def fail(played):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sweep("Random", ENV, 1, tmp_path, horizon=3, n_jobs=1, callbacks=[fail])
    with pytest.raises(ArgumentError, match="callbacks are called in this process"):
        sweep("Random", ENV, 2, tmp_path, callbacks=[print], execution=Execution("dask", "tcp://127.0.0.1:9"))

from time import sleep

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

from cbo_gym import UnsupportedModeError, evaluate
from cbo_gym.evaluation import AgentError
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS
from tests.support.agents import Centre, DuckTyped, Incomplete, NoModes, Nonsense, Raises, Recorder, SoftOnly
from tests.support.loop import reset


class Forgetful(Centre):
    """An agent whose rounds are not kept, because it does not call ``super().update``."""

    def update(self, action, observation, reward, info):
        pass


def test_the_table_of_a_noiseless_run():
    run = evaluate(Centre(), "CBO/Rosenbrock-v0", seed=0, horizon=4)
    assert run.table["round"].to_list() == [1, 2, 3, 4]
    # all actions 0.5: x = 0, so every one of four terms is -1
    np.testing.assert_allclose(run.table["reward"], -4.0)
    np.testing.assert_allclose(run.table["expected_reward"], -4.0)
    np.testing.assert_allclose(run.table["cumulative_regret"], [4.0, 8.0, 12.0, 16.0])
    assert run.table["action"].to_list() == [[0.5] * 5] * 4
    assert (run.table["act_seconds"] >= 0).all()
    assert run.optimum == 0.0


def test_expected_rewards_agree_with_simulation():
    run = evaluate(Centre(), "CBO/ToyGraph-v0", seed=0, horizon=3)
    rng = np.random.default_rng(1)
    x1 = -5.0 + 25.0 * 0.5  # the last target set is {X1}
    rewards = np.exp(-x1 / 20.0) - np.cos(x1) - rng.standard_normal(200_000)
    error = rewards.std() / np.sqrt(rewards.size)
    assert abs(run.table["expected_reward"][0] - rewards.mean()) < 4 * error
    assert run.table["choice"].to_list() == [2, 2, 2]
    assert run.choices == ("{}", "{X0}", "{X1}")


def test_a_contextual_run_is_scored_in_its_contexts():
    """On CoCaFig1 E[Y | do(X1 = 0), c] is exp(-c^2) / 3 + c, and no policy earns more than 1/3 + c."""
    run = evaluate(Centre(), "CBO/CoCaFig1-v0", seed=0, horizon=4)
    table = run.table
    env = gym.make("CBO/CoCaFig1-v0")
    contexts = [env.reset(seed=0)[0]["context"]]
    contexts += [env.step({"scope": 0, "values": np.full(2, 0.5)})[0]["context"] for _ in range(4)]
    assert table["context"].to_list() == [context.tolist() for context in contexts[:-1]]
    c = np.concatenate(contexts)
    expected = np.exp(-(c**2)) / 3 + c
    np.testing.assert_allclose(table["expected_reward"], expected[:-1], atol=3e-3)
    np.testing.assert_allclose(table["instant_regret"], 1 / 3 - expected[:-1], atol=3e-3)
    np.testing.assert_allclose(table["context_regret"], 1 / 3 + c[:-1] - expected[:-1], atol=6e-3)
    np.testing.assert_allclose(table["best_so_far_regret"], np.minimum.accumulate(table["context_regret"].to_numpy()))
    np.testing.assert_allclose(table["recommended_reward"], expected[1:], atol=3e-3)  # of the context to come
    np.testing.assert_allclose(table["simple_regret"], 1 / 3 + c[1:] - expected[1:], atol=6e-3)
    np.testing.assert_allclose(table["pseudo_regret"], 1 / 3 - table["reward"])
    np.testing.assert_allclose(table["average_pseudo_regret"][-1], table["pseudo_regret"].mean())
    assert run.choices == ("{X1 | C}", "{X2 | C}", "{X1, X2 | C}", "{}")
    assert table["choice"].to_list() == [0] * 4
    many = evaluate(Centre(), "CBO/CoCaLarge-v0", seed=0, horizon=1)  # long scopes are counted, not written out
    assert many.choices == ("{X1 | C1, C6}", "{X2 | C1}", "{29 variables | 57 contexts}", "{}")


def test_rewards_are_those_of_the_plain_loop():
    run = evaluate(Centre(), "CBO/Alpine2-Noisy-v0", seed=5, horizon=6)
    env = reset(gym.make("CBO/Alpine2-Noisy-v0"), 5)
    np.testing.assert_array_equal(run.table["reward"], [env.step(np.full(6, 0.5))[1] for _ in range(6)])
    evaluate(recorder := Recorder(), "CBO/Dropwave-Noisy-v0", seed=0, horizon=1)
    assert next(item for item in recorder.received if isinstance(item, int)) != 0, "the agent's seed is another one"


def test_agents_of_one_seed_meet_the_same_noise():
    first = evaluate(Centre(), "CBO/Alpine2-Noisy-v0", seed=2, horizon=5).table
    second = evaluate("Random", "CBO/Alpine2-Noisy-v0", seed=2, horizon=5).table

    def noise_of_first_node(table):
        x = 10.0 * np.array(table["action"].to_list())[:, 0]
        return np.array(table["nodes"].to_list())[:, 0] + np.sqrt(x) * np.sin(x)

    np.testing.assert_allclose(noise_of_first_node(first), noise_of_first_node(second), atol=1e-12)


def test_env_parameters_reach_the_environment():
    in_text = evaluate("Random", "CBO/BinaryTree-v0(depth=1)", seed=0, horizon=2)
    as_keyword = evaluate("Random", "CBO/BinaryTree-v0", seed=0, horizon=2, depth=1)
    assert len(in_text.table["action"][0]) == 2
    assert in_text.env == as_keyword.env == "CBO/BinaryTree-v0(depth=1)"
    # the recorded optimum is that of depth 2 and must not be used
    assert in_text.optimum != pytest.approx(evaluate("Random", "CBO/BinaryTree-v0", seed=0, horizon=1).optimum)


def test_names_import_paths_and_parameters():
    label = "tests.support.agents:Centre"
    assert evaluate(label, "CBO/Dropwave-v0", seed=0, horizon=1).agent == label
    run = evaluate("tests.support.agents:Nonsense( bad_round = 9 )", "CBO/Dropwave-v0", seed=0, horizon=2)
    assert run.agent == "tests.support.agents:Nonsense(bad_round=9)"
    assert evaluate(Centre(), "CBO/Dropwave-v0", seed=0, horizon=1, label="mine").agent == "mine"
    assert evaluate(Centre(), "CBO/Dropwave-v0", seed=0, horizon=1, label=0.5).agent == "0.5"
    assert evaluate(DuckTyped(), "CBO/ToyGraph-v0", seed=0, horizon=3).table.height == 3


class Undecided(Centre):
    def recommend(self):
        return None


@pytest.mark.parametrize(
    ("agent", "env", "error", "message"),
    [
        ("NoSuchAgent", "CBO/Dropwave-v0", ValueError, "no agent is called 'NoSuchAgent'; cbo-gym agents lists all"),
        ("tests.support.agents:Missing", "CBO/Dropwave-v0", ValueError, "cannot import the agent"),
        ("tests.support.agents:Nonsense(bad=1)", "CBO/Dropwave-v0", ValueError, "cannot create .*bad"),
        (Incomplete(), "CBO/Dropwave-v0", TypeError, r"lacks \['reset', 'update', 'recommend'\]"),
        (3, "CBO/Dropwave-v0", TypeError, "int is not an agent"),
        (["Random", "UCB"], "CBO/Dropwave-v0", TypeError, "list is not an agent.*; cbo_gym.sweep plays several agents"),
        (NoModes(), "CBO/ToyGraph-v0", UnsupportedModeError, r"NoModes plays no mode: set modes = .*{Mode.HARD}"),
        (SoftOnly(), "CBO/ToyGraph-v0", UnsupportedModeError, "SoftOnly plays soft; CBO/ToyGraph-v0 is hard"),
        (Nonsense(), "CBO/Dropwave-v0", AgentError, r"Nonsense on CBO/Dropwave-v0, seed 0, round 3: .*\[0, 1\]"),
        (Raises(), "CBO/Dropwave-v0", AgentError, "Raises on .* round 1: ZeroDivisionError"),
        (Forgetful(), "CBO/Dropwave-v0", AgentError, r"nothing to recommend.*; call .* super\(\).update\(...\) in an"),
        (Undecided(), "CBO/Dropwave-v0", AgentError, "recommendation after round 1: .* must be numbers; given None"),
    ],
)
def test_clear_errors(agent, env, error, message):
    with pytest.raises(error, match=message):
        evaluate(agent, env, seed=0, horizon=5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": 0}, "horizon must be .*given 0"),
        ({"seed": -1}, "seed must be .*given -1"),
        ({"recommend": "never"}, r"recommend must be one of \['every', 'powers', 'end'\]; given 'never'"),
    ],
)
def test_arguments_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        evaluate("Random", "CBO/Dropwave-v0", **({"horizon": 3, "seed": 0} | given))


def test_the_standard_error_is_below_one_percent_of_the_gap():
    for env in ("CBO/ToyGraph-v0", "CBO/CompleteGraph-v0", "CBO/Dropwave-Noisy-v0", "CBO/BinaryTree-Noisy-v0"):
        run = evaluate("Random", env, seed=0, horizon=20)
        gap = run.optimum - run.random_value
        assert run.table["expected_reward_standard_error"].max() < 0.01 * gap


class Rewrites(Centre):
    """Reuses one buffer for its actions, and changes its arguments."""

    def setup(self, seed):
        self.buffer = np.zeros(2)

    def act(self, observation):
        self.buffer[:] = self.rng.random(2)
        return self.buffer

    def update(self, action, observation, reward, info):
        super().update(action, observation, reward, info)
        observation["nodes"][:] = 99.0
        self.buffer[:] = 0.5


def test_scores_are_of_what_was_played_whatever_an_agent_does_to_its_arrays():
    table = evaluate(Rewrites(), "CBO/Dropwave-v0", 0, horizon=4).table
    assert len({tuple(action) for action in table["action"].to_list()}) == 4
    np.testing.assert_allclose(table["expected_reward"], table["reward"], rtol=1e-9)  # noiseless
    assert max(max(nodes) for nodes in table["nodes"].to_list()) < 99.0


class Rebel(Centre):
    """Gives other numbers every time it is looked at, and changes its arguments."""

    class Action:
        def __init__(self):
            self.looks = 0

        def __array__(self, dtype=None, copy=None):
            self.looks += 1
            return np.full(2, 1.0 / self.looks)

    def act(self, observation):
        for array in observation.values():
            array[:] = 77.0
        self.last = self.Action()
        return self.last

    def recommend(self):
        return self.last

    def update(self, action, observation, reward, info):
        if isinstance(action, np.ndarray):
            action[:] = 0.0
        for array in observation.values():
            array[:] = 99.0
        info.clear()
        object.__setattr__(self.task, "horizon", 1)
        object.__setattr__(self.task, "env_id", "CBO/Another-v0")


def test_actions_are_read_once_and_agents_get_copies():
    run = evaluate(Rebel(), "CBO/Dropwave-v0", 0, horizon=3)
    assert run.table["action"].to_list() == [[1.0, 1.0]] * 3  # the first look
    np.testing.assert_allclose(run.table["expected_reward"], run.table["reward"], rtol=1e-9)
    assert max(max(nodes) for nodes in run.table["nodes"].to_list()) < 77.0


def test_contexts_are_the_records_own():
    class Spoils(Centre):
        def act(self, observation):
            observation["context"][:] = 5.0
            return super().act(observation)

    spoilt, plain = (evaluate(agent, "CBO/CoCaFig1-v0", 0, horizon=3).table for agent in (Spoils(), Centre()))
    assert spoilt.drop(TIMING_COLUMNS).equals(plain.drop(TIMING_COLUMNS))


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), BaseException("base")])
def test_an_agent_cannot_end_the_process_that_evaluates_it(error):
    class Leaves(Centre):
        def act(self, observation):
            raise error

    with pytest.raises(AgentError, match=f"Leaves on CBO/Dropwave-v0, seed 0, round 1: {type(error).__name__}"):
        evaluate(Leaves(), "CBO/Dropwave-v0", 0, horizon=2)


class TakesItsTime(Centre):
    def act(self, observation):
        sleep(0.01)
        return super().act(observation)

    def update(self, *played):
        sleep(0.02)
        super().update(*played)

    def recommend(self):
        sleep(0.04)
        return super().recommend()


def test_seconds_of_act_update_and_recommend_are_apart_and_sum_to_those_of_a_round():
    run = evaluate(TakesItsTime(), "CBO/Dropwave-v0", 0, horizon=2)
    assert (run.table.select(TIMING_COLUMNS).to_numpy() >= (0.01, 0.02, 0.04)).all()
    assert run.seconds_a_round == pytest.approx(sum(run.table[name].mean() for name in TIMING_COLUMNS))


@pytest.mark.usefixtures("coarse_search")
def test_a_recommendation_is_asked_for_when_the_run_says():
    often = evaluate("GP-UCB", "CBO/ToyGraph-v0", 0, horizon=5).table
    for recommend, asked in (("powers", [1, 2, 4, 5]), ("end", [5])):
        run = evaluate("GP-UCB", "CBO/ToyGraph-v0", 0, horizon=5, recommend=recommend)
        recommended = run.table.filter(run.table["simple_regret"].is_not_null())
        assert recommended["round"].to_list() == asked
        expected = often.filter(pl.col("round").is_in(asked))["recommended_reward"].to_list()
        assert recommended["recommended_reward"].to_list() == expected
        assert run.recommend == recommend


def test_a_run_says_what_it_was_played_with():
    run = evaluate("tests.support.agents:Centre", "CBO/Dropwave-v0", 0, horizon=1)
    assert set(run.sources) == {"CBO/Dropwave-v0", "tests"}
    assert len(run.sources["tests"].partition("+")[2]) == 12
    assert {"python", "numpy", "scipy", "torch", "botorch", "gymnasium", "blas"} <= set(run.libraries)
    assert run.libraries["numpy"] == np.__version__
    assert run.threads
    assert run.date.startswith("20")
    assert "core" in run.machine

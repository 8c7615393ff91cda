"""Agents and environments given to a sweep: classes, instances, functions, as notebooks and scripts have them."""

import functools
import subprocess
import sys
import threading
from dataclasses import replace
from unittest.mock import patch

import gymnasium as gym
import polars as pl
import pytest

from cbo_gym import Execution, evaluate, leaderboard, make_task, sweep
from cbo_gym.agents import GPUCB
from cbo_gym.envs.making import env_spec
from cbo_gym.envs.wrappers import FlattenAction
from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.play.agent_sources import import_path, pickle_agent
from cbo_gym.evaluation.play.grid import plan
from tests.support.agents import Centre
from tests.support.runs import play_here, rounds_alike, save_runs

ENV = "CBO/Dropwave-v0"
SCRIPT = """
import cbo_gym
from cbo_gym import Agent, Mode

class KeepBest(Agent):
    modes = frozenset(Mode)
    def act(self, observation):
        return self.task.action_space.sample() if not self.history else self.recommend()

print(cbo_gym.evaluate(KeepBest(), "CBO/Dropwave-v0", 0, horizon=3).sources["__main__"])
for _ in range(2):
    print(cbo_gym.sweep("__main__:KeepBest", "CBO/Dropwave-v0", 1, "runs", horizon=2, n_jobs=1))
"""


@pytest.mark.parametrize("how", ["file", pytest.param("standard input", marks=pytest.mark.slow)])
def test_a_script_sweeps_its_own_agents(tmp_path, how):
    (tmp_path / "mine.py").write_text(SCRIPT, encoding="utf-8")
    is_file = how == "file"
    words = [sys.executable, "mine.py" if is_file else "-"]
    given = None if is_file else SCRIPT
    done = subprocess.run(words, cwd=tmp_path, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stamp, *counts = done.stdout.splitlines()
    assert stamp.startswith("unreleased+" if is_file else "unreleased+interactive")
    assert ["'failed': 0" in count for count in counts] == [True, True]
    run, *_ = load_runs(tmp_path / "runs")
    assert run.agent == "KeepBest"
    assert run.isolated
    assert run.sources[run.agent].startswith("interactive+")
    assert ("'resumed': 1" in counts[1]) is is_file, "of standard input the text is not known"


def test_what_can_be_imported_is_known_by_its_path_and_the_rest_by_its_name(tmp_path):
    assert [str(job.agent) for job in plan({"Random": "Random"}, ENV, 1, tmp_path, 2)] == ["Random"]
    jobs = plan([Centre, GPUCB, "Random"], ENV, 1, tmp_path, 2)
    assert [str(job.agent) for job in jobs] == ["tests.support.agents:Centre", "GP-UCB", "Random"]
    assert all(job.facts.sent is None for job in jobs)
    (job,) = plan(Centre(), gym.make(ENV), 1, tmp_path, 2)
    assert (str(job.agent), str(job.cell.env), set(job.facts.modes)) == ("Centre", ENV, set(Centre.modes))
    assert job.facts.isolated
    assert import_path(lambda: None) is None
    assert import_path(functools.partial(Centre)) is None


def test_agents_of_one_file_and_label_are_told_apart():
    class Other(Centre):
        pass

    def closed(size):
        class Sized(Centre):
            def act(self, observation):
                return super().act(observation) * size

        return Sized

    def with_attribute(value):
        return type("Sized", (Centre,), {"size": value, "__module__": __name__})

    def stamps():
        made = [kind for size in (0.5, 1.0) for kind in (closed(size), with_attribute(size))]
        sources = [Centre(), Other(), *[kind() for kind in made], *[lambda k=k: k() for k in made]]
        with patch("cbo_gym.evaluation.play.agent_sources.describe_isolated"):
            return [pickle_agent(source, "mine", [])[1].sent.stamps for source in sources]

    found = stamps()
    assert found == stamps()
    assert len(set(found)) == 10


def test_what_cannot_be_sent_plays_here(tmp_path):
    agent = Centre()
    agent.lock = threading.Lock()
    with pytest.warns(UserWarning, match="mine plays in this process, .* cannot be sent to another: .*lock"):
        assert sweep({"mine": agent}, ENV, 1, tmp_path, horizon=2)["finished"] == 1
    (run,) = load_runs(tmp_path)
    assert (run.agent, run.isolated) == ("mine", False)
    assert rounds_alike(run, evaluate(Centre(), ENV, 0, horizon=2))
    with pytest.warns(UserWarning, match="plays in this process"), pytest.raises(ArgumentError, match="cluster"):
        sweep({"mine": agent}, ENV, 3, tmp_path, horizon=2, execution=Execution("dask", "tcp://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ([Centre(), Centre()], "another agent has the name 'Centre'; give this one a label of its own"),
        ({"Random": Centre()}, "another agent has the name 'Random'"),
        ({"mine": "Random"}, "Random already has a name"),
        ([3], "int is not an agent: it lacks"),
        ([lambda: 1 / 0], r"cannot make an agent by <lambda>\(\): ZeroDivisionError.*; give an instance or a function"),
        ([], "give at least one agent"),
    ],
)
def test_what_is_no_agent_or_has_no_name_is_refused(tmp_path, agents, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        sweep(agents, ENV, 1, tmp_path, horizon=2)


def test_an_environment_that_is_made_stands_for_its_id_its_parameters_and_rounds():
    env = gym.make("CBO/BinaryTree-v0", depth=3, max_episode_steps=4)
    run = evaluate(Centre, env, 0)
    assert (run.env, run.horizon, run.agent) == ("CBO/BinaryTree-v0(depth=3)", 4, "Centre")
    assert env.unwrapped.round == 0
    # Of an id without a version the newest is meant.
    assert evaluate("Random", "CBO/SSEMPeriodic", 0, horizon=1).env == "CBO/SSEMPeriodic-v1"
    named = evaluate(Centre(), "CBO/BinaryTree-v0(depth=3)", 0, horizon=4)
    assert run.curve("reward").tolist() == named.curve("reward").tolist()
    assert evaluate(Centre, env, 0, horizon=2).horizon == 2
    with pytest.raises(ArgumentError, match=r"made with 4 rounds; give all runs of the sweep a horizon=4"):
        sweep("Random", [env], 1, "runs")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: FlattenAction(gym.make(ENV)), "FlattenAction changes the environment.*; give env.unwrapped"),
        (lambda: gym.make("CartPole-v1"), "give the id of an environment, 'CBO/Alpine2-v0'"),
        (lambda: 3, "an environment of cbo_gym, with your own problem gym.make.*; given 3"),
    ],
)
def test_other_environments_are_refused(given, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        env_spec(given())


def test_a_task_comes_from_an_id_as_from_an_environment():
    task = make_task("CBO/BinaryTree-v0(depth=3)", 2)
    same = make_task(gym.make("CBO/BinaryTree-v0", depth=3), 2)
    assert task.nodes == same.nodes
    assert [past.reward for past in task.initial_data] == [past.reward for past in same.initial_data]
    assert make_task(ENV).horizon == gym.spec(ENV).max_episode_steps
    with pytest.raises(ArgumentError, match="did you mean 'CBO/Dropwave-v0'"):
        make_task("CBO/Dropwav-v0")


def test_runs_and_leaderboards_show_themselves(tmp_path):
    board = leaderboard(save_runs(tmp_path, play_here(["Random", Centre], [ENV], 2, horizon=4)))
    assert board.to_pandas().shape == board.overall.shape
    assert list(board.to_pandas("table")["seed"]) == board.table["seed"].to_list()
    with pytest.raises(ArgumentError, match="name must be one of"):
        board.to_pandas("runs")
    for kind in ("regret", "scores", "profiles"):
        assert board.plot(kind).axes
    with pytest.raises(ArgumentError, match="did you mean 'scores'"):
        board.plot("score")
    run = board.runs[0]
    assert len(run.plot().axes) == 2
    env = gym.make(ENV)
    task = make_task(env)
    for thing in (run, board, task, env.unwrapped):
        assert "<table" in thing._repr_html_()
        assert "<svg" in thing._repr_html_()
    assert task.diagram._repr_svg_().startswith("<svg")
    failed = replace(run, status="failed", error="Traceback", table=pl.DataFrame())
    assert "failed" in failed._repr_html_()
    with pytest.raises(ArgumentError, match="a run that failed has nothing to plot"):
        failed.plot()

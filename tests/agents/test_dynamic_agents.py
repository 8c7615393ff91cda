"""Methods of dynamic mode: contract, what they implement, and that they learn."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import agents, evaluate
from cbo_gym.agents.dynamic.unrolled import UnrolledModel
from cbo_gym.envs.registry import InitialData
from cbo_gym.envs.tasks import make_task
from cbo_gym.evaluation.metrics.gap import gaps_of, slice_gaps
from tests.support.loop import make, play

AGENTS = [agents.DCBO, agents.ABO, agents.CBORestarted, agents.GPUCBRestarted]
every_agent = pytest.mark.parametrize("build", AGENTS, ids=lambda build: build.__name__)
SMALL = {"slices": 2, "trials": 3}
ROUNDS = 6


@every_agent
def test_the_last_round_of_a_slice_repeats_one_of_its_trials(build) -> None:
    """Methods without the graph set all variables, the others those of a minimal intervention set."""
    env, task = make("CBO/DCBONonStat-v0", 0, ROUNDS, **SMALL)
    agent = build()
    actions, _ = play(agent, env, task, 0)
    for end in (2, 5):
        assert any(str(actions[end]) == str(actions[earlier]) for earlier in (end - 2, end - 1))
    assert agent.estimated_rewards().shape == (ROUNDS,)
    assert np.isfinite(agent.estimated_rewards()).all()
    assert str(agent.recommend()) in map(str, actions[3:])
    sets = {task.targets[int(action["target"])] for action in actions}
    if build in (agents.ABO, agents.GPUCBRestarted):
        assert sets == {frozenset("XZ")}
    else:
        assert sets <= {frozenset("X"), frozenset("Z")}
    if build is agents.DCBO:
        actions, _ = play(agents.DCBO(joint=True), *make("CBO/DCBOStat-v0", 0, 2, **SMALL), 0)
        assert {task.targets[int(action["target"])] for action in actions} == {frozenset(task.manipulable)}


@pytest.mark.parametrize(("trials", "repeat"), [(4, True), (4, False), (2, True)])
def test_a_later_slice_of_dcbo_begins_with_the_action_implemented_before(trials: int, repeat: bool) -> None:
    """With two rounds a slice, the repeated action would be implemented again, and nothing would be tried."""
    env, task = make("CBO/DCBOStat-v0", 0, 2 * trials, slices=2, trials=trials)
    actions, _ = play(agents.DCBO(repeat=repeat), env, task, 0)
    assert (str(actions[trials]) == str(actions[trials - 1])) == (repeat and trials > 2)


@every_agent
@pytest.mark.parametrize("kwargs", [{"slices": 3, "trials": 1}, {"trial_noise": 1.0, **SMALL}])
def test_they_play_with_few_trials_without_data_and_with_noise(build, kwargs: dict) -> None:
    env, task = make("CBO/DCBOStat-v0", 0, 4, **kwargs)
    _, rewards = play(build(), env, replace(task, observational={}), 0)
    assert np.isfinite(rewards).all()


def test_the_prior_of_dcbo_depends_on_the_implemented_round() -> None:
    """With many observations it is near E[Y_1 | do(Z_1 = z), Y_0 = y] = y + exp(-z / 20) - cos z in the middle."""
    task = make_task(gym.make("CBO/DCBOStat-v0"), 0, initial_data=InitialData(observational=150, random=0))
    z = torch.linspace(0.5, 0.9, 7, dtype=torch.float64)[:, None]
    native = -3.0 + 6.0 * z[:, 0].numpy()
    truth = np.exp(-native / 20.0) - np.cos(native)
    priors = []
    for reward in (0.0, 1.0):
        mean, std = UnrolledModel(task, 1, {"X": 0.0, "Z": 1.0, "Y": reward}).effect(frozenset("Z"), z)
        priors.append(mean.numpy())
        assert (std.numpy() > 0).all()
        assert np.abs(mean.numpy() - truth - reward).max() < 1.0
    assert (priors[1] - priors[0]).mean() == pytest.approx(1.0, abs=0.5)


def test_the_effect_of_the_slice_before_extrapolates() -> None:
    """Y_1 is Y_0 and a function of Z_1, of which the series have 4 and more, and Z_1 is set to at most 3."""
    task = make_task(gym.make("CBO/DCBONoisy-v0"), 0, initial_data=InitialData(observational=40, random=0))
    before = np.quantile(task.observational["Y_0"], [0.2, 0.8])
    z = torch.linspace(0.0, 1.0, 7, dtype=torch.float64)[:, None]
    low, high = (
        UnrolledModel(task, 1, {"X": 0.0, "Z": 1.0, "Y": float(reward)}).effect(frozenset("Z"), z)[0].numpy()
        for reward in before
    )
    share = (high - low).mean() / np.diff(before).item()
    assert 0.5 < share < 1.2  # with one function of all parents below 0.03


def test_a_slice_without_data_borrows_from_the_last_one_with_data() -> None:
    task = make_task(gym.make("CBO/DCBOMiss-v0"), 0)
    held = {"X": 0.0, "Z": 1.0, "Y": 0.5}
    assert UnrolledModel(task, 5, held).rule(frozenset({"Z_5"})) == "simulation"
    only_first = {name: column for name, column in task.observational.items() if name.endswith("_0")}
    unknown = UnrolledModel(replace(task, observational=only_first), 1, held)
    assert unknown.rule(frozenset({"Z_1"})) == "none"  # how one slice leads to the next was never seen


def test_runs_have_g_t_and_no_other_gap() -> None:
    run = evaluate("Random", "CBO/DCBOInd-v0", 0, recommend="end")
    found = gaps_of(run)
    assert found["gap_over_time"] == pytest.approx(slice_gaps(run).mean())
    assert {name for name, value in found.items() if value is not None} == {"gap_over_time"}
    assert run.table["slice"].to_list() == [0] * 10 + [1] * 10 + [2] * 10
    assert run.table["instant_regret"].min() >= -1e-9
    elsewhere = gaps_of(evaluate("Random", "CBO/ToyGraph-v0", 0, horizon=20, recommend="end"))
    assert elsewhere["gap_over_time"] is None
    assert elsewhere["gap_20"] is not None

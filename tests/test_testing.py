"""The contracts hold for all that the package ships, and the checks find what breaks them."""

import math
import warnings
from contextlib import suppress

import numpy as np
import pytest

import cbo_gym
from cbo_gym import Mode, UnsupportedModeError
from cbo_gym.agent_registry.finding import find_agent, known_agents, modes_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.problems import Problem
from cbo_gym.scm import StructuralCausalModel, Uniform, Variable, own_noise
from cbo_gym.testing import ContractError, check_agent, check_problem
from tests.support.agents import Centre
from tests.support.environments import EVERY_ID, FIRST_OF_MODE, SEVERAL_OBJECTIVES

#: the graph of IVBandit is not that of parallel bandits; the last two have several objectives
ENVS = (*FIRST_OF_MODE.values(), "CBO/IVBandit-v0", "CBO/PSAGraph-Cost-v0", "CBO/Alpine2-Cost-v0")


@pytest.mark.parametrize("env_id", [*EVERY_ID, *SEVERAL_OBJECTIVES])
def test_every_registered_environment_keeps_the_contract(env_id):
    entry = find_entry(env_id)
    check_problem(entry.problem, mode=entry.mode, **entry.kwargs)


@pytest.mark.parametrize(
    "agent", [pytest.param(name, marks=[] if name == "Random" else [pytest.mark.slow]) for name in known_agents()]
)
@pytest.mark.usefixtures("coarse_search")
def test_every_entry_point_keeps_the_contract(agent):
    """On all its modes; by default the tests of the agents play the others on one."""
    played = set()
    for env in ENVS:
        with warnings.catch_warnings(), suppress(UnsupportedModeError):
            warnings.simplefilter("ignore")
            check_agent(agent, env, rounds=2)
            played.add(find_entry(env).mode)
    assert played == set(modes_of(find_agent(agent)))


def test_agents_and_checks_of_every_mode_have_every_mode():
    assert all(set(modes_of(find_agent(name))) == set(Mode) for name in ("Random", "Optuna", "StableBaselines3"))
    assert set(FIRST_OF_MODE) == set(Mode)


@pytest.mark.parametrize(
    "env", ["CBO/Dropwave-v0(max_interventions=1)", pytest.param("CBO/Alpine2-Noisy-v0", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "agent", ["GP-UCB", *(pytest.param(name, marks=pytest.mark.slow) for name in ("MCBO", "EICF", "EIFN", "EXCBO"))]
)
def test_agents_of_networks_keep_the_contract_under_limits_and_noise(agent, env):
    check_agent(agent, env, rounds=3)


class Misbehaves(Centre):
    modes = frozenset({Mode.SOFT})

    def act(self, observation):
        return self.rng.random(2)


class DrawsGlobally(Misbehaves):
    def act(self, observation):
        np.random.seed(len(self.history))  # noqa: NPY002
        return np.random.random(2)  # noqa: NPY002


class Stumbles(Misbehaves):
    def update(self, action, observation, reward, info):
        super().update(action, observation, reward, {})
        if info and info["round"] == 2:
            raise KeyError("lost")


class GoesOn(Misbehaves):
    played = 0

    def act(self, observation):
        self.played += 1
        return np.full(2, 1.0 / self.played)


class Outside(Misbehaves):
    def act(self, observation):
        return np.full(2, 1.5)


class Undecided(Misbehaves):
    def recommend(self):
        return np.full(3, 0.5)


class Diverges(Misbehaves):
    def estimated_rewards(self):
        return np.full(len(self.history), np.nan)


class ForgetsARound(Misbehaves):
    def estimated_rewards(self):
        return super().estimated_rewards()[:-1]


class Silent(Misbehaves):
    def recommend(self):
        raise ValueError("I would rather not say")


class ChangesTheTask(Misbehaves):
    def setup(self, seed):
        self.task.action_space.sample()


class ChangesObservations(Misbehaves):
    def update(self, action, observation, reward, info):
        observation["nodes"] -= bool(info)  # the initial data come without
        super().update(action, observation, reward, info)


class KeepsReferences(Misbehaves):
    def reset(self, task, seed):
        self.kept = None
        super().reset(task, seed)

    def act(self, observation):
        return np.full(2, 0.3) if self.kept is None else np.clip(np.abs(self.kept["nodes"][-1:]) * np.ones(2), 0, 1)

    def update(self, action, observation, reward, info):
        super().update(action, observation, reward, info)
        if self.kept is None and info:
            self.kept = observation


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (DrawsGlobally, r"drew from the global random state of numpy\.random"),
        (Stumbles, r"Stumbles.update in round 2 raised KeyError: 'lost'"),
        (GoesOn, "a run after another one differs: reset"),
        (Outside, "act in round 1 gave an action that is not in"),
        (Undecided, r"recommend\(\) gave"),
        (Diverges, r"estimated_rewards\(\) must return an estimate for each round .* shape \(\d+,\); given NaN"),
        (ForgetsARound, r"estimated_rewards\(\) must return an estimate for each round .* given shape"),
        (Silent, "although something was played"),
        (ChangesTheTask, "reset changed the task"),
        (ChangesObservations, "update in round 1 changed its arguments"),
        (KeepsReferences, "copy what is kept"),
    ],
)
def test_what_an_agent_breaks_is_named(agent, message):
    with pytest.raises(ContractError, match=message):
        check_agent(agent, "CBO/Dropwave-v0")


def test_agents_are_given_in_many_ways():
    for agent in ("Random", "tests.support.agents:Centre", Centre, Centre(), lambda: Centre()):
        check_agent(agent, "CBO/ToyGraph-v0", rounds=2)
    with pytest.raises(ArgumentError, match="rounds must be at least 2"):
        check_agent("Random", "CBO/Dropwave-v0", rounds=1)
    with pytest.raises(TypeError, match="lacks"):
        check_agent("tests.support.agents:Incomplete", "CBO/Dropwave-v0")


def _only_numbers(dose, u):
    return (1.0 if np.ndim(dose) == 0 and dose > 0.5 else 0.0) + u


def _any(dose, u):
    return dose + u


def _not_elementwise(dose, u):
    return math.exp(dose) + u


def _branches(dose, u):
    return 1.0 if dose > 0.5 else u


def _flat(dose, u):
    return 0.0 * dose + u


def _broken(dose, u):
    return dose + u / np.float64(0.0)


def problem(mechanism, **more):
    reward = Variable("Y", mechanism, actions=(0,), noise=Uniform(0.0, 1.0))
    return Problem("Small", StructuralCausalModel([reward], "Y"), "", "", action_domains=[(0.0, 1.0)], **more)


@pytest.mark.parametrize(
    ("built", "message"),
    [
        (problem(_only_numbers), "for single numbers and .* in an array"),
        (problem(_not_elementwise), r"on arrays: the mechanism of Y fails with TypeError.*NumPy ufuncs"),
        (problem(_branches), r"on arrays: the mechanism of Y fails with ValueError"),
        (problem(_flat), "all have the expected reward"),
        (problem(_broken), "must be finite"),
        (problem(_any, optimal_action=[0.2]), "optimal_action has the expected reward 0.7"),
    ],
)
def test_what_a_problem_breaks_is_named(built, message):
    with np.errstate(all="ignore"), pytest.raises(ContractError, match=message):
        check_problem(built, mode="soft")


def test_a_wrong_composition_is_found():
    pair = StructuralCausalModel(
        [Variable("X", _any, actions=(0,), noise=Uniform(0.0, 1.0)), Variable("Y", lambda x, u: 2.0 * x, ("X",))], "Y"
    )
    right = Problem("Pair", pair, "", "", action_domains=[(0.0, 1.0)], composition=lambda nodes: 2.0 * nodes["X"])
    check_problem(right, mode="soft")
    wrong = Problem("Pair", pair, "", "", action_domains=[(0.0, 1.0)], composition=lambda nodes: nodes["X"])
    with pytest.raises(ContractError, match="composition does not give the reward"):
        check_problem(wrong, mode="soft")


def test_a_problem_is_checked_in_all_modes_that_it_fits():
    greenhouse = cbo_gym.custom_problem(
        {"warm": lambda heat, u: heat + u, "gain": lambda warm, price, u: -((warm - price) ** 2) + u},
        reward="gain",
        noise={"warm": 0.1, "gain": 0.1},
        actions={"heat": (0.0, 10.0), "price": (0.0, 5.0)},
        manipulable={"warm": (0.0, 10.0)},
    )
    check_problem(greenhouse)
    alone = Problem("Alone", StructuralCausalModel([Variable("Y", own_noise, noise=Uniform())], "Y"), "", "")
    with pytest.raises(ArgumentError, match=r"Alone fits no mode: .*no soft mode.*no hard mode"):
        check_problem(alone)
    with pytest.raises(ArgumentError, match="no contextual mode"):
        check_problem(greenhouse, mode="contextual")


def test_a_problem_in_which_nothing_can_be_set_has_no_hard_mode_to_check():
    mechanisms = {"profit": lambda heat, u: -((heat - 2.0) ** 2) + u}
    check_problem(
        cbo_gym.custom_problem(mechanisms, reward="profit", noise={"profit": 0.1}, actions={"heat": (0.0, 10.0)})
    )

"""Runs that are cut short go on where they were, bit for bit; the state of an agent is read only by who saved it."""

import os
import pickle
from base64 import b64encode
from copy import deepcopy
from threading import Lock

import numpy as np
import pytest

from cbo_gym import Execution, evaluate, make_task, sweep
from cbo_gym._util import seal
from cbo_gym._util.agent_state import HEAD, StateError
from cbo_gym._util.plain import read_plain, write_plain
from cbo_gym.agent_registry.finding import create_agent, find_agent, modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents import GPUCB
from cbo_gym.envs.making import make_env
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation import load_runs
from tests.support.agents import Centre, Odd, Sampler
from tests.support.families import ALONE, TOGETHER, by_family
from tests.support.runs import rounds_alike

ENV = "CBO/Dropwave-v0"
OF_MODE = TOGETHER | {
    "contextual": "CBO/PSAContextual2-v0",
    "subset": "CBO/LinearSEMHierarchical5-v0",
    "dynamic": "CBO/DCBOStat-v0",
    "adversarial": "CBO/Dropwave-Penny-v0",
    "partial": "CBO/GPs1-v0",
}


class StopError(Exception):
    pass


def stop_at(number):
    def stop(played):
        if played.round == number:
            raise StopError

    return stop


def play(agent, env, observation, rounds):
    found = []
    for _ in range(rounds):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(deepcopy(action), deepcopy(observation), reward, info)
        found.append((str(action), np.asarray(reward).tolist()))
    return observation, found


@pytest.mark.parametrize("name", by_family(name for name in zoo() if name != "StableBaselines3"))
@pytest.mark.usefixtures("coarse_search")
def test_an_agent_that_was_kept_goes_on_as_it_would_have(name, tmp_path):
    env = make_env(Spec(ALONE.get(name, OF_MODE[modes_of(find_agent(name))[0]])), 9)
    task = make_task(env, 100)
    observation, _ = env.reset(seed=100)
    agent = create_agent(name)
    agent.reset(deepcopy(task), 5)
    observation, _ = play(agent, env, observation, 3)
    agent.save(tmp_path / "kept")
    other_env, seen = deepcopy(env), deepcopy(observation)
    other = create_agent(name)
    other.load(tmp_path / "kept", deepcopy(task))
    assert play(other, other_env, seen, 2)[1] == play(agent, env, observation, 2)[1]
    assert str(other.recommend()) == str(agent.recommend())


def test_what_cannot_be_kept_is_named(tmp_path):
    with pytest.raises(StateError):
        evaluate("StableBaselines3", ENV, 100, horizon=3, checkpoint=tmp_path / "kept")
    agent = Centre()
    agent.lock = Lock()
    with pytest.raises(StateError, match=r"lock cannot be saved: cannot pickle '_thread.lock' object"):
        evaluate(agent, ENV, 100, horizon=3, checkpoint=tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("agent", "env", "batch"),
    [
        ("GP-UCB", "CBO/ToyGraph-v0", 1),
        ("GP-UCB", ENV, 2),
        ("Random", "CBO/PSAContextual2-v0", 1),
        ("Random", "CBO/DCBOStat-v0", 1),
        ("Random", "CBO/MOCBO3-v0", 1),
        (Sampler, ENV, 1),
        (Sampler, "CBO/ToyGraph-v0", 1),
    ],
)
@pytest.mark.usefixtures("coarse_search")
def test_a_run_that_was_cut_short_goes_on_bit_for_bit(agent, env, batch, tmp_path):
    path = tmp_path / "kept"
    how = {"horizon": 8, "batch": batch, "recommend": "powers"}
    with pytest.raises(StopError):
        evaluate(agent, env, 100, **how, checkpoint=path, checkpoint_every=3, callbacks=[stop_at(7)])
    heard = []
    again = evaluate(agent, env, 100, **how, checkpoint=path, checkpoint_every=3, callbacks=[heard.append])
    assert [played.round for played in heard] == [7, 8]
    assert rounds_alike(again, evaluate(agent, env, 100, **how))
    assert not path.exists()


def test_a_checkpoint_is_of_one_run(tmp_path):
    path = tmp_path / "kept"
    with pytest.raises(StopError):
        evaluate("Random", ENV, 100, horizon=6, checkpoint=path, checkpoint_every=2, callbacks=[stop_at(5)])
    with pytest.raises(OperationError, match="the checkpoint of a run with another seed; remove it"):
        evaluate("Random", ENV, 101, horizon=6, checkpoint=path)
    with pytest.raises(ArgumentError, match="checkpoint_every must be at least 1"):
        evaluate("Random", ENV, 100, horizon=6, checkpoint=path, checkpoint_every=0)
    other = tmp_path / "other"
    with pytest.raises(StopError):
        evaluate(Odd("list"), ENV, 100, horizon=6, checkpoint=other, checkpoint_every=2, callbacks=[stop_at(5)])
    with pytest.raises(OperationError, match="the checkpoint of a run with another parameter what; remove it"):
        evaluate(Odd("tuple"), ENV, 100, horizon=6, checkpoint=other)


@pytest.mark.parametrize("agent", ["Random", pytest.param(Centre(), marks=pytest.mark.slow)])
def test_a_sweep_goes_on_at_its_checkpoints(tmp_path, agent):
    saving = Execution(checkpoint_every=2)
    with pytest.raises(StopError):
        sweep(agent, ENV, 1, tmp_path, horizon=60, callbacks=[stop_at(5)], execution=saving)
    assert len(list(tmp_path.glob("*.checkpoint"))) == 1
    heard = []
    sweep(agent, ENV, 1, tmp_path, horizon=60, callbacks=[heard.append], execution=saving)
    assert 3 <= heard[0].round < 60
    (run,) = load_runs(tmp_path)
    assert rounds_alike(evaluate(agent, ENV, 0, horizon=60), run)
    assert not list(tmp_path.glob("*.checkpoint"))
    with pytest.raises(ArgumentError, match="a cluster's workers share no folder"):
        Execution("dask", "tcp://127.0.0.1:9", checkpoint_every=2)


class Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def played():
    agent = GPUCB()
    evaluate(agent, ENV, 100, horizon=3)
    return agent


def test_a_state_that_you_did_not_save_is_refused(tmp_path, monkeypatch, played):
    made = tmp_path / "made"
    forged = pickle.dumps(Runs(made))
    genuine = played.state()
    for state in (
        forged,
        HEAD + b"0" * 64 + forged,
        HEAD + "ü".encode("latin-1") * 64 + forged,
        genuine[: len(HEAD) + 64] + forged,
        genuine[:-1],
        HEAD,
        b"",
        b"PK\3\4" + forged,
    ):
        history = list(played.history)
        with pytest.raises(ArgumentError, match=r"not sealed with your key|not a state of an agent|an older cbo-gym"):
            played.restore(state, played.task)
        (tmp_path / "state").write_bytes(state)
        with pytest.raises(ArgumentError):
            played.load(tmp_path / "state", played.task)
        assert played.history == history
    assert not made.exists()
    monkeypatch.setenv(seal.KEY_VARIABLE, str(tmp_path / "key of another user"))
    with pytest.raises(ArgumentError, match=r"pass trusted=True"):
        played.restore(genuine, played.task)
    other = GPUCB()
    other.restore(genuine, played.task, trusted=True)
    assert str(other.recommend()) == str(played.recommend())
    with pytest.raises(ArgumentError, match="cannot be read"):
        other.restore(HEAD + b"0" * 64 + b"nothing", played.task, trusted=True)


def test_a_state_is_of_one_class_and_needs_a_key(tmp_path, monkeypatch, played):
    with pytest.raises(ArgumentError, match="a state of GPUCB; the agent is a Centre"):
        Centre().restore(played.state(), played.task)
    (tmp_path / "file").touch()
    monkeypatch.setenv(seal.KEY_VARIABLE, str(tmp_path / "file" / "key"))
    with pytest.raises(StateError, match=r"cannot be sealed, because .*key cannot be written; set CBO_GYM_KEY"):
        played.state()


def test_a_forged_checkpoint_runs_nothing(tmp_path):
    """Its rounds are plain data, and the agent in it is refused."""
    path, made = tmp_path / "kept", tmp_path / "made"
    with pytest.raises(StopError):
        evaluate("GP-UCB", ENV, 100, horizon=6, checkpoint=path, checkpoint_every=2, callbacks=[stop_at(5)])
    sealed = b64encode(HEAD + b"0" * 64 + pickle.dumps(Runs(made))).decode()
    forged = write_plain({**read_plain(path.read_bytes()), "agent": sealed})
    for content in (pickle.dumps(Runs(made)), b"[1]", b"PK\3\4", forged, forged[:-9]):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=r"is not a checkpoint|not sealed with your key"):
            evaluate("GP-UCB", ENV, 100, horizon=6, checkpoint=path)
    assert not made.exists()

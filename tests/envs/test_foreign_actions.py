"""Actions of any type: each is read once, refused unless it is valid, and never shared with the caller."""

import array
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.error import InvalidAction

from cbo_gym.actions import CellBox
from cbo_gym.envs.wrappers import DiscreteAction
from tests.support.foreign_actions import (
    GAMES,
    OF_FEEDBACK,
    SCALAR,
    VECTOR,
    Becomes,
    Method,
    malformed,
    method_of,
    numbers_of,
    vector_of,
)

#: modes with which a method is tested; the dynamics, which all of them ask, are tested with all modes
MODES_OF: dict[str, list[str]] = {
    "step": ["hard", "dynamic", "partial"],
    "vector step": ["soft", "contextual", "adversarial"],
    "FlattenAction": ["hard", "masked"],
    "DiscreteAction": ["aggregated"],
    "TopKMask": ["soft under a limit"],
    "OracleInfo": ["hard", "masked"],
    "FlattenAction on OracleInfo": ["contextual"],
    "VectorOracleInfo": ["soft"],
}
PLAYED = [(mode, name) for name in [*SCALAR, *VECTOR] for mode in MODES_OF[name]]
METHODS = [*PLAYED, *((mode, name) for name in OF_FEEDBACK for mode in GAMES)]


def takes_batches(name: str) -> bool:
    return name in VECTOR or OF_FEEDBACK.get(name, False)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("mode", "name"), METHODS)
def test_an_invalid_action_is_refused_and_changes_nothing(mode: str, name: str) -> None:
    method, twin = method_of(mode, name), method_of(mode, name)
    tried = 0
    for wrong in malformed(method.good, method.space, takes_batches(name)):
        tried += 1
        with pytest.raises(InvalidAction) as caught:
            method.play(wrong)
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) < 1000
        assert any(word in message for word in ("must", "outside", "at most", "give ")), message
    assert tried > 50
    assert method.later() == twin.later()


def in_parts(action: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The action with every array of it changed."""
    if isinstance(action, dict):
        return {key: in_parts(value, change) for key, value in action.items()}
    return change(action) if isinstance(action, np.ndarray) else action


def at_corners(method: Method) -> Any:
    """The valid action as whole numbers, which every kind of number can hold."""
    if isinstance(method.space, CellBox):  # a cell is not empty
        lower = np.zeros_like(method.good)
        lower[..., 1, :] = 1.0
        return lower
    return in_parts(method.good, lambda part: part * 0 + (method.space.null[0] if hasattr(method.space, "null") else 0))


KINDS: list[Callable[[np.ndarray], Any]] = [
    list,
    Becomes,
    torch.tensor,
    np.asfortranarray,
    np.ndarray.tolist,
    lambda part: tuple(part.tolist()),
    lambda part: part.astype(np.float32 if part.dtype == float else np.uint8),
    lambda part: part.astype(np.longdouble if part.dtype == float else ">i4"),
    lambda part: array.array("d" if part.dtype == float else "q", part.tolist()) if part.ndim == 1 else part,
]


@pytest.mark.parametrize(("mode", "name"), METHODS)
def test_every_kind_of_number_and_list_means_the_same(mode: str, name: str) -> None:
    method, twin = method_of(mode, name), method_of(mode, name)
    good = at_corners(method)
    for kind in KINDS:
        ours, theirs = method.play(in_parts(good, kind)), twin.play(good)
        assert numbers_of(ours) == numbers_of(theirs)


class Fickle:
    """Another action every time that NumPy reads it."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.reads = answers, 0

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        self.reads += 1
        return np.asarray(self.answers[min(self.reads, len(self.answers)) - 1])


@pytest.mark.parametrize(("mode", "name"), METHODS)
def test_an_action_is_read_once(mode: str, name: str) -> None:
    method, twin = method_of(mode, name), method_of(mode, name)
    made: list[Fickle] = []

    def fickle(part: Any) -> Fickle:
        made.append(Fickle([part, np.zeros_like(part)]))
        return made[-1]

    good = method.good
    unstable = {key: fickle(value) for key, value in good.items()} if isinstance(good, dict) else fickle(good)
    ours, theirs = method.play(unstable), twin.play(good)
    assert [one.reads for one in made] == [1] * len(made)
    assert numbers_of(ours) == numbers_of(theirs)


def spoil(thing: Any) -> None:
    """Change every array, dict and list in place."""
    if isinstance(thing, np.ndarray):
        thing[...] = ~thing if thing.dtype == bool else 1 - thing
    elif isinstance(thing, dict):
        for value in thing.values():
            spoil(value)
        thing["spoilt"] = True
    elif isinstance(thing, list | tuple):
        for value in thing:
            spoil(value)


@pytest.mark.parametrize("name", ["read", "read_batch"])
@pytest.mark.parametrize("mode", GAMES)
def test_a_read_action_is_a_copy(mode: str, name: str) -> None:
    method = method_of(mode, name)
    kept = deepcopy(method.good)
    own = method.play(method.good)
    assert numbers_of(own) == numbers_of(kept)
    assert own in (method.env.action_space if name == "read_batch" else method.space)
    parts = own.values() if isinstance(own, dict) else [own]
    assert all(type(part) in (int, np.ndarray) for part in parts)
    spoil(method.good)
    assert numbers_of(own) == numbers_of(kept)
    assert numbers_of(method.play(own)) == numbers_of(kept)


@pytest.mark.parametrize(("mode", "name"), PLAYED)
def test_changes_to_arrays_by_the_caller_have_no_effect(mode: str, name: str) -> None:
    """Neither to the arrays that it passed nor to those that were returned."""
    env_id, parameters = GAMES[mode]
    played: list[list[Any]] = []
    for spoils in (False, True):
        if name in VECTOR:
            env = VECTOR[name](vector_of(mode, render_mode="ansi", max_episode_steps=3))
        else:
            env = SCALAR[name](gym.make(env_id, render_mode="ansi", max_episode_steps=3, **parameters))
        env.action_space.seed(0)
        returned = env.reset(seed=2)
        played.append([numbers_of(returned)])
        for _ in range(3):
            if spoils:
                spoil(returned)
            action = env.action_space.sample()
            returned = env.step(action)
            played[-1].append(numbers_of(returned))
            if spoils:
                spoil(returned)
                spoil(action)
            played[-1].append(env.render())
        played[-1].append(numbers_of(env.reset()))
    assert played[0] == played[1]


def test_discrete_actions_return_copies() -> None:
    env = DiscreteAction(gym.make("CBO/Dropwave-v0"), count=4)
    first = env.action(2).copy()
    env.action(2)[:] = 0.0
    np.testing.assert_array_equal(env.action(2), first)

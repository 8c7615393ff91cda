"""Actions of any type: each is read once, refused unless it is valid, and never shared with the caller."""

from __future__ import annotations

import array
import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.error import InvalidAction
from scipy import sparse

from cbo_gym.actions import CellBox
from cbo_gym.envs.registry import entries
from cbo_gym.envs.wrappers import DiscreteAction, FlattenAction, OracleInfo, TopKMask, VectorOracleInfo
from cbo_gym.task import Mode

GAMES = {entry.mode: (entry.id, {}) for entry in reversed(entries())}
GAMES[Mode.MASKED] = ("CBO/SSEMPeriodic-v1", {})  # Gymnasium warns of version 0, and warnings are errors here
GAMES["soft under a limit"] = ("CBO/Dropwave-v0", {"max_interventions": 1})
HUGE, TOO_LONG_TO_PRINT = 10**400, 10**5000


class Raises:
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise ZeroDivisionError("two\nlines")


class HasNoRepr:
    def __repr__(self) -> str:
        raise ZeroDivisionError("no repr")


class Becomes:
    """An array to NumPy, whatever it is."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.array


class BrokenDict(Mapping):  # type: ignore[type-arg]
    def __init__(self, size: int) -> None:
        self.size = size

    def __getitem__(self, key: Any) -> Any:
        raise ZeroDivisionError("no entry")

    def __iter__(self) -> Iterator[Any]:
        raise ZeroDivisionError("no keys")

    def __len__(self) -> int:
        return self.size


def first_replaced(numbers: np.ndarray, by: Any) -> Any:
    """Nested lists with one other entry."""
    nested = numbers.tolist()
    innermost = nested
    while isinstance(innermost[0], list):
        innermost = innermost[0]
    innermost[0] = by
    return nested


NO_NUMBERS: list[Any] = [
    None, "left", "0.5", b"0.5", object(), object, len, Raises(), HasNoRepr(), HUGE, TOO_LONG_TO_PRINT, 1j, np.nan,
    {}, set(), {0.5}, frozenset([0.5]), BrokenDict(1), decimal.Decimal("0.5"), fractions.Fraction(1, 2), slice(1),
    datetime.date(2024, 1, 1), np.datetime64("2024-01-01"), np.timedelta64(1, "D"), np.ma.masked, ..., True, np.True_,
]  # fmt: skip
PARTS: list[Any] = [
    None, "0.5", "1", b"1", HUGE, TOO_LONG_TO_PRINT, True, False, np.True_, 0.5j, np.nan, np.inf, -np.inf, 1.0 + 1e-9,
    -1e-9, 2, -1, 2**70, decimal.Decimal("0.5"), fractions.Fraction(1, 2), datetime.date(2024, 1, 1),
    datetime.timedelta(1), np.datetime64("2024-01-01"), np.timedelta64(1, "D"), np.ma.masked, {}, {0.5}, object(),
    Raises(), np.array(True), [0.5, 0.5, 0.5], [], np.longdouble("1e4000"),
]  # fmt: skip


def no_arrays(good: np.ndarray) -> Iterator[Any]:
    """Values that are not an array of numbers like ``good``."""
    yield from NO_NUMBERS
    yield from (first_replaced(good, by) for by in PARTS)
    kinds = (complex, bool, str, "S8", object, "datetime64[D]", "timedelta64[D]")
    yield from (good.astype(kind) for kind in kinds)
    yield from (Becomes(good.astype(kind)) for kind in kinds)
    yield from (Becomes("text"), Becomes(np.ma.array(good)), Becomes(None))
    yield from (torch.tensor(good > 0.5), torch.tensor(good).to(torch.complex64), torch.tensor(good).requires_grad_())
    yield from (
        good[..., :-1],
        good[None],
        good[0],
        good[..., None],
        good[..., :0],
        np.append(good, good),
        np.float64(0.5),
    )
    yield from (np.full_like(good, number) for number in (np.nan, np.inf, -np.inf, 1.0 + 1e-9, -1e-9))
    yield from (np.ma.array(good), np.ma.array(good, mask=good > 0.5), sparse.csr_array(np.atleast_2d(good.T[0].T)))
    yield from ([good.tolist(), [0.5]], iter(good), (row for row in good), map(float, good.ravel()), zip(good))
    yield from (good.tobytes(), bytearray(good.tobytes()), memoryview(good), memoryview(good.tobytes()))
    yield from (dict(enumerate(good.tolist())), {"action": good}, good.astype([("x", float)]), [[[[[good]]]]])
    endless: list[Any] = []
    endless.append(endless)
    yield endless


def no_indices(count: int) -> Iterator[Any]:
    """Values that are not a whole number below ``count``."""
    yield from NO_NUMBERS
    yield from (
        False,
        1.0,
        np.float64(1.0),
        0.5,
        np.inf,
        "1",
        b"1",
        -1,
        count,
        2**63,
        2**70,
        -(2**70),
        np.uint64(2**63),
    )
    yield from ([0], (0,), [[0]], np.array([0]), np.array([[0]]), np.array(1.0), np.array(True), np.array("0"))
    yield from (np.ma.array(0), Becomes(np.array(True)), Becomes("1"), torch.tensor(True), torch.tensor(1.0), iter([0]))


def no_index_batches(good: np.ndarray, count: int) -> Iterator[Any]:
    yield from NO_NUMBERS
    yield from (first_replaced(good, by) for by in [*no_indices(count)])
    yield from (good.astype(kind) for kind in (float, complex, bool, str, object, "timedelta64[D]"))
    yield from (good[:-1], good[None], int(good[0]), np.ma.array(good), iter(good), good[:0], [])


def no_dicts(good: dict[str, Any]) -> Iterator[Any]:
    key = next(name for name in good if name != "values")
    yield from (None, "left", 3, 0.5, np.full(3, 0.5), [], [*good], [*good.items()], iter(good), {1, 2}, object(), {})
    yield from ({**good, "more": 1}, {key: good[key]}, {"values": good["values"]}, BrokenDict(2), BrokenDict(3))
    yield from ({key.upper(): good[key], "values": good["values"]}, {0: good[key], 1: good["values"]}, np.array(good))
    yield from (Becomes(np.full(3, 0.5)), Raises(), HasNoRepr(), {key.encode(): good[key], b"values": good["values"]})


def malformed(good: Any, space: gym.Space[Any], batch: bool) -> Iterator[Any]:
    """Invalid actions made from a valid one."""
    if isinstance(good, dict):
        key = next(name for name in good if name != "values")
        yield from no_dicts(good)
        yield from ({**good, "values": other} for other in no_arrays(good["values"]))
        count = space[key].n  # type: ignore[index]
        others = no_index_batches(good[key], count) if batch else no_indices(count)
        yield from ({**good, key: other} for other in others)
    elif isinstance(space, gym.spaces.Discrete) and batch:
        some = no_index_batches(good, int(space.n))  # whole numbers are a batch, however many they are
        yield from (other for other in some if not (type(other) is np.ndarray and other.dtype == good.dtype))
        yield good[None]
    elif isinstance(space, gym.spaces.Discrete):
        yield from no_indices(int(space.n))
    else:
        yield from no_arrays(np.asarray(good, dtype=float))


class Method:
    """A method that takes actions.

    Args:
        space: Space of one action.
        play: Called with one action, or a batch of three.
        good: A valid action, or a batch.
        env: Its environment.
    """

    def __init__(self, space: Any, play: Callable[[Any], Any], good: Any, env: Any) -> None:
        self.space, self.play, self.good, self.env = space, play, good, env

    def later(self) -> Any:
        return [numbers_of(self.env.step(self.env.action_space.sample())) for _ in range(2)]


def numbers_of(thing: Any) -> Any:
    """Plain numbers, for comparisons."""
    if isinstance(thing, dict):
        return {key: numbers_of(value) for key, value in thing.items()}
    if isinstance(thing, tuple | list):
        return [numbers_of(value) for value in thing]
    return np.asarray(thing).tolist()


SCALAR: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env,
    "FlattenAction": FlattenAction,
    "DiscreteAction": DiscreteAction,
    "TopKMask": TopKMask,
    "OracleInfo": OracleInfo,
    "FlattenAction on OracleInfo": lambda env: FlattenAction(OracleInfo(env)),
}
VECTOR: dict[str, Callable[[Any], Any]] = {"vector step": lambda envs: envs, "VectorOracleInfo": VectorOracleInfo}
OF_FEEDBACK = {"read": False, "read_batch": True}
#: modes with which a wrapper is tested; all, where none are listed
MODES_OF: dict[str, list[str]] = {
    "FlattenAction": ["hard", "masked"],
    "DiscreteAction": ["aggregated"],
    "TopKMask": ["soft under a limit"],
    "OracleInfo": ["hard", "soft", "masked"],
    "FlattenAction on OracleInfo": ["contextual"],
    "VectorOracleInfo": ["hard", "soft", "masked"],
}
PLAYED = [(mode, name) for name in [*SCALAR, *VECTOR] for mode in MODES_OF.get(name, GAMES)]
METHODS = [*PLAYED, *((mode, name) for name in OF_FEEDBACK for mode in GAMES)]


def vector_of(mode: str, **more: Any) -> Any:
    env_id, parameters = GAMES[mode]
    return gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point", **parameters, **more)


def method_of(mode: str, name: str) -> Method:
    env_id, parameters = GAMES[mode]
    if name in SCALAR:
        env = SCALAR[name](gym.make(env_id, **parameters))
        env.reset(seed=4)
        env.action_space.seed(1)
        return Method(env.action_space, env.step, env.action_space.sample(), env)
    envs = VECTOR.get(name, VECTOR["vector step"])(vector_of(mode))
    envs.reset(seed=4)
    envs.action_space.seed(1)
    space, good = envs.single_action_space, envs.action_space.sample()
    if name in VECTOR:
        return Method(space, envs.step, good, envs)
    if OF_FEEDBACK[name]:
        return Method(space, getattr(envs.unwrapped.feedback, name), good, envs)
    single = {key: value[0] for key, value in good.items()} if isinstance(good, dict) else good[0]
    env: Any = gym.make(env_id, **parameters)
    env.reset(seed=4)
    env.action_space.seed(1)
    return Method(space, getattr(env.unwrapped.feedback, name), single, env)


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

"""Actions of any type, and the methods that take actions."""

import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from scipy import sparse

from cbo_gym.envs.registry import entries
from cbo_gym.envs.wrappers import DiscreteAction, FlattenAction, OracleInfo, TopKMask, VectorOracleInfo
from cbo_gym.task import Mode

# Gymnasium warns of version 0 of SSEMPeriodic, and warnings are errors here.
GAMES = {entry.mode: (entry.id, {}) for entry in reversed(entries())} | {
    Mode.MASKED: ("CBO/SSEMPeriodic-v1", {}),
    "soft under a limit": ("CBO/Dropwave-v0", {"max_interventions": 1}),
}
HUGE, TOO_LONG_TO_PRINT = 10**400, 10**5000


class Raises:
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise ZeroDivisionError("two\nlines")


class Exits:
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise SystemExit(0)

    __repr__ = __array__


class HasNoRepr:
    def __repr__(self) -> str:
        raise ZeroDivisionError("no repr")


class Becomes:
    """An object that NumPy converts to ``array``."""

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
    """Return nested lists whose first number is replaced."""
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
    Exits(), range(10**9), np.broadcast_to(1, (10**6, 10**6)), Becomes(np.broadcast_to(1, (10**6, 10**6))),
]  # fmt: skip


PARTS: list[Any] = [
    None, "0.5", "1", b"1", HUGE, TOO_LONG_TO_PRINT, True, False, np.True_, 0.5j, np.nan, np.inf, -np.inf, 1.0 + 1e-9,
    -1e-9, 2, -1, 2**70, decimal.Decimal("0.5"), fractions.Fraction(1, 2), datetime.date(2024, 1, 1),
    datetime.timedelta(1), np.datetime64("2024-01-01"), np.timedelta64(1, "D"), np.ma.masked, {}, {0.5}, object(),
    Raises(), np.array(True), [0.5, 0.5, 0.5], [], np.longdouble("1e4000"),
]  # fmt: skip


def no_arrays(good: np.ndarray) -> Iterator[Any]:
    """Yield values that are not an array of numbers like ``good``."""
    yield from NO_NUMBERS
    yield from (first_replaced(good, by) for by in PARTS)
    kinds = (complex, bool, str, "S8", object, "datetime64[D]", "timedelta64[D]")
    yield from (good.astype(kind) for kind in kinds)
    yield from (Becomes(good.astype(kind)) for kind in kinds)
    yield from (Becomes("text"), Becomes(np.ma.array(good)), Becomes(None))
    yield from (torch.tensor(good > 0.5), torch.tensor(good).to(torch.complex64), torch.tensor(good).requires_grad_())
    yield from (good[..., :-1], good[None], good[0], good[..., None], good[..., :0], np.append(good, good))
    yield np.float64(0.5)
    yield from (np.full_like(good, number) for number in (np.nan, np.inf, -np.inf, 1.0 + 1e-9, -1e-9))
    yield from (np.ma.array(good), np.ma.array(good, mask=good > 0.5), sparse.csr_array(np.atleast_2d(good.T[0].T)))
    yield from ([good.tolist(), [0.5]], iter(good), (row for row in good), map(float, good.ravel()), zip(good))
    yield from (good.tobytes(), bytearray(good.tobytes()), memoryview(good), memoryview(good.tobytes()))
    yield from (dict(enumerate(good.tolist())), {"action": good}, good.astype([("x", float)]), [[[[[good]]]]])
    endless: list[Any] = []
    endless.append(endless)
    yield endless


def no_indices(count: int) -> Iterator[Any]:
    """Yield values that are not a whole number below ``count``."""
    yield from NO_NUMBERS
    yield from (False, 1.0, np.float64(1.0), 0.5, np.inf, "1", b"1", -1, count)
    yield from (2**63, 2**70, -(2**70), np.uint64(2**63))
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
    """Yield invalid actions made from a valid action."""
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
    """Return dicts, tuples, lists and arrays as plain numbers, for comparisons."""
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
# Methods of an interface, and whether they take batches.
OF_FEEDBACK = {"read": False, "read_batch": True}


def vector_of(mode: str, **more: Any) -> Any:
    env_id, parameters = GAMES[mode]
    return gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point", **parameters, **more)


def method_of(mode: str, name: str) -> Method:
    env_id, parameters = GAMES[mode]
    is_batched = name in VECTOR or OF_FEEDBACK.get(name, False)
    env: Any = (
        VECTOR.get(name, VECTOR["vector step"])(vector_of(mode)) if is_batched else gym.make(env_id, **parameters)
    )
    env = SCALAR[name](env) if name in SCALAR else env
    env.reset(seed=4)
    env.action_space.seed(1)
    play = getattr(env.unwrapped.dynamics, name) if name in OF_FEEDBACK else env.step
    return Method(env.single_action_space if is_batched else env.action_space, play, env.action_space.sample(), env)

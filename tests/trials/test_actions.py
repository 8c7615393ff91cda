"""Everything that is no action, at every place that takes one: refused in one line, soon, and nothing has happened."""

import sys
import time
from collections import UserList
from collections.abc import Sequence

import numpy as np
import pytest
from gymnasium.error import InvalidAction

from tests.support.foreign_actions import GAMES, SCALAR, VECTOR, Becomes, malformed, method_of, numbers_of
from tests.trials.helpers import say

pytestmark = pytest.mark.slow

SECONDS, LONGEST = 1.0, 1000
COUNT = {"doors": 0, "tried": 0, "refused": 0}
SLOWEST = [(0.0, "")]


class Exits:
    def __array__(self, *_, **__):
        sys.exit(0)

    def __repr__(self):
        sys.exit(0)


class Endless(Sequence):
    def __getitem__(self, index):
        return 0.5

    def __len__(self):
        return 1


class Liar(np.ndarray):
    """Says that it has another shape and other numbers."""

    shape = (1,)
    dtype = np.dtype(object)

    def __array__(self, *_, **__):
        return np.array("text")


class Texts(str):
    __slots__ = ()

    def __float__(self):
        return 0.5


class Truth(int):
    """An int that is always larger than itself."""

    def __lt__(self, other):
        return False

    def __ge__(self, other):
        return True

    def __index__(self):
        raise ZeroDivisionError

    __gt__, __le__, __float__ = __ge__, __lt__, __index__


def full_of(part, levels):
    for _ in range(levels):
        part = [part] * 100
    return part


HUGE = {
    "a range": range(10**9),
    "lists of lists": full_of(0.5, 7),
    "a long list of texts": ["0.5"] * 1_000_000,
    "a long text": "0" * 10_000_000,
    "long bytes": bytes(10_000_000),
    "a view of much": np.broadcast_to(0.5, (10**6, 10**6)),
    "a view of many ints": np.broadcast_to(1, (10**6, 10**6)),
    "an array of a view": Becomes(np.broadcast_to(1, (10**6, 10**6))),
    "a large array": np.zeros(20_000_000, dtype=np.float32),
    "a large set": set(range(300_000)),
    "a large dict": dict.fromkeys(range(300_000), 0.5),
    "many axes": np.zeros((1,) * 32),
    "endless": Endless(),
    "exits": Exits(),
    "a list that exits": [Exits()],
    "a user's list": UserList(["0.5"]),
    "lying int": Truth(10**30),
    "text that is a number": Texts("0.5"),
    "an array that lies": np.zeros((7, 7, 7)).view(Liar),
}


def hostile(good, batch, space):
    yield from malformed(good, space, batch)
    yield from HUGE.values()
    if isinstance(good, dict):
        yield from ({**good, key: huge} for key in good for huge in HUGE.values())


PLACES = [(mode, name) for mode in GAMES for name in [*SCALAR, *VECTOR]
          if name != "TopKMask" or mode == "soft under a limit"]  # fmt: skip


@pytest.mark.parametrize(("mode", "name"), PLACES)
def test_malformed_actions(mode, name):
    method, twin = method_of(mode, name), method_of(mode, name)
    COUNT["doors"] += 1
    passed = []
    for number, wrong in enumerate(hostile(method.good, name in VECTOR, method.space)):
        start = time.perf_counter()
        try:
            method.play(wrong)
            passed.append((number, "played"))
        except InvalidAction as error:
            message = str(error)
            COUNT["refused"] += 1
            if "\n" in message or len(message) > LONGEST:
                passed.append((number, message[:200]))
        except BaseException as error:
            passed.append((number, type(error).__name__))
        seconds = time.perf_counter() - start
        SLOWEST.append((seconds, f"{type(wrong).__name__} to {name} in {mode}"))
        if seconds > SECONDS:
            passed.append((number, type(wrong).__name__, f"{seconds:.2f} s"))
        COUNT["tried"] += 1
    assert passed == []
    assert method.later() == twin.later()
    assert numbers_of(method.play(method.good)) == numbers_of(twin.play(twin.good))


def test_report():
    slowest, what = max(SLOWEST)
    say("malformed actions", f"{COUNT['doors']} places", f"{COUNT['tried']} tried", f"{COUNT['refused']} refused",
        f"slowest {slowest:.2f} s: {what}")  # fmt: skip
    assert COUNT["tried"] == COUNT["refused"]

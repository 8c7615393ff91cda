"""A process in which keywords are tried, one case after the other, for the trial of keywords.

A case is a constructor, a name and keyword arguments whose values are expressions of Python: it can be sent, printed
and typed in again. If the process hangs, dies or wants too much memory, no other process is affected.
"""

from __future__ import annotations

import importlib
import time
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.worker import Limits, Worker
from cbo_gym.agent_registry import finding as specs
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import CBOGymError

MEMORY = 4096.0  # MiB of the process; a quarter is more than it holds between two cases
REFUSAL, MAKING = 2.0, 10.0  # seconds of the processor's time
PATIENCE = 20.0  # seconds of the clock, on a machine that others use as well
LONGEST = 4000  # characters of a message: values are shown in short
OF_GYMNASIUM = ("render_mode", "max_episode_steps", "num_envs")  # it looks at these itself, before or after us


class Case(NamedTuple):
    """``way`` is a key of :data:`WAYS`."""

    way: str
    name: str
    keywords: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.way} {self.name}({', '.join(f'{key}={value}' for key, value in self.keywords.items())})"


class Answer(NamedTuple):
    """``made`` and played, ``refused`` by a named error, or ``wrong``, with the message."""

    outcome: str
    said: str = ""
    seconds: float = 0.0


class Workplace:
    """The process, which is started again if a case ends it."""

    def __init__(self) -> None:
        self._worker = Worker(Limits(PATIENCE, MEMORY))

    def __enter__(self) -> Workplace:
        self._worker.call(load_libraries, None, time_limit=20 * PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def ask(self, case: Case) -> Answer:
        try:
            return Answer(*self._worker.call(answer, case))
        except DiedError as error:
            self._worker.call(load_libraries, None, time_limit=20 * PATIENCE)
            return Answer("wrong", str(error))


def load_libraries(_: None) -> None:
    """Import all agents before seconds are counted."""
    warnings.simplefilter("ignore")
    for agent in specs.known_agents():
        with suppress(CBOGymError):
            specs.find_agent(agent)


def answer(case: Case) -> Answer:
    """Try a case, here and now."""
    start = time.process_time()
    try:
        given = {keyword: eval(string, names()) for keyword, string in case.keywords.items()}
        start = time.process_time()  # some values take a while to make
        WAYS[case.way](case.name, given)
    except CBOGymError as error:
        return _judged(error, time.process_time() - start)
    except BaseException as error:
        seconds = time.process_time() - start
        if _is_gymnasiums_own(error, case):
            return Answer("refused", "by Gymnasium", seconds)
        return Answer("wrong", f"{type(error).__name__}: {_text(error)[:300]} ({_place(error)})", seconds)
    seconds = time.process_time() - start
    return Answer("made" if seconds <= MAKING else "wrong", f"made in {seconds:.1f} s", seconds)


def _judged(error: BaseException, seconds: float) -> Answer:
    """A named error, unless it took too long, too much memory or too many words."""
    said, wrong = _text(error), ""
    if seconds > REFUSAL:
        wrong = f"refused in {seconds:.1f} s: "
    elif any(isinstance(one, MemoryError) for one in _chain(error)):
        wrong = "out of memory: "
    elif not said or len(said) > LONGEST:
        wrong = f"says {len(said)} characters: "
    return Answer("wrong" if wrong else "refused", f"{wrong}{said[:300]}", seconds)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "without a text"


def _chain(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *_chain(error.__cause__ or error.__context__)]


def _place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _is_gymnasiums_own(error: BaseException, case: Case) -> bool:
    """Whether Gymnasium raises it, of a keyword that it looks at itself: nothing of this package was called."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/cbo_gym/" in frame.filename]
    return not ours and not set(OF_GYMNASIUM).isdisjoint(case.keywords)


def _play(env: Any) -> None:
    env.reset(seed=0)
    env.action_space.seed(0)
    env.step(env.action_space.sample())
    env.close()


NATIVE = {"num_envs": 2, "vectorization_mode": "vector_entry_point"}
WAYS = {
    "make": lambda name, keywords: _play(gym.make(name, **keywords)),
    "make_vec": lambda name, keywords: _play(gym.make_vec(name, **{**NATIVE, **keywords})),
    "make_env": lambda name, keywords: _play(specs.make_env(Spec(name, tuple(keywords.items())))),
    "create_agent": lambda name, keywords: specs.create_agent(Spec(name, tuple(keywords.items()))),
}


def deep(levels: int) -> list[Any]:
    """A list in a list in a list ..."""
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def names() -> dict[str, Any]:
    """The names that expressions of values may use."""
    found = {"deep": deep, "np": importlib.import_module("numpy"), "nan": float("nan"), "inf": float("inf")}
    found |= vars(importlib.import_module("cbo_gym.scm"))
    for module, name in (("decimal", "Decimal"), ("fractions", "Fraction"), ("collections", "UserDict")):
        found[name] = getattr(importlib.import_module(module), name)
    return found

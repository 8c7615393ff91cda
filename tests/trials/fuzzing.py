"""A process in which keywords are tried, one case after the other, for the trial of keywords.

A case is a way of making something, its name and keyword arguments whose values are texts of Python: it can be sent,
printed and typed in again. What happens to the process, that it hangs, dies or wants too much memory, happens to no
other.
"""

from __future__ import annotations

import importlib
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cbo_gym.evaluation.play.processes import DiedError, Limits, Worker

MEMORY = 4096.0  # MiB of the process; a quarter is more than it holds between two cases
REFUSAL, MAKING = 2.0, 10.0  # seconds of the processor's time
PATIENCE = 20.0  # seconds of the clock, on a machine that others use as well
LONGEST = 4000  # characters of a message: values are shown in short
OF_GYMNASIUM = ("render_mode", "max_episode_steps", "num_envs")  # it looks at these itself, before or after us


class Case(NamedTuple):
    """``way`` is ``make``, ``make_vec``, ``make_env`` or ``create_agent``."""

    way: str
    name: str
    keywords: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.way} {self.name}({', '.join(f'{key}={text}' for key, text in self.keywords.items())})"


class Answer(NamedTuple):
    """``made`` and played, ``refused`` by a named error, or what went ``wrong``, and what was said."""

    outcome: str
    said: str = ""
    seconds: float = 0.0


class Workplace:
    """The process, started anew where a case was its end."""

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
    """Import what takes long, before seconds are counted."""
    warnings.simplefilter("ignore")
    import cbo_gym.specs

    for agent in cbo_gym.specs.usable_agents():
        cbo_gym.specs.find_agent(agent)


def answer(case: Case) -> Answer:
    """Try a case, here and now."""
    from cbo_gym.errors import CBOGymError

    start = time.process_time()
    try:
        given = {keyword: eval(text, names()) for keyword, text in case.keywords.items()}
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
    said = _text(error)
    if seconds > REFUSAL:
        return Answer("wrong", f"refused in {seconds:.1f} s: {said[:300]}", seconds)
    if any(isinstance(one, MemoryError) for one in _chain(error)):
        return Answer("wrong", f"out of memory: {said[:300]}", seconds)
    if not said or len(said) > LONGEST:
        return Answer("wrong", f"says {len(said)} characters: {said[:300]}", seconds)
    return Answer("refused", said[:300], seconds)


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


def _make(name: str, keywords: dict[str, Any]) -> None:
    import gymnasium as gym

    _play(gym.make(name, **keywords))


def _make_vec(name: str, keywords: dict[str, Any]) -> None:
    import gymnasium as gym

    _play(gym.make_vec(name, **{"num_envs": 2, "vectorization_mode": "vector_entry_point", **keywords}))


def _make_env(name: str, keywords: dict[str, Any]) -> None:
    from cbo_gym.specs import Spec, make_env

    _play(make_env(Spec(name, tuple(keywords.items()))))


def _create_agent(name: str, keywords: dict[str, Any]) -> None:
    from cbo_gym.specs import Spec, create_agent

    create_agent(Spec(name, tuple(keywords.items())))


def _play(env: Any) -> None:
    env.reset(seed=0)
    env.action_space.seed(0)
    env.step(env.action_space.sample())
    env.close()


WAYS = {"make": _make, "make_vec": _make_vec, "make_env": _make_env, "create_agent": _create_agent}


def deep(levels: int) -> list[Any]:
    """A list in a list in a list ..."""
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def names() -> dict[str, Any]:
    """What the texts of values may speak of."""
    found = {"deep": deep, "np": importlib.import_module("numpy"), "nan": float("nan"), "inf": float("inf")}
    found |= vars(importlib.import_module("cbo_gym.scm"))
    for module, name in (("decimal", "Decimal"), ("fractions", "Fraction"), ("collections", "UserDict")):
        found[name] = getattr(importlib.import_module(module), name)
    return found

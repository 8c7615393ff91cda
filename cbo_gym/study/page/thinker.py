"""Calls of agents in a process of their own, which is ended if a call takes too long."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from cbo_gym.arguments import require_positive
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.evaluation.play.processes import DiedError, Limits, Worker
from cbo_gym.study.files import checked
from cbo_gym.study.page.reporting import sections
from cbo_gym.study.study import Study, create_study
from cbo_gym.yaml_files import Lines

THINK_SECONDS = 600.0
MAX_STUDIES = 16  # whose agents the process keeps
Answer = TypeVar("Answer")


class Thinker:
    """Calls agents one at a time in a worker process, which keeps them for the next call.

    Args:
        seconds: Time limit of a call.

    Raises:
        ArgumentError: if the limit is not a finite number above 0.
    """

    def __init__(self, seconds: float = THINK_SECONDS) -> None:
        require_positive("think_seconds", seconds)
        self._worker = Worker(Limits(time_limit=seconds))
        self._thread = ThreadPoolExecutor(1, "thinking")

    def submit(self, function: Callable[..., Answer], *arguments: Any) -> Future[Answer]:
        """Call a function of this module in the worker, after the calls that were submitted before."""
        return self._thread.submit(self._call, function, arguments)

    def close(self) -> None:
        """End the worker process and the call that it is making."""
        self._worker.close()

    def _call(self, function: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
        try:
            refused, answer = self._worker.call(_answer, (function, arguments))
        except DiedError as error:
            reason = str(error)
            if "\n" in reason:
                logging.getLogger("cbo_gym.study").error("the agent fails: %s", reason)
                reason = "it raised an error, which the terminal of the server shows"
            raise OperationError(
                f"the agent gave no answer: {reason}. What was recorded is kept. Ask on the command line, which has no "
                "time limit (cbo-gym study ask, with --agent for another agent), create a study with a quicker agent, "
                "or serve the page with a longer --think-seconds"
            ) from error
        if refused is not None:
            raise (OperationError if refused == OperationError.__name__ else ArgumentError)(answer)
        return answer


# In the worker -----------------------------------------------------------------------------------------------

# A study is sent as it is pickled, which names its database, so an equal string is the same study.
_opened: Callable[[bytes], Study] = lru_cache(MAX_STUDIES)(pickle.loads)


def _answer(call: tuple[Callable[..., Any], tuple[Any, ...]]) -> tuple[str | None, Any]:
    """The class of the error that the function raised and its message, or None and what the function returned."""
    function, arguments = call
    try:
        return None, function(*arguments)
    except CBOGymError as error:
        return (OperationError if isinstance(error, OperationError) else ArgumentError).__name__, str(error)


def ask(study: bytes, count: int, context: Mapping[str, float] | None) -> list[int]:
    """Ask for trials; return their numbers."""
    return [trial.number for trial in _opened(study).ask(count, context=context)]


def what_if(study: bytes, do: Mapping[str, Any], context: Mapping[str, float] | None) -> tuple[Any, ...]:
    """The arguments of an :class:`~cbo_gym.study.expectation.Expectation`."""
    found = _opened(study).what_if(do, context=context)
    return dict(found), found.interval, found.assumed


def report(study: bytes) -> list[str]:
    """The sections of the report."""
    return sections(_opened(study))


def create(read: Callable[[], tuple[Any, Lines]], trusted: Collection[str], storage: str) -> str:
    """Create a study, whose agent is tried; return its name."""
    return create_study(**checked(read, trusted=trusted), storage=storage).name

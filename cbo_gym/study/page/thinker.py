"""Calls of agents in worker processes, which are ended if a call takes too long."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from cbo_gym.arguments import require_positive
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.evaluation.play.processes import DiedError, Limits, RaisedError, Worker
from cbo_gym.study.files import read_arguments
from cbo_gym.study.report import sections
from cbo_gym.study.study import Study, create_study
from cbo_gym.study.suggesting import AgentError
from cbo_gym.yaml_files import Lines

THINK_SECONDS = 600.0
# Studies whose agents a worker process keeps.
MAX_STUDIES = 16
MAX_WORKERS = 4
Answer = TypeVar("Answer")


class Thinker:
    """Worker processes that call agents and keep them for the next call.

    Calls of one study run one at a time, in the order of their submission. Studies share the workers evenly.

    Args:
        seconds: Time limit of a call.

    Raises:
        ArgumentError: if the limit is not a finite number above 0.
    """

    def __init__(self, seconds: float = THINK_SECONDS) -> None:
        require_positive("think_seconds", seconds)
        self._workers = [Worker(Limits(time_limit=seconds)) for _ in range(MAX_WORKERS)]
        self._threads = [ThreadPoolExecutor(1, "thinking") for _ in range(MAX_WORKERS)]
        self._studies: dict[bytes, int] = {}

    def submit(self, function: Callable[..., Answer], study: bytes, *arguments: Any) -> Future[Answer]:
        """Call a function of this module in the worker of a study, after the study's earlier calls."""
        index = self._studies.setdefault(study, len(self._studies)) % MAX_WORKERS
        return self._threads[index].submit(self._call, self._workers[index], function, (study, *arguments))

    def close(self) -> None:
        """End the worker processes and their calls."""
        for worker in self._workers:
            worker.close()

    def _call(self, worker: Worker, function: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
        try:
            refused, answer = worker.call(_answer, (function, arguments))
        except DiedError as error:
            reason = str(error)
            if isinstance(error, RaisedError):
                logging.getLogger("cbo_gym.study").error("the agent fails: %s", reason)
                reason = "it raised an error, which the terminal of the server shows"
            raise OperationError(
                f"the agent gave no answer: {reason}. Recorded outcomes are safe. Ask on the command line, which has "
                "no time limit (cbo-gym study ask, with --agent for another agent), create a study with a faster "
                "agent, or serve the page with a longer --think-seconds"
            ) from error
        if refused is not None:
            raise (OperationError if refused == OperationError.__name__ else ArgumentError)(answer)
        return answer


# In the worker -----------------------------------------------------------------------------------------------

# A pickled study names its database, so equal bytes are the same study.
_load: Callable[[bytes], Study] = lru_cache(MAX_STUDIES)(pickle.loads)


def _answer(call: tuple[Callable[..., Any], tuple[Any, ...]]) -> tuple[str | None, Any]:
    """Return None and the result of a function; or the class of the error that it raised, and the message."""
    function, arguments = call
    try:
        return None, function(*arguments)
    # Its message may contain details that the page must not show.
    except AgentError:
        raise
    except CBOGymError as error:
        return (OperationError if isinstance(error, OperationError) else ArgumentError).__name__, str(error)


def ask(study: bytes, count: int, context: Mapping[str, float] | None) -> list[int]:
    """Ask for trials; return their numbers."""
    return [trial.number for trial in _load(study).ask(count, context=context)]


def what_if(study: bytes, do: Mapping[str, Any], context: Mapping[str, float] | None) -> tuple[Any, ...]:
    """Return the arguments of an :class:`~cbo_gym.study.expectation.Expectation`."""
    expectation = _load(study).what_if(do, context=context)
    return dict(expectation), expectation.interval, expectation.assumed


def report(study: bytes) -> list[str]:
    """Return the sections of the report, except those that the page shows in another form."""
    shown_by_page = tuple(f'<section id="{name}"' for name in ("overview", "trials"))
    return [section for section in sections(_load(study)) if not section.startswith(shown_by_page)]


def add_data(study: bytes, table: bytes, ignore: Collection[str]) -> int:
    """Add rounds; return their number. Missing values are refused unless the agent takes them."""
    return _load(study).add_data(table, ignore=ignore)


def create(_: bytes, read: Callable[[], tuple[Any, Lines]], trusted: Collection[str], storage: str) -> str:
    """Create a study and check its agent; return its name."""
    return create_study(**read_arguments(read, trusted=trusted), storage=storage).name

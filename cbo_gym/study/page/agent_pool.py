"""Worker processes in which the page calls agents. A worker is ended if a call takes too long.

The functions at the end of the module run in a worker; they take a pickled study.
"""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from cbo_gym._util.arguments import require_positive
from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.worker import Limits, RaisedError, Worker
from cbo_gym._util.yaml import Lines
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.study.files import read_arguments
from cbo_gym.study.past_rounds import RepeatedDataWarning
from cbo_gym.study.report import sections
from cbo_gym.study.study import Study, create_study
from cbo_gym.study.suggesting import AgentError

# Default time limit of a call.
THINK_SECONDS = 600.0
# Maximum number of studies that a worker process keeps in memory, with their agents.
MAX_CACHED_STUDIES = 16
MAX_WORKERS = 4
Answer = TypeVar("Answer")


class AgentPool:
    """Worker processes that call agents and keep the agents in memory for the next call.

    All calls of a study go to the same worker and run one at a time, in the order of their submission. Studies are
    assigned to the workers in turn. A call may take as many ``seconds``.
    """

    def __init__(self, seconds: float = THINK_SECONDS) -> None:
        require_positive("think_seconds", seconds)
        self._workers = [Worker(Limits(time_limit=seconds)) for _ in range(MAX_WORKERS)]
        self._threads = [ThreadPoolExecutor(1, "thinking") for _ in range(MAX_WORKERS)]
        self._studies: dict[bytes, int] = {}

    def submit(self, function: Callable[..., Answer], study: bytes, *arguments: Any) -> Future[Answer]:
        """Call a function of this module, with a pickled study and other arguments, in the worker of the study."""
        index = self._studies.setdefault(study, len(self._studies)) % MAX_WORKERS
        return self._threads[index].submit(self._call, self._workers[index], function, (study, *arguments))

    def close(self) -> None:
        """End the worker processes, also those with a call in progress."""
        for worker in self._workers:
            worker.close()

    def _call(self, worker: Worker, function: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
        try:
            error_class, answer = worker.call(_answer, (function, arguments))
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
        if error_class is not None:
            raise (OperationError if error_class == OperationError.__name__ else ArgumentError)(answer)
        return answer


# In the worker -----------------------------------------------------------------------------------------------

# The cache keeps a study and its agent between calls. The pickle has the path of the database, so equal bytes are the
# same study.
_load: Callable[[bytes], Study] = lru_cache(MAX_CACHED_STUDIES)(pickle.loads)


def _answer(call: tuple[Callable[..., Any], tuple[Any, ...]]) -> tuple[str | None, Any]:
    """Call a function; return None and its result, or the name of the class of its error and the message."""
    function, arguments = call
    try:
        return None, function(*arguments)
    except AgentError:
        # The page must not show this message, which may contain details of the agent's code.
        raise
    except CBOGymError as error:
        error_class = OperationError if isinstance(error, OperationError) else ArgumentError
        return error_class.__name__, str(error)


def ask(
    study: bytes, count: int, context: Mapping[str, float] | None, fixed: Mapping[str, Any], shared: Sequence[str]
) -> list[int]:
    """Ask for trials; return their numbers."""
    trials = _load(study).ask(count, context=context, fixed=fixed, shared=shared)
    return [trial.number for trial in trials]


def what_if(study: bytes, do: Mapping[str, Any], context: Mapping[str, float] | None) -> tuple[Any, ...]:
    """Return the arguments of the action's :class:`~cbo_gym.study.Expectation`; workers return only plain data."""
    expectation = _load(study).what_if(do, context=context)
    return dict(expectation), expectation.intervals, expectation.assumed, expectation.forecast


def report(study: bytes) -> list[str]:
    """Return the sections of the report as HTML, except those that the page shows in another form."""
    shown_by_page = tuple(f'<section id="{name}"' for name in ("overview", "trials"))
    return [section for section in sections(_load(study)) if not section.startswith(shown_by_page)]


def add_data(
    study: bytes, table: bytes, ignore: Collection[str], campaign: str | None, differs: Sequence[str]
) -> tuple[int, int]:
    """Add the rounds of a file's content; return their number, and the number of rounds that the study had already.

    The other arguments are those of :meth:`Study.add_data`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        count = _load(study).add_data(table, ignore=ignore, campaign=campaign, differs=differs)
    messages = [warning.message for warning in caught]
    return count, sum(message.count for message in messages if isinstance(message, RepeatedDataWarning))


def create(_: bytes, read: Callable[[], tuple[Any, Lines]], trusted: Collection[str], storage: str) -> str:
    """Create a study in a database; return its name. The arguments are those of :func:`read_arguments`."""
    return create_study(**read_arguments(read, trusted=trusted), storage=storage).name

"""The studies of a database, with worker processes for their agents and a cache of their reports."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Collection
from concurrent.futures import Future
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sql
from starlette.concurrency import run_in_threadpool

from cbo_gym._util.yaml import Lines
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError, printable
from cbo_gym.study.description import Description
from cbo_gym.study.log import Log, ReplacedError
from cbo_gym.study.page import agent_pool
from cbo_gym.study.page.agent_pool import AgentPool, Answer
from cbo_gym.study.study import Study, load_study, trusts
from cbo_gym.study.trials import Entry

# Seconds after which the page is shown without the report, if the report is not ready.
PATIENCE = 0.05


class ServedStudy:
    """One study, with its report."""

    def __init__(self, service: StudyService, study: Study) -> None:
        self._service, self.study = service, study
        self._pickled = pickle.dumps(study)
        # Number of the last event that the report certainly includes, and the report.
        self._report: tuple[int, Future[list[str]]] | None = None

    @property
    def description(self) -> Description:
        return self.study.description

    def entries(self) -> dict[int, Entry]:
        """Return the trials by their numbers."""
        return {entry.number: entry for entry in self.study.trials}

    async def call(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call a function of :mod:`~cbo_gym.study.page.agent_pool` with the study and more arguments in a worker."""
        return await asyncio.wrap_future(self._service.pool.submit(function, self._pickled, *arguments))

    async def report(self, patience: float | None = PATIENCE) -> list[str] | None:
        """Return the sections of the current report, for which the agent may need some time.

        Args:
            patience: seconds to wait; None for as long as it takes.

        Returns:
            The sections; None if they are not ready yet.
        """
        last_event = await run_in_threadpool(lambda: self.study.events)
        try:
            async with asyncio.timeout(patience):
                while True:
                    if self._report is None:
                        self._report = last_event, self._service.pool.submit(agent_pool.report, self._pickled)
                    report_event, future = report = self._report
                    try:
                        sections = await asyncio.shield(asyncio.wrap_future(future))
                    except CBOGymError as error:
                        # The rest of the page is useful without the report.
                        sections = [f'<p class="note">{escape(self._service.error_message(error))}</p>']
                    if report_event >= last_event:
                        return sections
                    # The report is out of date; another request may have begun a newer one meanwhile.
                    if self._report is report:
                        self._report = None
        except TimeoutError:
            return None


class StudyService:
    """All studies of a database, which need not exist yet.

    Args:
        storage: path of a SQLite file, or any URL of SQLAlchemy.
        pool: the worker processes of the agents.
        trusted: import paths of agents whose code may be run if a study names them.

    Attributes:
        database_name: name of the database, without its path.
    """

    def __init__(self, storage: Path | str, pool: AgentPool, trusted: Collection[str] = ()) -> None:
        self.storage, self.pool, self.trusted = str(storage), pool, frozenset(trusted)
        self.database_name = _database_name(self.storage)
        self._studies: dict[str, ServedStudy] = {}
        self._names: list[str] = []
        self._lock = Lock()

    def names(self) -> list[str]:
        """Return the names of the studies in the order of their creation; the page numbers them in this order.

        Raises:
            OperationError: if the studies have other numbers than at the call before, because forms of open pages would
                change another study.
        """
        names = Log(self.storage, create=True).names()
        with self._lock:
            earlier, self._names = self._names, names
        if earlier[: len(names)] != names[: len(earlier)] or (earlier and not names):
            raise OperationError(
                f"{self.database_name} was replaced or deleted while it was served, nothing was changed by this "
                "request; look at the list of its studies again"
            )
        return names

    def study(self, name: str) -> ServedStudy:
        """Return a study.

        Raises:
            ArgumentError: if it cannot be loaded.
            OperationError: if the database was replaced after the study was loaded; the next call loads it again.
        """
        with self._lock:
            served = self._studies.get(name)
            if served is None:
                label = Description.model_validate_json(Log(self.storage).find(name).description).agent
                # An import path must be passed to load_study; it is passed only if it is trusted.
                agent = label if trusts(self.trusted, label) and not trusts((), label) else None
                served = self._studies[name] = ServedStudy(self, load_study(name, storage=self.storage, agent=agent))
        try:
            _ = served.study.events
        except ReplacedError:
            self._studies.pop(name, None)
            raise
        return served

    async def create(self, read: Callable[[], tuple[Any, Lines]]) -> str:
        """Create a study; return its name. ``read`` is a picklable argument of :func:`read_arguments`."""
        # There is no pickled study yet.
        return await asyncio.wrap_future(self.pool.submit(agent_pool.create, b"", read, self.trusted, self.storage))

    def error_message(self, error: Exception) -> str:
        """Return the message of an error, with the name of the database instead of its path or URL."""
        message = str(error)
        for path in {self.storage, str(Path(self.storage).absolute())}:
            message = message.replace(printable(path), self.database_name)
        return message


def _database_name(storage: str) -> str:
    if "://" not in storage:
        return Path(storage).name
    try:
        return Path(sql.make_url(storage).database or "the database").name
    except sql.exc.ArgumentError as error:
        raise ArgumentError("the database's URL cannot be read; write it as postgresql://user@host/name") from error

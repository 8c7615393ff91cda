"""The studies of a database as the page works on them."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sql
from starlette.concurrency import run_in_threadpool

from cbo_gym.errors import ArgumentError, CBOGymError, OperationError, printable
from cbo_gym.study.description import Description
from cbo_gym.study.expectation import Expectation
from cbo_gym.study.log import Log, ReplacedError
from cbo_gym.study.page import thinker
from cbo_gym.study.page.thinker import Thinker
from cbo_gym.study.study import Study, load_study, trusts
from cbo_gym.study.trials import Entry
from cbo_gym.yaml_files import Lines

PATIENCE = 0.05  # seconds for which a page waits for the report before it goes without


@dataclass(frozen=True)
class Seen:
    """A study as it stood after an event of its log.

    Attributes:
        event: its number.
        entries: the trials, by number.
        done: what was set in each trial, or is to be, by number.
        best: :attr:`Study.best_trial`.
    """

    event: int
    entries: Mapping[int, Entry]
    done: Mapping[int, Mapping[str, Any]]
    best: Entry | None


class Case:
    """One study.

    Args:
        service: of the database.
        study: the study.
    """

    def __init__(self, service: StudyService, study: Study) -> None:
        self._service, self.study = service, study
        self._pickled = pickle.dumps(study)
        self._seen: Seen | None = None
        # with the event that it includes at least
        self._report: tuple[int, Future[list[str]]] | None = None

    @property
    def about(self) -> Description:
        return self.study.about

    def seen(self) -> Seen:
        """The study as it stands."""
        seen = self._seen
        # What is written from here on is seen the next time.
        event = self.study.events
        if seen is None or seen.event != event:
            units, entries = self.study._units, {entry.number: entry for entry in self.study.trials}
            done = {number: units.done(units.read(entry.action)) for number, entry in entries.items()}
            self._seen = seen = Seen(event, entries, done, self.study.best_trial)
        return seen

    async def ask(self, count: int, context: Mapping[str, float] | None) -> list[int]:
        """Ask for trials; return their numbers."""
        return await asyncio.wrap_future(self._service.thinker.submit(thinker.ask, self._pickled, count, context))

    async def what_if(self, do: Mapping[str, Any], context: Mapping[str, float] | None) -> Expectation:
        """As :meth:`Study.what_if`."""
        asked = self._service.thinker.submit(thinker.what_if, self._pickled, do, context)
        return Expectation(*await asyncio.wrap_future(asked))

    async def add_data(self, table: bytes, ignore: Collection[str]) -> int:
        """Add the rounds of a table; return their number."""
        return await asyncio.wrap_future(self._service.thinker.submit(thinker.add_data, self._pickled, table, ignore))

    async def report(self, patience: float | None = PATIENCE) -> list[str] | None:
        """The sections of the report as the study stands, which may take the agent a while.

        Args:
            patience: seconds to wait for them; None for as long as it takes.

        Returns:
            them; None if they are not ready, but on their way.
        """
        event = (await run_in_threadpool(self.seen)).event
        try:
            async with asyncio.timeout(patience):
                while True:
                    if self._report is None:
                        self._report = event, self._service.thinker.submit(thinker.report, self._pickled)
                    included, coming = begun = self._report
                    try:
                        parts = await asyncio.shield(asyncio.wrap_future(coming))
                    except CBOGymError as error:
                        # Where the report fails the rest of the page is of use still.
                        parts = [f'<p class="note">{escape(self._service.in_words(error))}</p>']
                    if included >= event:
                        return parts
                    if self._report is begun:  # else another request has begun a newer one
                        self._report = None
        except TimeoutError:
            return None


class StudyService:
    """All studies of a database, which need not be there yet.

    Args:
        storage: path of a SQLite file, or any URL of SQLAlchemy.
        thinker: Calls the agents.
        trusted: import paths of agents whose code may be run, where a study names one of them.

    Attributes:
        called: the database in words, without its path.
    """

    def __init__(self, storage: Path | str, thinker: Thinker, trusted: Collection[str] = ()) -> None:
        self.storage, self.thinker, self.trusted = str(storage), thinker, frozenset(trusted)
        self.called = _called(self.storage)
        self._cases: dict[str, Case] = {}
        self._names: list[str] = []
        self._lock = Lock()

    def names(self) -> list[str]:
        """The names of the studies, in the order of their creation, by which the page numbers them.

        Raises:
            OperationError: once, if the numbers of a page that is open now mean other studies.
        """
        names = Log(self.storage, create=True).names()
        with self._lock:
            known, self._names = self._names, names
        if known[: len(names)] != names[: len(known)] or (known and not names):
            raise OperationError(
                f"{self.called} was replaced or is gone while it was served, nothing was changed by this request; look "
                "at the list of its studies again"
            )
        return names

    def case(self, name: str) -> Case:
        """One study.

        Raises:
            ArgumentError: if it cannot be loaded.
            OperationError: once, if the database was replaced after it was loaded.
        """
        with self._lock:
            case = self._cases.get(name)
            if case is None:
                label = Description.model_validate_json(Log(self.storage).find(name).description).agent
                # An import path is run only if it is trusted.
                agent = label if trusts(self.trusted, label) and not trusts((), label) else None
                case = self._cases[name] = Case(self, load_study(name, storage=self.storage, agent=agent))
        try:
            _ = case.study.events
        except ReplacedError:
            self._cases.pop(name, None)
            raise
        return case

    async def create(self, read: Callable[[], tuple[Any, Lines]]) -> str:
        """A new study; its name.

        Args:
            read: gives the fields of its description, and their lines, where they are of a YAML text. It is pickled.

        Raises:
            ArgumentError, OperationError: as ``read`` and :func:`create_study` do.
        """
        return await asyncio.wrap_future(self.thinker.submit(thinker.create, b"", read, self.trusted, self.storage))

    def in_words(self, error: Exception) -> str:
        """The text of an error, with the database's name where it gives the path or the URL."""
        text = str(error)
        for path in {self.storage, str(Path(self.storage).absolute())}:
            text = text.replace(printable(path), self.called)
        return text


def _called(storage: str) -> str:
    if "://" not in storage:
        return Path(storage).name
    try:
        return Path(sql.make_url(storage).database or "the database").name
    except sql.exc.ArgumentError as error:
        raise ArgumentError("the database's URL cannot be read; write it as postgresql://user@host/name") from error

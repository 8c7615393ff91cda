"""Calls on a Dask cluster, each result back as soon as it is there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from cbo_gym.errors import OperationError
from cbo_gym.evaluation.runs.revisions import sources_now

if TYPE_CHECKING:
    from distributed import Client

Item = TypeVar("Item")
Result = TypeVar("Result")

ANSWER_SECONDS = 5  # until a scheduler must have said that it is one; it may just be starting
PATIENCE = 60  # seconds until a worker must have come
NAMED = 5  # workers in a message


def completed(
    function: Callable[[Item], Result], items: Sequence[Item], address: str, code: Mapping[str, str]
) -> Iterator[tuple[Item, Result | Exception]]:
    """Call ``function`` on every item on the cluster; yield items with what came of them, in the order of ending.

    A call whose worker dies is made again on another one. Only a call that takes several workers down with it
    (Dask's setting ``distributed.scheduler.allowed-failures``, 3 by default) gives an exception instead.

    Args:
        function: importable on the workers, as are the items.
        items: what to call it on.
        address: of the Dask scheduler: ``tcp://host:8786``.
        code: what every worker must have, name and stamp, see :func:`cbo_gym.evaluation.runs.revisions.sources`.

    Raises:
        OperationError: if Dask is not installed, no scheduler or worker answers, a worker lacks some of the code, has
            another version of it or more than one thread, or the scheduler goes away.
    """
    client = _connect(address)
    with client:
        _require_code(client, _workers(client, address), code)
        yield from _results(client, function, items, address)


def _connect(address: str) -> Client:
    try:
        from distributed import Client  # late: an extra, and slow to import
    except ImportError as error:
        raise OperationError("sweeps on a cluster need Dask: pip install 'cbo-gym[dask]'") from error
    # A Client waits for ever where something listens that says nothing. In this thread an event loop may be running.
    with ThreadPoolExecutor(1) as thread:
        try:
            kind = thread.submit(asyncio.run, _kind(address)).result()
        except Exception as error:  # whatever Dask makes of what it is sent
            raise OperationError(f"no Dask scheduler answers at {address!r}: {_reason(address, error)}") from error
    if kind != "Scheduler":
        raise OperationError(f"{address} is the address of a Dask {kind.lower()}; give that of the scheduler")
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise OperationError(f"no Dask scheduler answers at {address}: {error}") from error


async def _kind(address: str) -> str:
    from distributed import Security, rpc

    async def ask() -> str:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as asked:
            return str((await asked.identity())["type"])

    return await asyncio.wait_for(ask(), ANSWER_SECONDS)


def _reason(address: str, error: Exception) -> str:
    """The fault in the address or in what is there, in words."""
    try:
        place = urlsplit(address if "://" in address else f"tcp://{address}")
        if not place.hostname or place.port is None or isinstance(error, ValueError | TypeError):
            return f"{error}; an address is tcp://HOST:PORT" if str(error) else "an address is tcp://HOST:PORT"
        socket.create_connection((place.hostname, place.port), timeout=1).close()
        return "something else listens there"
    except socket.gaierror:
        return f"there is no host called {place.hostname}"
    except ConnectionRefusedError:
        return "nothing listens there; start 'dask scheduler' first"
    except (OSError, ValueError, OverflowError) as other:  # the last two of ports that are none
        return str(other)


def _workers(client: Client, address: str) -> list[str]:
    """The workers that are there, each of one thread."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise OperationError(
            f"the Dask scheduler at {address} has no workers; start some with 'dask worker'"
        ) from error
    workers = client.nthreads()
    if crowded := [worker for worker, threads in workers.items() if threads > 1]:
        # runs share what a process has once: torch's settings, seeds of global generators, the cores' time
        raise OperationError(
            f"every worker must have one thread; {_listed(crowded)} have more: "
            "start workers with 'dask worker --nthreads 1 --nworkers CORES'"
        )
    return list(workers)


def _require_code(client: Client, workers: Sequence[str], code: Mapping[str, str]) -> None:
    """Every worker must have the code that is here, or its runs fail, or are those of something else."""
    faults: dict[str, list[str]] = {}  # what is wrong -> with which workers
    for worker, found in client.sync(_ask, client, workers, list(code)).items():
        for fault in _faults(found, code):
            faults.setdefault(fault, []).append(worker)
    if faults:
        said = "; ".join(f"{fault} (on {_listed(its)})" for fault, its in sorted(faults.items()))
        raise OperationError(
            f"the workers do not have the code that is here: {said}. Install the same on every machine, or start the "
            "workers with a PYTHONPATH and in a folder where it is found; then start the workers anew"
        )


async def _ask(
    client: Client, workers: Sequence[str], names: list[str]
) -> dict[str, dict[str, str | None] | Exception]:
    """The code that each worker has, or the error that it raised instead."""

    async def ask(worker: str) -> dict[str, str | None] | Exception:
        try:
            told: Any = await asyncio.wait_for(client.run(sources_now, names, workers=[worker]), PATIENCE)
            return told[worker]
        except TimeoutError:
            return TimeoutError(f"no answer within {PATIENCE} s")
        except Exception as error:  # whatever is raised where this package cannot be imported as it is here
            return error

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))


def _faults(found: Mapping[str, str | None] | Exception, code: Mapping[str, str]) -> Iterator[str]:
    if isinstance(found, Exception):
        yield f"cbo_gym cannot be asked, {type(found).__name__}: {found}"
        return
    for name, stamp in code.items():
        if found[name] is None:
            yield f"{name} is missing"
        elif found[name] != stamp:
            yield f"{name} is {found[name]}, here it is {stamp}"


def _listed(workers: Sequence[str]) -> str:
    more = len(workers) - NAMED
    return ", ".join(workers[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _results(
    client: Client, function: Callable[[Item], Result], items: Sequence[Item], address: str
) -> Iterator[tuple[Item, Result | Exception]]:
    from distributed import as_completed

    waiting = dict(zip(client.map(function, items, pure=False), items, strict=True))
    for future in as_completed(list(waiting), loop=client.loop):
        item = waiting.pop(future)
        if future.cancelled():
            raise OperationError(f"the Dask scheduler at {address} went away")
        yield item, future.exception() if future.status == "error" else future.result()
        future.release()  # or the cluster keeps the result

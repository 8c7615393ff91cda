"""Function calls on a Dask cluster, for sweeps with ``backend="dask"``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from cbo_gym.errors import OperationError, how_to_install
from cbo_gym.evaluation.runs.revisions import sources_now

if TYPE_CHECKING:
    from distributed import Client

Item = TypeVar("Item")
Result = TypeVar("Result")

# Seconds that a scheduler has to answer.
ANSWER_SECONDS = 5
# Seconds that a worker has to join the cluster, and to tell its code; it may just be starting.
JOIN_SECONDS = 60
# Largest number of workers that a message names.
MAX_NAMES = 5


def map_on_cluster(
    function: Callable[[Item], Result], items: Sequence[Item], address: str, code: Mapping[str, str]
) -> Iterator[tuple[Item, Result | Exception]]:
    """Call ``function`` on every item on the cluster; yield items with results or errors, in order of completion.

    A call whose worker dies is repeated on another one. Only a call that kills several workers (Dask's setting
    ``distributed.scheduler.allowed-failures``, 3 by default) yields an exception instead.

    Args:
        function: Function that workers can import.
        items: Arguments of the calls.
        address: Address of the Dask scheduler: ``tcp://host:8786``.
        code: Code that every worker must have, see :func:`cbo_gym.evaluation.runs.revisions.sources`.

    Raises:
        OperationError: if Dask is not installed, no scheduler or worker answers, a worker has other code than this
            process or more than one thread, or the connection to the scheduler is lost.
    """
    client = _connect(address)
    with client:
        _require_code(client, _workers(client, address), code)
        yield from _results(client, function, items, address)


def _connect(address: str) -> Client:
    try:
        # Imported here, because it is an extra and slow to import.
        from distributed import Client
    except ImportError as error:
        raise OperationError(f"sweeps on a cluster need Dask: {how_to_install('dask')}") from error
    # A Client waits for ever for a listener that does not answer, so ask it first. The call is made in another thread,
    # because an event loop may be running in this one.
    with ThreadPoolExecutor(1) as thread:
        try:
            server_type = thread.submit(asyncio.run, _server_type(address)).result()
        # Dask may raise any error if the listener is not Dask.
        except Exception as error:
            raise OperationError(
                f"no Dask scheduler answers at {address!r}: {_describe_failure(address, error)}"
            ) from error
    if server_type != "Scheduler":
        raise OperationError(f"{address} is the address of a Dask {server_type.lower()}; give that of the scheduler")
    try:
        return Client(address, timeout=JOIN_SECONDS, set_as_default=False)
    # A timeout is an OSError.
    except (OSError, ValueError) as error:
        raise OperationError(f"no Dask scheduler answers at {address}: {error}") from error


async def _server_type(address: str) -> str:
    from distributed import Security, rpc

    async def ask() -> str:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
            return str((await scheduler.identity())["type"])

    return await asyncio.wait_for(ask(), ANSWER_SECONDS)


def _describe_failure(address: str, error: Exception) -> str:
    """Return why no scheduler answers: the address is invalid, or nothing or another program listens there."""
    try:
        url = urlsplit(address if "://" in address else f"tcp://{address}")
        if not url.hostname or url.port is None or isinstance(error, ValueError | TypeError):
            return f"{error}; an address is tcp://HOST:PORT" if str(error) else "an address is tcp://HOST:PORT"
        socket.create_connection((url.hostname, url.port), timeout=1).close()
        return "something else listens there"
    except socket.gaierror:
        return f"there is no host called {url.hostname}"
    except ConnectionRefusedError:
        return "nothing listens there; start 'dask scheduler' first"
    # ValueError and OverflowError are for invalid ports.
    except (OSError, ValueError, OverflowError) as failure:
        return str(failure)


def _workers(client: Client, address: str) -> list[str]:
    """Return the addresses of the workers, after checking that each has one thread."""
    try:
        client.wait_for_workers(1, timeout=JOIN_SECONDS)
    except TimeoutError as error:
        raise OperationError(
            f"the Dask scheduler at {address} has no workers; start some with 'dask worker'"
        ) from error
    workers = client.nthreads()
    if crowded := [worker for worker, threads in workers.items() if threads > 1]:
        # Runs in one process would share torch's settings, global random generators and the core.
        raise OperationError(
            f"every worker must have one thread; {_join_names(crowded)} have more: "
            "start workers with 'dask worker --nthreads 1 --nworkers CORES'"
        )
    return list(workers)


def _require_code(client: Client, workers: Sequence[str], code: Mapping[str, str]) -> None:
    """Check that every worker has the code of this process."""
    workers_by_fault: dict[str, list[str]] = {}
    for worker, versions in client.sync(_ask_for_code, client, workers, list(code)).items():
        for fault in _faults(versions, code):
            workers_by_fault.setdefault(fault, []).append(worker)
    if workers_by_fault:
        faults = sorted(workers_by_fault.items())
        summary = "; ".join(f"{fault} (on {_join_names(names)})" for fault, names in faults)
        raise OperationError(
            f"the workers do not have the code of this process: {summary}. Install the same on every machine, or start "
            "the workers with a PYTHONPATH and in a folder where it is found; then restart the workers"
        )


async def _ask_for_code(
    client: Client, workers: Sequence[str], names: list[str]
) -> dict[str, dict[str, str | None] | Exception]:
    """Return for each worker the stamps of the named code, see :func:`sources_now`, or the error that it raised."""

    async def ask(worker: str) -> dict[str, str | None] | Exception:
        try:
            answers: Any = await asyncio.wait_for(client.run(sources_now, names, workers=[worker]), JOIN_SECONDS)
            return answers[worker]
        except TimeoutError:
            return TimeoutError(f"no answer within {JOIN_SECONDS} s")
        # A worker that cannot import this package may raise anything.
        except Exception as error:
            return error

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))


def _faults(versions: Mapping[str, str | None] | Exception, code: Mapping[str, str]) -> Iterator[str]:
    if isinstance(versions, Exception):
        yield f"cbo_gym cannot be asked, {type(versions).__name__}: {versions}"
        return
    for name, stamp in code.items():
        if versions[name] is None:
            yield f"{name} is missing"
        elif versions[name] != stamp:
            yield f"{name} is {versions[name]}, here it is {stamp}"


def _join_names(workers: Sequence[str]) -> str:
    more = len(workers) - MAX_NAMES
    return ", ".join(workers[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _results(
    client: Client, function: Callable[[Item], Result], items: Sequence[Item], address: str
) -> Iterator[tuple[Item, Result | Exception]]:
    from distributed import as_completed

    items_by_future = dict(zip(client.map(function, items, pure=False), items, strict=True))
    for future in as_completed(list(items_by_future), loop=client.loop):
        item = items_by_future.pop(future)
        if future.cancelled():
            raise OperationError(f"the Dask scheduler at {address} went away")
        yield item, future.exception() if future.status == "error" else future.result()
        # Otherwise the cluster keeps the result.
        future.release()

"""Calls on a Dask cluster, each result back as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from cbo_gym.errors import OperationError
from cbo_gym.evaluation.provenance import own_stamps

if TYPE_CHECKING:
    from distributed import Client

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 60  # seconds until a scheduler must have answered and a worker must have come


def completed(
    function: Callable[[Item], Result], items: Sequence[Item], address: str
) -> Iterator[tuple[Item, Result | Exception]]:
    """Call ``function`` on every item on the cluster; yield items with what came of them, in the order of ending.

    A call whose worker dies is made again on another one. Only a call that takes several workers down with it
    (Dask's setting ``distributed.scheduler.allowed-failures``, 3 by default) gives an exception instead.

    Args:
        function: importable on the workers, as are the items.
        items: what to call it on.
        address: of the Dask scheduler: ``tcp://host:8786``.

    Raises:
        OperationError: if Dask is not installed, no scheduler or worker answers, a worker has other code of this
            package or more than one thread, or the scheduler goes away.
    """
    client = _connect(address)
    with client:
        _check_workers(client, address)
        yield from _results(client, function, items, address)


def _connect(address: str) -> Client:
    try:
        from distributed import Client  # late: an extra, and slow to import
    except ImportError as error:
        raise OperationError("sweeps on a cluster need Dask: pip install 'cbo-gym[dask]'") from error
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise OperationError(f"no Dask scheduler answers at {address}: {error}") from error


def _check_workers(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise OperationError(
            f"the Dask scheduler at {address} has no workers; start some with 'dask worker'"
        ) from error
    if crowded := [worker for worker, threads in client.nthreads().items() if threads > 1]:
        # runs share what a process has once: torch's settings, seeds of global generators, the cores' time
        raise OperationError(
            f"every worker must have one thread; {', '.join(crowded)} have more: "
            "start workers with 'dask worker --nthreads 1 --nworkers CORES'"
        )
    try:
        versions = set(client.run(own_stamps).values())
    except Exception as error:  # whatever a worker raises when it cannot import this module
        raise OperationError(f"the workers at {address} cannot import cbo_gym: {error}") from error
    if versions != {own_stamps()}:
        raise OperationError(
            f"the workers have cbo-gym {' and '.join(sorted(versions))}; this is {own_stamps()}. Install the same "
            "everywhere, and start the workers anew"
        )


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

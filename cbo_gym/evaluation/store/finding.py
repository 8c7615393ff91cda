"""Find a published run by its id."""

from __future__ import annotations

import re
from pathlib import Path

from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import HISTORY, load_published, package_store

# An id, or its first characters.
ID = re.compile(r"[0-9a-f]{6,24}")


def find_published(run_id: str, store: Path | str | None = None) -> Run:
    """Return the published run with an id, see :attr:`cbo_gym.evaluation.Run.id`.

    Args:
        run_id: The id, or at least its first six characters, if no other id begins with them.
        store: Published results as for :func:`cbo_gym.evaluation.load_published`; None for those of the package.
            Replaced runs are searched too, if the store has a history; that of the package is only in a checkout.

    Raises:
        ArgumentError: if the id is malformed, or there is no such run, or more than one.
        OperationError: without a store, if the package has no results.
    """
    if not ID.fullmatch(run_id):
        raise ArgumentError(
            f"an id has 24 digits and letters a to f, of which the first 6 may suffice; given {short_repr(run_id)}"
        )
    history = (package_store() if store is None else Path(store)) / HISTORY
    matches = _beginning_with(run_id, store) or (_beginning_with(run_id, history) if history.is_dir() else {})
    if len(matches) != 1:
        fault = f"the ids of {len(matches)} published runs begin with" if matches else "no published run has the id"
        hint = "" if history.is_dir() else "; the repository has replaced runs in results/history"
        raise ArgumentError(
            f"{fault} {run_id}; load_published() has them all, as run.id, and the argument store (--store) names "
            f"others than those of the package{hint}"
        )
    return next(iter(matches.values()))


def _beginning_with(run_id: str, store: Path | str | None) -> dict[str, Run]:
    return {run.id: run for run in load_published(store) if run.id.startswith(run_id)}

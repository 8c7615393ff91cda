"""Messages between an agent and the process that plays it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from cbo_gym.actions.reading import copy_action
from cbo_gym.actions.spaces import Space
from cbo_gym.errors import ArgumentError
from cbo_gym.referee.serialization.documents import Document, from_plain, to_plain
from cbo_gym.scm.expression import trace
from cbo_gym.task import Task


def task_to_plain(task: Task) -> Document:
    """Return a task as plain data, its known composition step by step.

    Raises:
        ArgumentError: if the task contains an object that has no form in plain data.
    """
    composition = getattr(task, "composition", None)
    if composition is not None:
        task = replace(task, composition=trace(composition, task.nodes[:-1]))  # type: ignore[call-arg]
    return to_plain(task)


def task_of(document: Document) -> Task:
    """Read a task that :func:`task_to_plain` wrote.

    Raises:
        ArgumentError: if the document is not a task.
    """
    task = from_plain(document)
    if not isinstance(task, Task):
        raise ArgumentError(f"a task was expected; given a {type(task).__name__}")
    return task


def action_to_plain(space: Space, action: Any) -> Document:
    """Return a valid action of an environment as numbers, lists and dicts.

    Raises:
        gymnasium.error.InvalidAction: if it holds values other than real numbers.
    """
    return _numbers(copy_action(space, action))


def _numbers(action: Any) -> Document:
    if isinstance(action, dict):
        return {key: _numbers(item) for key, item in action.items()}
    return action.tolist() if isinstance(action, np.ndarray) else action


def write_message(message: Document) -> bytes:
    """Write a message as bytes."""
    return json.dumps(message, separators=(",", ":")).encode()


def read_message(message: bytes) -> Document:
    """Read a message from bytes.

    Raises:
        ArgumentError: if it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(message)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"a message cannot be read: {error}") from error

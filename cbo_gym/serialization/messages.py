"""Messages between an agent and whoever plays it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from cbo_gym.actions.reading import own_copy
from cbo_gym.actions.spaces import Space
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.expression import trace
from cbo_gym.serialization.documents import Document, from_plain, to_plain
from cbo_gym.task import Task


def task_to_plain(task: Task) -> Document:
    """A task, its known composition step by step.

    Raises:
        ArgumentError: if something in it cannot be told in plain data.
    """
    composition = getattr(task, "composition", None)
    if composition is not None:
        task = replace(task, composition=trace(composition, task.nodes[:-1]))  # type: ignore[call-arg]
    return to_plain(task)


def task_of(document: Document) -> Task:
    """The task that :func:`task_to_plain` wrote.

    Raises:
        ArgumentError: if it is none.
    """
    task = from_plain(document)
    if not isinstance(task, Task):
        raise ArgumentError(f"a task was told as a {type(task).__name__}")
    return task


def action_to_plain(space: Space, action: Any) -> Document:
    """An action as numbers, lists and dicts alone, from anything that an environment would take for one.

    Raises:
        gymnasium.error.InvalidAction: if it holds anything but real numbers.
    """
    return _numbers(own_copy(space, action))


def _numbers(action: Any) -> Document:
    if isinstance(action, dict):
        return {key: _numbers(part) for key, part in action.items()}
    return action.tolist() if isinstance(action, np.ndarray) else action


def written(message: Document) -> bytes:
    """A message as text."""
    return json.dumps(message, separators=(",", ":")).encode()


def read_message(message: bytes) -> Document:
    """The message that was written.

    Raises:
        ArgumentError: if it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(message)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"a message cannot be read: {error}") from error

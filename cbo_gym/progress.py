"""A bar for work that takes more than two seconds; lines of text where nobody would see a bar move."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

QUIET_SECONDS = 2.0  # work that is done sooner says nothing
LINE_SECONDS = 60.0  # a line at least so often
LINES = 20  # and at least one for each such part of the work


def progress_bar() -> Progress:
    """On a terminal a bar on the error stream that goes when the work is done, else lines now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return _Lines(console=console, disable=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # what goes to a file or a pipe still does
    )


class _Lines(Progress):
    """Says now and then how far each task is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._said: dict[TaskID, tuple[float, float]] = {}  # task -> when and how far it was when it last spoke

    def update(self, task_id: TaskID, **options: Any) -> None:
        super().update(task_id, **options)
        self._say(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._say(task_id)

    def _say(self, task_id: TaskID) -> None:
        task = self._tasks[task_id]
        now = time.monotonic()
        when, done = self._said.setdefault(task_id, (now, task.completed))
        if task.total is None or (task.elapsed or 0.0) < QUIET_SECONDS or task.completed == done:
            return
        part = task.completed >= task.total or LINES * (task.completed - done) >= task.total
        if part or now - when > LINE_SECONDS:
            self._said[task_id] = (now, task.completed)
            passed = f"{int(task.elapsed or 0) // 60}:{int(task.elapsed or 0) % 60:02}"
            # Runs that are being played count in part.
            done_now = f"{task.completed:.1f}".removesuffix(".0")
            self.console.print(f"{task.description}: {done_now} of {task.total:.0f} after {passed} min")

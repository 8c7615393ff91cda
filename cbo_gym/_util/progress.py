"""A bar for work that takes more than two seconds; printed lines without a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

# Seconds of work that prints nothing.
QUIET_SECONDS = 2.0
# Longest time between two lines, in seconds.
LINE_SECONDS = 60.0
# Least number of lines that long work prints.
LINES = 20


def progress_bar() -> Progress:
    """Return a transient progress bar on the error stream; if that is not a terminal, print a line now and then."""
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
        # Output to a file or a pipe is not redirected.
        redirect_stdout=sys.stdout.isatty(),
    )


class _Lines(Progress):
    """Progress that is printed as a line for each task now and then."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Time and progress of each task's last line.
        self._printed: dict[TaskID, tuple[float, float]] = {}

    def update(self, task_id: TaskID, **options: Any) -> None:
        super().update(task_id, **options)
        self._print_line(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._print_line(task_id)

    def _print_line(self, task_id: TaskID) -> None:
        task = self._tasks[task_id]
        now = time.monotonic()
        when, done = self._printed.setdefault(task_id, (now, task.completed))
        if task.total is None or (task.elapsed or 0.0) < QUIET_SECONDS or task.completed == done:
            return
        is_due = task.completed >= task.total or LINES * (task.completed - done) >= task.total
        if is_due or now - when > LINE_SECONDS:
            self._printed[task_id] = (now, task.completed)
            passed = f"{int(task.elapsed or 0) // 60}:{int(task.elapsed or 0) % 60:02}"
            # An unfinished run counts by the share of its rounds that were played.
            done_now = f"{task.completed:.1f}".removesuffix(".0")
            self.console.print(f"{task.description}: {done_now} of {task.total:.0f} after {passed} min")

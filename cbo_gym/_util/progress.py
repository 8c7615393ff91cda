"""Progress of long work: a bar in a terminal, and a line now and then if the error stream is a file or a pipe."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

# Seconds before the first line, so that short work prints none.
QUIET_SECONDS = 2.0
# Longest time between two lines, in seconds.
LINE_SECONDS = 60.0
# Least number of lines that long work prints.
MIN_LINES = 20


def progress_bar() -> Progress:
    """Return a bar on the error stream that vanishes at the end, or lines if that stream is not a terminal."""
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
        last_time, last_completed = self._printed.setdefault(task_id, (now, task.completed))
        elapsed, advance = task.elapsed or 0.0, task.completed - last_completed
        if task.total is None or elapsed < QUIET_SECONDS or advance == 0:
            return
        is_finished = task.completed >= task.total
        if is_finished or MIN_LINES * advance >= task.total or now - last_time > LINE_SECONDS:
            self._printed[task_id] = (now, task.completed)
            minutes, seconds = divmod(int(elapsed), 60)
            # An unfinished run counts as the fraction of its rounds that were played.
            completed = f"{task.completed:.1f}".removesuffix(".0")
            self.console.print(f"{task.description}: {completed} of {task.total:.0f} after {minutes}:{seconds:02} min")

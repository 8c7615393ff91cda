"""This machine: its description in runs, and the number of processes that a sweep starts on it."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from cbo_gym._util.arguments import is_whole_number
from cbo_gym.errors import ArgumentError


@cache
def describe_machine() -> str:
    """Return the number of usable cores and the model of the processor: ``2 cores, Intel Xeon``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{cores} core{'s' if cores > 1 else ''}, {_processor()}"


def process_count(count: int) -> int:
    """Return the number of processes that ``n_jobs`` means: -1 is one per core, -2 is one less, and so on.

    The result is at least 1. In a container, the cores are its share of processor time.
    """
    # Imported here, because only this function needs it.
    from joblib import cpu_count

    if not is_whole_number(count) or count == 0:
        raise ArgumentError(f"give a number of processes, or -1 for one per core; given {count!r}")
    return count if count > 0 else max(1, cpu_count() + 1 + count)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    # Not Linux.
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()

"""What a run was played on: seconds mean little without it."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def describe_machine() -> str:
    """Number of usable cores and model of the processor, without the name of the host: ``2 cores, Intel Xeon``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{cores} core{'s' if cores > 1 else ''}, {_processor()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()

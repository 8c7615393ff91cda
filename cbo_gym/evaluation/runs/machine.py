"""The machine of a run, and the number of processes that it can run at a time."""

from __future__ import annotations

import os
import platform
from functools import cache
from math import ceil
from pathlib import Path

from cbo_gym._util.arguments import is_whole_number
from cbo_gym.errors import ArgumentError

# Limits of a container on Linux.
CGROUPS = Path("/sys/fs/cgroup")
# Files with its microseconds of processor time per period, of version 2 and version 1.
QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))


@cache
def describe_machine() -> str:
    """Return the number of usable cores and the model of the processor: ``2 cores, Intel Xeon``."""
    cores = _cores()
    return f"{cores} core{'s' if cores > 1 else ''}, {_processor()}"


def process_count(count: int) -> int:
    """Return the number of processes: -1 stands for one per core, -2 for one less, and so on, at least one.

    Raises:
        ArgumentError: if it is 0, or not a whole number.
    """
    if not is_whole_number(count) or count == 0:
        raise ArgumentError(f"give a number of processes, or -1 for one per core; given {count!r}")
    return count if count > 0 else max(1, usable_cores() + 1 + count)


def usable_cores() -> int:
    """Return the number of cores that this process may use, in a container at most its share of processor time."""
    return min(_cores(), _share() or _cores())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _share() -> int | None:
    """Return a container's processor time in cores, rounded up; None without a limit."""
    for names in QUOTAS:
        try:
            quota, period = " ".join((CGROUPS / name).read_text(encoding="ascii") for name in names).split()
        # The files are of another version, or the system is not Linux.
        except (OSError, ValueError):
            continue
        return ceil(int(quota) / int(period)) if quota.isdigit() and int(quota) else None
    return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    # Not Linux.
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()

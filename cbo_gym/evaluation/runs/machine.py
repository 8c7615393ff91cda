"""The machine of a run, since seconds mean little without it; and how many processes it bears at a time."""

from __future__ import annotations

import os
import platform
from functools import cache
from math import ceil
from pathlib import Path

from cbo_gym.arguments import is_whole_number
from cbo_gym.errors import ArgumentError

CGROUPS = Path("/sys/fs/cgroup")  # of Linux: what a container may use
#: files with its microseconds of processor time and the period that these are of, version 2 and version 1
QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))


@cache
def describe_machine() -> str:
    """Number of usable cores and model of the processor, without the name of the host: ``2 cores, Intel Xeon``."""
    cores = _cores()
    return f"{cores} core{'s' if cores > 1 else ''}, {_processor()}"


def process_count(count: int) -> int:
    """How many processes a number stands for: -1 for one per core, -2 for one less, and so on, at least one.

    Raises:
        ArgumentError: if it is 0, or no whole number.
    """
    if not is_whole_number(count) or count == 0:
        raise ArgumentError(f"give a number of processes, or -1 for one per core; given {count!r}")
    return count if count > 0 else max(1, usable_cores() + 1 + count)


def usable_cores() -> int:
    """Cores that this process may use; in a container with a limit on processor time, as many as that is worth."""
    return min(_cores(), _share() or _cores())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _share() -> int | None:
    """A container's processor time in cores, rounded up; None without a limit."""
    for names in QUOTAS:
        try:
            quota, period = " ".join((CGROUPS / name).read_text(encoding="ascii") for name in names).split()
        except (OSError, ValueError):  # not of this version, or not Linux
            continue
        return ceil(int(quota) / int(period)) if quota.isdigit() and int(quota) else None
    return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()

"""Provenance of a run: version and commit of this package, libraries, threads and machine."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.version import __version__

LIBRARIES = ("gymnasium", "numpy", "scipy", "torch", "gpytorch", "botorch", "scikit-learn", "stable-baselines3")


def provenance_fields() -> dict[str, Any]:
    """Return the fields of a Run for its date, version, machine, libraries and threads."""
    return {
        "version": __version__,
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "libraries": library_versions(),
        "threads": _threads(),
    }


@cache
def _commit() -> str:
    """Return the commit of a checkout, with ``-dirty`` if files differ from it; empty for an installed package."""
    folder = Path(str(files("cbo_gym"))).parent
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


@cache
def library_versions() -> dict[str, str]:
    """Return name -> version of the libraries on which a run depends, of Python, and of the linear algebra library."""
    versions = {"python": platform.python_version(), "blas": _linear_algebra()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _linear_algebra() -> str:
    """Return name, version and kernels of NumPy's linear algebra library, on which last digits depend."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    kernels = {pool["architecture"] for pool in threadpool_info() if "architecture" in pool}
    return " ".join([blas["name"], blas["version"], *sorted(kernels)])


def _threads() -> dict[str, int]:
    """Return the number of threads of each loaded library."""
    threads: dict[str, int] = {}
    for pool in threadpool_info():
        name = str(pool["internal_api"])
        threads[name] = max(int(pool["num_threads"]), threads.get(name, 0))
    if torch := sys.modules.get("torch"):
        threads["torch"] = torch.get_num_threads()
    return threads

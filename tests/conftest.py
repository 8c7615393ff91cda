"""The order of the tests, and of the filters of warnings; what is collected as garbage."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import gymnasium  # noqa: F401  # it adds filters of warnings before the others, so it comes first
import pytest

#: what runs if nothing else is asked for, as in pyproject.toml
DEFAULT = "not benchmark and not slow"
# no test writes to the user's own folder; the processes that tests start inherit it
os.environ.setdefault("CBO_GYM_KEY", str(Path(tempfile.mkdtemp(prefix="cbo-gym-tests-"), "key")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of trials and benchmarks, which take long, if all of their tests would be deselected."""
    return True if collection_path.name in ("benchmarks", "trials") and config.option.markexpr == DEFAULT else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples come first: they take longest, and at the end one core would wait while the other plays them."""
    items.sort(key=lambda item: "test_examples" not in item.nodeid)


def pytest_collection_finish() -> None:
    """Exempt all objects of today from garbage collection, which would take a tenth of the time."""
    gc.collect()
    gc.freeze()

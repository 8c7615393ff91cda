"""The order of the tests, and of the filters of warnings; what is collected as garbage."""

from __future__ import annotations

import gc

import gymnasium  # noqa: F401  # puts filters of its own before those that are there, so it comes first
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples come first: they take longest, and at the end one core would wait while the other plays them."""
    items.sort(key=lambda item: "test_examples" not in item.nodeid)


def pytest_collection_finish() -> None:
    """What is there by now stays to the end: to look through it for garbage again and again is a tenth of the time."""
    gc.collect()
    gc.freeze()

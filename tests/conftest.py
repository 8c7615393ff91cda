"""The order of the tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples come first: they take longest, and at the end one core would wait while the other plays them."""
    items.sort(key=lambda item: "test_examples" not in item.nodeid)

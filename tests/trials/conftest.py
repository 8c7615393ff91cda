"""Trials make things go wrong, and look at the warnings that follow: there they are no errors of the test."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "trials" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("default"))

"""What agents find is not the point of the tests of studies."""

import pytest


@pytest.fixture(autouse=True)
def _coarse(coarse_search: None) -> None: ...

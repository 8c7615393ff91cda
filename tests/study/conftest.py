"""What agents find is not the point of the tests of studies, nor does a machine lose its power during them."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine


@pytest.fixture(autouse=True)
def _coarse(coarse_search: None) -> None: ...


def _do_not_wait(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA synchronous=OFF")


@pytest.fixture(autouse=True, scope="session")
def _without_waiting_for_the_disk(pytestconfig: pytest.Config) -> Iterator[None]:
    """Let SQLite write without waiting for the disk by default; slow tests wait, as studies of users do."""
    is_default = "not slow" in pytestconfig.option.markexpr
    if is_default:
        event.listen(Engine, "begin", _do_not_wait)
    yield
    if is_default:
        event.remove(Engine, "begin", _do_not_wait)
